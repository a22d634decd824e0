// The error function's relatives and the normal distribution's functions of float64 numbers: erfc and ndtr without
// branches, the others one number at a time and right to little more than half a unit in the last place.
#pragma once
#include <cmath>

#include "scalar/error.h"
#include "scalar/special.h"
#include "scalar/tables/error.h"

namespace taeda::loops::TAEDA_ISA {

/// exp(x^2) erfc(x) for 0 <= x < 1e9.
TAEDA_HD inline Pair erfcx_pair(Pair x) {
  if (x.high < 10) return by_pieces(kErfcx, x, 0, 2);
  const double q = 0.5 / (x.high * x.high);
  double sum = 0;
  for (int k = 15; k > 0; --k) sum = (1 - 2 * k) * q * (1 + sum);
  return ordered_sum(1, sum) / (x * Pair{1.772453850905516, -7.666586499825799e-17});
}
/// exp(-factor x^2), for a factor that is a power of two.
TAEDA_HD inline Exponential exp_of_square(double x, double factor) {
  return exponential(scaled(exact_product(x, x), -factor));
}
TAEDA_HD inline double erfcx_of(double x) {
  if (x != x || x < -26.7) return x != x ? x : INFINITY;
  if (x >= 0) return x < 1e9 ? rounded(erfcx_pair({x, 0})) : 0.56418958354775628695 / x;
  const Exponential e = exp_of_square(x, -1);
  if (x < -7) return scaled_by(e.fraction, e.exponent + 1);  // the rest does not count
  return rounded(scaled(e.fraction, power_of_two(e.exponent + 1)) - erfcx_pair({-x, 0}));
}
/// erfc(z) for a pair from 0 to 32 and its square, without branches: t exp(P(t) - z^2), t = 1 / (1 + z / 2), as
/// `scaled_tail` has it for float32. What roundings leave out is kept until the last product.
TAEDA_HD inline double error_tail(Pair z, Pair square) {
  const Expansion<26>& e = kErrorTail[0];
  const Pair d = exact_sum(1.0, 0.5 * z.high);
  const double t = 1.0 / d.high, t_rest = fma(-d.high, t, 1.0) - (d.low + 0.5 * z.low) * t;  // of 1 + t_rest, times t
  const Pair scale = exact_product(t, 2.125);
  const double u = scale.high - 1.125, u_rest = ((scale.high - u) - 1.125) + fma(scale.high, t_rest, scale.low);
  const double v = u * u;
  double odd = e.c[25], even = e.c[24];
#pragma GCC unroll 12
  for (int k = 23; k > 2; k -= 2) {
    odd = fma(odd, v, e.c[k]);
    even = fma(even, v, e.c[k - 1]);
  }
  const Pair slope = ordered_sum(e.c[1], u * fma(odd, u, even)), product = exact_product(u, slope.high);
  const Pair first = exact_sum(e.c[0], -square.high), exponent = exact_sum(first.high, product.high);
  const double rest =
      (first.low + exponent.low) + ((product.low + fma(u, slope.low, u_rest * slope.high)) + (e.rest - square.low));
  const double tail = t * vexp(exponent.high);
  return fma(tail, rest + t_rest, tail);
}
TAEDA_HD inline double erfc_of(double x) {
  const double a = magnitude(x), z = a > 28.0 ? 28.0 : a;
  const double y = error_tail({z, 0.0}, exact_product(z, z));
  return x != x ? x : x < 0.0 ? 2.0 - y : y;
}
/// The normal distribution below -x over 2^exponent, for 0 <= x < 40.
TAEDA_HD inline Exponential lower_tail(double x) {
  const Exponential e = exp_of_square(x, 0.5);
  return {erfcx_pair(Pair{0.7071067811865476, -4.833646656726457e-17} * x) * e.fraction, e.exponent - 1};
}
TAEDA_HD inline double ndtr_of(double x) {
  const double a = magnitude(x), z = a > 40.0 ? 40.0 : a;
  const double y =
      0.5 * error_tail(Pair{0.7071067811865476, -4.833646656726457e-17} * z, scaled(exact_product(z, z), 0.5));
  return x != x ? x : x < 0.0 ? y : 1.0 - y;
}
TAEDA_HD inline double log_ndtr_of(double x) {
  if (x != x) return x;
  if (x <= 0) {
    if (x < -1e8) return -0.5 * x * x;
    const Pair log = log_pair(erfcx_pair(Pair{0.7071067811865476, -4.833646656726457e-17} * -x)) -
                     Pair{0.6931471805599453, 2.3190468138462996e-17};
    return rounded(log - scaled(exact_product(x, x), 0.5));
  }
  if (x > 40) return 0;
  const Exponential e = lower_tail(x);
  if (x > 2) return std::log1p(-scaled_by(e.fraction, e.exponent));
  return rounded(log_pair(Pair{1, 0} - scaled(e.fraction, power_of_two(e.exponent))));
}

/// erfinv(x) / x where |x| <= 0.85, by powers of x^2.
inline constexpr double kCentral = 0.85;
TAEDA_HD inline Pair central_slope(double x) {
  const Expansion<34>& e = kErrorInverse[0];
  const double t = x * x * 2.768166089965398 - 1.0, z = t * t;
  double odd = e.c[33], even = e.c[32];
#pragma GCC unroll 16
  for (int k = 31; k > 1; k -= 2) {
    odd = fma(odd, z, e.c[k]);
    even = fma(even, z, e.c[k - 1]);
  }
  return ordered_sum(e.c[0], fma(fma(odd, z, e.c[1]), t, fma(even, z, e.rest)));
}
/// Where the distribution leaves `tail` below it, a number from 0 to 0.08, as a positive number.
TAEDA_HD inline Pair outer_point(double tail) { return by_pieces(kNormalPoint, root_of(-log_pair({tail, 0})), 1.5, 2); }
/// The inverse of ndtr.
TAEDA_HD inline double ndtri_of(double p) {
  if (!(p > 0 && p < 1)) return p == 0 ? -INFINITY : p == 1 ? INFINITY : NAN;
  const double q = 2 * (p - 0.5);
  if (magnitude(q) <= kCentral)
    return rounded(Pair{1.4142135623730951, -9.667293313452913e-17} * (central_slope(q) * q));
  return with_sign_of(rounded(outer_point(q < 0 ? p : 1 - p)), q);
}
/// The inverse of erf beyond the middle.
TAEDA_HD inline double outer_error_inverse(double y) {
  if (!(y > -1 && y < 1)) return y == 1 ? INFINITY : y == -1 ? -INFINITY : NAN;
  return with_sign_of(rounded(outer_point((1 - magnitude(y)) / 2) * Pair{0.7071067811865476, -4.833646656726457e-17}),
                      y);
}

template <class T>
TAEDA_HD inline T x_log1p_y(T x, T y) {
  if (y != y) return y;
  return x == T(0) ? T(0) : T(double(x) * std::log1p(double(y)));
}

}  // namespace taeda::loops::TAEDA_ISA
