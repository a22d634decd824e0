// Functions of the lines that only this backend has.
#pragma once
#include "kernels/base.h"
#include "scalar/math.h"

namespace taeda::loops::TAEDA_ISA {

/// The neighbour of `a` towards `b`, in the bits of a type of 16 whose infinity is given: neighbours of one sign differ
/// by one in their bits.
TAEDA_HD inline int64_t next_half(int64_t a, int64_t b, int64_t infinity) {
  const int64_t size_a = a & 0x7fff, size_b = b & 0x7fff;
  if (size_a > infinity || size_b > infinity) return infinity | infinity >> 1;
  const int64_t x = a & 0x8000 ? -size_a : size_a, y = b & 0x8000 ? -size_b : size_b;
  if (x == y) return b;
  if (x == 0) return (b & 0x8000) | 1;
  return (x < y) == (x > 0) ? a + 1 : a - 1;
}

}  // namespace taeda::loops::TAEDA_ISA
