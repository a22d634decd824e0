// Setting and reading a generator's position: the device of a default generator hears of it.
#pragma once
#include "taeda/generator.h"

namespace taeda {

TAEDA_API void set_generator(const Generator& generator, uint64_t seed, uint64_t offset);
/// Seeds the default generators of all devices, also of those that are found later; all of them or none.
TAEDA_API void seed_all(uint64_t seed);
/// Hands a new backend the seed that the user has chosen, if any.
TAEDA_API void seed_backend(BackendId id);
/// Seed and offset now.
TAEDA_API PhiloxRange generator_position(const Generator& generator);

}  // namespace taeda
