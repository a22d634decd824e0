// Setting and reading a generator's position: the device of a default generator hears of it.
#pragma once
#include "taeda/generator.h"

namespace taeda {

TAEDA_API void set_generator(const Generator& generator, uint64_t seed, uint64_t offset);
/// Seed and offset now.
TAEDA_API PhiloxRange generator_position(const Generator& generator);

}  // namespace taeda
