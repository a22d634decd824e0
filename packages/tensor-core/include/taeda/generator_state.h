// Setting and reading a generator's position: the device of a default generator hears of it. Choosing what it is made
// of.
#pragma once
#include <vector>

#include "taeda/generator.h"

namespace taeda {

TAEDA_API void set_generator(const Generator& generator, uint64_t seed, uint64_t offset);
/// Seeds the default generators of all devices, also of those that are found later; all of them or none.
TAEDA_API void seed_all(uint64_t seed);
/// Hands a new backend the seed that the user has chosen, if any.
TAEDA_API void seed_backend(BackendId id);
/// Seed and offset now; of a twister its seed.
TAEDA_API PhiloxRange generator_position(const Generator& generator);

/// What a generator of the cpu makes its numbers by; other devices have Philox alone.
enum class Engine : uint8_t { Philox, Twister };
/// Of the cpu's default generator from its seed on, and of those that are made later.
TAEDA_API void set_default_engine(Engine engine);
TAEDA_API Engine default_engine() noexcept;
TAEDA_API Engine engine_of(const Generator& generator);
/// Makes the generator one of this engine, at the beginning of its seed's stream.
TAEDA_API void set_engine(const Generator& generator, Engine engine);
/// The saved state of a twister (Twister::kStateBytes).
TAEDA_API std::vector<char> twister_state(const Generator& generator);
/// Makes the generator a twister in a saved state; false, and no change, where the bytes are no state.
TAEDA_API bool set_twister_state(const Generator& generator, const char* bytes);

}  // namespace taeda
