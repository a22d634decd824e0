// The instruction set that the inner loops run with, chosen once at start.
#pragma once
#include "taeda/export.h"

namespace taeda {

enum class Isa : unsigned char { Base, AVX2, AVX512 };

/// The best one that this machine has and the library was built for; `TAEDA_ISA=base|avx2|avx512` lowers it.
TAEDA_API Isa isa() noexcept;

}  // namespace taeda
