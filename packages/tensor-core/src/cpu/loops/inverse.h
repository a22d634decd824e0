// Inverse trigonometric and hyperbolic functions of float32 numbers: computed in float64 by series that are just long
// enough for results right to half a unit in the last place, with one division or root each.
#pragma once
#include "cpu/loops/math.h"

namespace taeda::loops::TAEDA_ISA {

/// asin(s) for s in [0, 0.5], z = s * s: relative error 3e-10.
inline double asin_core(double s, double z) {
  return s + s * z * poly(z, 0.166666599, 0.0750051092, 0.0445157196, 0.0318176175, 0.0144025815, 0.0375652378);
}
/// atan(t) for t in [0, 1]: relative error 2.3e-9.
inline double atan_core(double t) {
  const double z = t * t;
  return t + t * z * poly(z, -0.333333019, 0.199986386, -0.142652454, 0.109575759, -0.0841945789, 0.0582345246,
                          -0.0314556728, 0.0110644242, -0.00182720897);
}

/// What asin and acos share: beyond a half, asin(a) = pi/2 - 2 asin(sqrt((1 - a) / 2)).
struct HalfAngle {
  bool large;
  double angle;  // asin(a); when large, half of what is missing to pi/2
};
inline HalfAngle half_angle(double a) {
  const bool large = a > 0.5;
  const double z = large ? (1.0 - a) * 0.5 : a * a;
  return {large, asin_core(large ? std::sqrt(z) : a, z)};
}

inline float vasin(float x) {
  const HalfAngle h = half_angle(magnitude(double(x)));
  const double y = h.large ? 1.57079632679489661923 - 2.0 * h.angle : h.angle;
  return x != x ? x : float(with_sign_of(y, double(x)));
}
inline float vacos(float x) {
  const HalfAngle h = half_angle(magnitude(double(x)));
  const double near_one = x > 0 ? 2.0 * h.angle : 3.14159265358979323846 - 2.0 * h.angle;
  return float(h.large ? near_one : 1.57079632679489661923 - with_sign_of(h.angle, double(x)));
}
inline float vatan2(float y, float x) {
  const double a = magnitude(double(y)), b = magnitude(double(x)), large = a > b ? a : b, small = a > b ? b : a;
  const double slope = small == large ? double(large != 0.0) : small / large;  // 0 / 0 and inf / inf as well
  const double flat = atan_core(slope), first = a > b ? 1.57079632679489661923 - flat : flat;
  const bool left = std::bit_cast<uint32_t>(x) >> 31;
  const double angle = left ? 3.14159265358979323846 - first : first;
  return (x != x) | (y != y) ? x + y : float(with_sign_of(angle, double(y)));
}
inline float vatanh(float x) {
  const double a = magnitude(double(x));
  // Below 1e-4 the next term of the series is 3e-9 of the first; above, the logarithm has digits enough.
  const double y = a < 1e-4 ? a : 0.5 * vlog((1.0 + a) / (1.0 - a));
  return x != x ? x : float(with_sign_of(a > 1.0 ? std::numeric_limits<double>::quiet_NaN() : y, double(x)));
}

}  // namespace taeda::loops::TAEDA_ISA
