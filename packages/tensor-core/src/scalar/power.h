// float32 powers by way of float64, with series just long enough for results right to half a unit in the last place.
#pragma once
#include "scalar/math.h"

namespace taeda::loops::TAEDA_ISA {

/// log2(a) of a float32 number a >= 0 held in float64; relative error 1e-11.
TAEDA_HD inline double log2_core(double a) {
  const double inf = kInfinity<double>;
  // a = 2^k m with m in [sqrt(1/2), sqrt(2)): the bits of sqrt(1/2) take the place of those of 1.
  constexpr uint64_t root = 0x3fe6a09e667f3bcdull, one = 0x3ff0000000000000ull;
  const uint64_t shifted = bit_cast<uint64_t>(a) + (one - root);
  // The exponent as a number: integers below 2^52 are the low bits of 2^52 plus them.
  const double k = bit_cast<double>((shifted >> 52) | 0x4330000000000000ull) - (4503599627370496.0 + 1023.0);
  const double m = bit_cast<double>((shifted & 0xfffffffffffffull) + root);
  const double s = (m - 1.0) / (m + 1.0), z = s * s;
  const double y = s + s * z * poly(z, 0.333333328218, 0.200001678185, 0.142686390375, 0.117913832662);
  const double result = k + y * 2.88539008177792681472;
  return a == 0.0 ? -inf : a < inf ? result : a;
}
/// 2^u; beyond 200 nothing changes in float32. Relative error 2e-9.
TAEDA_HD inline double exp2_core(double u) {
  const double bounded = u > 200.0 ? 200.0 : u < -200.0 ? -200.0 : u;
  const double shifted = bounded + Format<double>::magic, f = bounded - (shifted - Format<double>::magic);
  const double fraction =
      poly(f, 0.693147206248, 0.240226513459, 0.0555032779074, 0.00961800388951, 0.00134002698375, 0.000154763003258);
  const uint64_t n = bit_cast<uint64_t>(shifted) << 52;  // what lies above the low bits drops out
  return (1.0 + f * fraction) * bit_cast<double>(n + 0x3ff0000000000000ull);
}

TAEDA_HD inline float vpow(float base, float exponent) {
  const double x = double(base), y = double(exponent), a = magnitude(x);
  const double inf = kInfinity<double>, magic = Format<double>::magic;
  double p = exp2_core(y * log2_core(a));
  const bool huge = magnitude(y) > 1e15;
  const bool whole = ((y + magic) - magic == y) | huge;
  const double halved = y * 0.5;
  const bool odd = whole & !huge & ((halved + magic) - magic != halved);
  p = flip_sign(p, (bit_cast<uint64_t>(x) >> 63) & uint64_t(odd));
  p = (x < 0.0) & !whole & (a != inf) ? kNan<double> : p;
  p = (a == 1.0) & (magnitude(y) == inf) ? 1.0 : p;
  p = (x == 1.0) | (y == 0.0) ? 1.0 : p;
  return float(p);
}

}  // namespace taeda::loops::TAEDA_ISA
