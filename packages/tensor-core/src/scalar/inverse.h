// Inverse trigonometric and hyperbolic functions of float32 numbers: computed in float64 by series that are just long
// enough for results right to half a unit in the last place, with one division or root each.
#pragma once
#include "scalar/single.h"

namespace taeda::loops::TAEDA_ISA {

/// atan(t) for t in [0, 1]: relative error 2.3e-9.
TAEDA_HD inline double atan_core(double t) {
  const double z = t * t;
  return fma(t * z,
             poly(z, -0.333333019, 0.199986386, -0.142652454, 0.109575759, -0.0841945789, 0.0582345246, -0.0314556728,
                  0.0110644242, -0.00182720897),
             t);
}

TAEDA_HD inline float vatan(float x) {
  const double a = magnitude(double(x));
  const bool steep = a > 1.0;
  const double angle = atan_core(steep ? 1.0 / a : a);
  return x != x ? x : float(with_sign_of(steep ? 1.57079632679489661923 - angle : angle, double(x)));
}

/// In float64, by shorter series than that of float64 numbers.
TAEDA_HD inline float vtan(float x) {
  const double magic = Format<double>::magic, y = double(x), shifted = fma(y, 0.63661977236758134308, magic);
  const double n = shifted - magic, r = fma(-n, 0x1.0b4611a626331p-34, fma(-n, 0x1.921fb544p+0, y)), z = r * r;
  const double s = fma(r * z, poly(z, -0.166666666411, 0.00833332932546, -0.000198393151544, 2.71812204688e-6), r);
  const double c = fma(z * z, poly(z, 0.0416666465633, -0.00138873520451, 2.44366140453e-5), fma(-0.5, z, 1.0));
  const double quotient = bit_cast<uint64_t>(shifted) & 1 ? -c / s : s / c;
  return x == 0.0f ? x : float(quotient);
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
  const double near = fma(s * z, poly(z, 0.3333333781, 0.1999943887, 0.1430844242, 0.1071382851, 0.1215046945), s);
  const double y = near - (small ? 0.0 : exponent * 0.34657359027997265471);
  const double limit = a == 1.0 ? kInfinity<double> : kNan<double>;
  return x != x ? x : float(with_sign_of(a < 1.0 ? y : limit, double(x)));
}

}  // namespace taeda::loops::TAEDA_ISA
