// Powers: of float32 numbers by way of float64, with series just long enough for results right to half a unit in the
// last place, which serve other functions too; of float64 numbers by pairs of numbers.
#pragma once
#include "scalar/pairs.h"

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
  const double y = fma(s * z, poly(z, 0.333333328218, 0.200001678185, 0.142686390375, 0.117913832662), s);
  const double result = fma(y, 2.88539008177792681472, k);
  return a == 0.0 ? -inf : a < inf ? result : a;
}
/// 2^u; beyond 200 nothing changes in float32. Relative error 2e-9.
TAEDA_HD inline double exp2_core(double u) {
  const double bounded = u > 200.0 ? 200.0 : u < -200.0 ? -200.0 : u;
  const double shifted = bounded + Format<double>::magic, f = bounded - (shifted - Format<double>::magic);
  const double fraction =
      poly(f, 0.693147206248, 0.240226513459, 0.0555032779074, 0.00961800388951, 0.00134002698375, 0.000154763003258);
  const uint64_t n = bit_cast<uint64_t>(shifted) << 52;  // what lies above the low bits drops out
  return fma(f, fraction, 1.0) * bit_cast<double>(n + 0x3ff0000000000000ull);
}

// Logarithms and hyperbolic functions of float32 numbers by the same series.
TAEDA_HD inline float log_of_single(double y, float x) { return float(x < 0.0f ? kNan<double> : y); }
TAEDA_HD inline float vlog2(float x) { return log_of_single(log2_core(double(x)), x); }
TAEDA_HD inline float vlog10(float x) { return log_of_single(log2_core(double(x)) * 0.30102999566398119521, x); }
/// log(1 + x): the sum is exact where it is used.
TAEDA_HD inline double log1p_core(double x) {
  const double y = log2_core(1.0 + x) * 0.69314718055994530942;
  return magnitude(x) < 0x1p-20 ? x - 0.5 * x * x : y;
}
TAEDA_HD inline float vlog1p(float x) { return log_of_single(log1p_core(double(x)), x + 1.0f); }
TAEDA_HD inline double exp_core(double x) { return exp2_core(x * 1.44269504088896340736); }
TAEDA_HD inline double exact_expm1(double x) { return vexpm1(x); }
TAEDA_HD inline float exact_expm1(float x) {
  const double y = double(x);
  const double near =
      y * (1.0 + y * poly(y, 1.0 / 2, 1.0 / 6, 1.0 / 24, 1.0 / 120, 1.0 / 720, 1.0 / 5040, 1.0 / 40320));
  return x != x ? x : float(magnitude(y) < 0.3 ? near : exp_core(y) - 1.0);
}
TAEDA_HD inline float vsinh(float x) {
  const double a = magnitude(double(x)), z = a * a, e = exp_core(a);
  const double near = a + a * z * poly(z, 1.0 / 6, 1.0 / 120, 1.0 / 5040, 1.0 / 362880);
  return x != x ? x : float(with_sign_of(a < 0.5 ? near : 0.5 * (e - 1.0 / e), double(x)));
}
TAEDA_HD inline float vcosh(float x) {
  const double e = exp_core(magnitude(double(x)));
  return float(0.5 * (e + 1.0 / e));
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

TAEDA_HD inline double vpow(double x, double y) {
  using F = Format<double>;
  const double a = magnitude(x), inf = kInfinity<double>, bounded = magnitude(y) > 1e25 ? with_sign_of(1e25, y) : y;
  const Pair l = log2_pair(a);
  const Pair product = exact_product(l.high, bounded);
  const bool beyond = !(magnitude(product.high) < 1100.0);
  const double u = beyond ? with_sign_of(1100.0, product.high) : product.high;
  const double u_rest = beyond ? 0.0 : product.low + l.low * bounded;
  // 2^u = 2^n e^t with t = (u - n) ln 2
  const double n = (u + F::magic) - F::magic, r = (u - n) + u_rest, r_rest = ((u - n) - r) + u_rest;
  const Pair t = exact_product(r, 0.69314718055994530942);
  const double t_rest = t.low + (r * 2.3190468138462995584e-17 + r_rest * 0.69314718055994530942);
  const double p = 1.0 + t.high;
  const double fraction = p + (((1.0 - p) + t.high) + (t_rest + (t.high * t_rest + expm1_tail(t.high))));
  double result = times_power_of_two(fraction, n);
  result = a == 0.0 ? (y < 0.0 ? inf : 0.0) : a == inf ? (y < 0.0 ? 0.0 : inf) : result;
  const double halved = y * 0.5;
  const bool whole = floor(y) == y, odd = whole & (floor(halved) != halved);
  result = flip_sign(result, (bit_cast<uint64_t>(x) >> 63) & uint64_t(odd));
  result = (x < 0.0) & !whole & (a != inf) ? kNan<double> : result;
  result = (x != x) | (y != y) ? x + y : result;
  result = (a == 1.0) & (magnitude(y) == inf) ? 1.0 : result;
  return (x == 1.0) | (y == 0.0) ? 1.0 : result;
}

}  // namespace taeda::loops::TAEDA_ISA
