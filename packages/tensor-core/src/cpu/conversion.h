// Conversions of elements from one dtype to another.
#pragma once
#include "taeda/elementwise.h"

namespace taeda::cpu {

using CastRow = const Loop (*)[kDTypeCount];
/// [to][from]: this machine's loops; null for pairs without one of their own.
CastRow cast_table() noexcept;

}  // namespace taeda::cpu
