// The normal distribution's functions, one number at a time, right to a few units in the last place in the tails too.
#pragma once
#include <cmath>

#include "scalar/error.h"
#include "scalar/special.h"

namespace taeda::loops::TAEDA_ISA {

/// exp(x * x / divisor) for a divisor of 1 or 2 and exp(-x * x / 2): the square with what its rounding leaves out.
TAEDA_HD inline double exp_of_square(double x, double factor) {
  const double square = x * x, rest = std::fma(x, x, -square);
  return std::exp(factor * square) * (1 + factor * rest);
}
/// exp(x^2) erfc(x).
TAEDA_HD inline double erfcx_of(double x) {
  if (x < 25) return x < -26.7 ? INFINITY : exp_of_square(x, 1) * std::erfc(x);
  if (x != x) return x;
  const double q = 1 / (2 * x * x);
  double term = 1, sum = 1;
  for (int k = 1; k < 9; ++k) sum += term *= -(2 * k - 1) * q;
  return sum / (x * 1.77245385090551602730);
}
TAEDA_HD inline double ndtr_of(double x) {
  const double y = x * -0.70710678118654752440;
  if (y < 1) return 0.5 * std::erfc(y);
  return y > 40 ? 0.0 : 0.5 * erfcx_of(y) * exp_of_square(x, -0.5);
}
/// Above -1 without branches; of float32 numbers everywhere.
template <class T>
TAEDA_HD inline auto ndtr_domain(T x) {
  if constexpr (is_same<T, float>) return Always();
  else return x > T(-1);
}
TAEDA_HD inline float ndtr_above(float x) { return ndtr_of(x); }
TAEDA_HD inline double ndtr_above(double x) { return 0.5 + 0.5 * verf(x * 0.70710678118654752440); }
TAEDA_HD inline double log_ndtr_of(double x) {
  const double y = x * -0.70710678118654752440;
  if (y > 0.70710678118654752440) return std::log(erfcx_of(y) / 2) - x * x / 2;
  return std::log1p(-ndtr_of(-x));
}
/// A quotient of polynomials of degree 7.
TAEDA_HD inline double ratio_of_sevenths(double r, const double (&a)[8], const double (&b)[8]) {
  double above = a[7], below = b[7];
#pragma GCC unroll 8
  for (int k = 6; k >= 0; --k) {
    above = above * r + a[k];
    below = below * r + b[k];
  }
  return above / below;
}
/// Where the normal distribution has reached 0.5 + q, for |q| <= 0.425 (kCentral) and for the rest, whose smaller tail
/// is given. Wichura, "Algorithm AS 241: the percentage points of the normal distribution", 1988.
inline constexpr double kCentral = 0.425;
TAEDA_HD inline double central_point(double q) {
  constexpr double a[8] = {3.3871328727963666080e0, 1.3314166789178437745e2, 1.9715909503065514427e3,
                           1.3731693765509461125e4, 4.5921953931549871457e4, 6.7265770927008700853e4,
                           3.3430575583588128105e4, 2.5090809287301226727e3};
  constexpr double b[8] = {1.0,
                           4.2313330701600911252e1,
                           6.8718700749205790830e2,
                           5.3941960214247511077e3,
                           2.1213794301586595867e4,
                           3.9307895800092710610e4,
                           2.8729085735721942674e4,
                           5.2264952788528545610e3};
  return q * ratio_of_sevenths(0.180625 - q * q, a, b);
}
TAEDA_HD inline double outer_point(double q, double tail) {
  constexpr double c[8] = {1.42343711074968357734e0,  4.63033784615654529590e0, 5.76949722146069140550e0,
                           3.64784832476320460504e0,  1.27045825245236838258e0, 2.41780725177450611770e-1,
                           2.27238449892691845833e-2, 7.74545014278341407640e-4};
  constexpr double d[8] = {1.0,
                           2.05319162663775882187e0,
                           1.67638483018380384940e0,
                           6.89767334985100004550e-1,
                           1.48103976427480074590e-1,
                           1.51986665636164571966e-2,
                           5.47593808499534494600e-4,
                           1.05075007164441684324e-9};
  constexpr double e[8] = {6.65790464350110377720e0,  5.46378491116411436990e0,  1.78482653991729133580e0,
                           2.96560571828504891230e-1, 2.65321895265761230930e-2, 1.24266094738807843860e-3,
                           2.71155556874348757815e-5, 2.01033439929228813265e-7};
  constexpr double f[8] = {1.0,
                           5.99832206555887937690e-1,
                           1.36929880922735805310e-1,
                           1.48753612908506148525e-2,
                           7.86869131145613259100e-4,
                           1.84631831751005468180e-5,
                           1.42151175831644588870e-7,
                           2.04426310338993978564e-15};
  const double r = std::sqrt(-std::log(tail));
  return std::copysign(r <= 5 ? ratio_of_sevenths(r - 1.6, c, d) : ratio_of_sevenths(r - 5, e, f), q);
}
/// The inverse of ndtr.
TAEDA_HD inline double ndtri_of(double p) {
  if (!(p > 0 && p < 1)) return p == 0 ? -INFINITY : p == 1 ? INFINITY : NAN;
  const double q = p - 0.5;
  return std::abs(q) <= kCentral ? central_point(q) : outer_point(q, q < 0 ? p : 1 - p);
}
/// The inverse of erf where the quotient in the middle holds, and beyond.
TAEDA_HD inline double central_error_inverse(double y) { return central_point(y / 2) * 0.70710678118654752440; }
TAEDA_HD inline double outer_error_inverse(double y) {
  if (!(y > -1 && y < 1)) return y == 1 ? INFINITY : y == -1 ? -INFINITY : NAN;
  return outer_point(y, (1 - std::abs(y)) / 2) * 0.70710678118654752440;
}

template <class T>
TAEDA_HD inline T x_log1p_y(T x, T y) {
  if (y != y) return y;
  return x == T(0) ? T(0) : T(double(x) * std::log1p(double(y)));
}

}  // namespace taeda::loops::TAEDA_ISA
