// Inverse trigonometric and hyperbolic functions of float32 numbers: computed in float64 by series that are just long
// enough for results right to half a unit in the last place, with one division or root each.
#pragma once
#include "scalar/math.h"

namespace taeda::loops::TAEDA_ISA {

/// asin(s) for s in [0, 0.5], z = s * s: relative error 3e-10.
TAEDA_HD inline double asin_core(double s, double z) {
  return s + s * z * poly(z, 0.166666599, 0.0750051092, 0.0445157196, 0.0318176175, 0.0144025815, 0.0375652378);
}
/// atan(t) for t in [0, 1]: relative error 2.3e-9.
TAEDA_HD inline double atan_core(double t) {
  const double z = t * t;
  return t + t * z *
                 poly(z, -0.333333019, 0.199986386, -0.142652454, 0.109575759, -0.0841945789, 0.0582345246,
                      -0.0314556728, 0.0110644242, -0.00182720897);
}

/// What asin and acos share: asin(a), or, where that is `large`, beyond a half, half of what is missing to pi/2, as
/// asin(a) = pi/2 - 2 asin(sqrt((1 - a) / 2)).
TAEDA_HD inline double half_angle(double a, bool large) {
  const double z = large ? (1.0 - a) * 0.5 : a * a;
  return asin_core(sqrt(z), z);  // the square of a float32 number is exact, and so is its root
}
TAEDA_HD inline float vasin(float x) {
  const double a = magnitude(double(x));
  const bool large = a > 0.5;
  const double angle = half_angle(a, large), y = large ? 1.57079632679489661923 - 2.0 * angle : angle;
  return x != x ? x : float(with_sign_of(y, double(x)));
}
TAEDA_HD inline float vacos(float x) {
  const double a = magnitude(double(x));
  const bool large = a > 0.5;
  const double angle = half_angle(a, large);
  const double near_one = x > 0 ? 2.0 * angle : 3.14159265358979323846 - 2.0 * angle;
  return float(large ? near_one : 1.57079632679489661923 - with_sign_of(angle, double(x)));
}
TAEDA_HD inline float vatan2(float y, float x) {
  const double a = magnitude(double(y)), b = magnitude(double(x)), large = a > b ? a : b, small = a > b ? b : a;
  const double slope = small == large ? double(large != 0.0) : small / large;  // 0 / 0 and inf / inf as well
  const double flat = atan_core(slope), first = a > b ? 1.57079632679489661923 - flat : flat;
  const bool left = bit_cast<uint32_t>(x) >> 31;
  const double angle = left ? 3.14159265358979323846 - first : first;
  return (x != x) | (y != y) ? x + y : float(with_sign_of(angle, double(y)));
}
/// atanh(a) up to a third; then half of log((1 + a) / (1 - a)), whose denominator is brought to [1, 2) by powers of
/// two.
TAEDA_HD inline float vatanh(float x) {
  const double a = magnitude(double(x)), rest = 1.0 - a;
  const uint64_t bits = bit_cast<uint64_t>(rest), fraction = bits & 0xfffffffffffffull;
  const double scaled = bit_cast<double>(fraction | 0x3ff0000000000000ull);
  // The exponent as a number: integers below 2^52 are the low bits of 2^52 plus them.
  const double exponent = bit_cast<double>((bits >> 52) | 0x4330000000000000ull) - (4503599627370496.0 + 1023.0);
  const bool small = a <= 0.33333333333333333;
  const double s = small ? a : (1.0 + a - scaled) / (1.0 + a + scaled), z = s * s;
  const double near = s + s * z * poly(z, 0.3333333781, 0.1999943887, 0.1430844242, 0.1071382851, 0.1215046945);
  const double y = near - (small ? 0.0 : exponent * 0.34657359027997265471);
  const double limit = a == 1.0 ? kInfinity<double> : kNan<double>;
  return x != x ? x : float(with_sign_of(a < 1.0 ? y : limit, double(x)));
}

}  // namespace taeda::loops::TAEDA_ISA
