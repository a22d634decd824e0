// The loops between float32 and the floating-point numbers of 8 bits.
#pragma once
#include "taeda/elementwise.h"

namespace taeda::cpu {

Loop float8_from_float32(DType to);
Loop float8_to_float32(DType from);

}  // namespace taeda::cpu
