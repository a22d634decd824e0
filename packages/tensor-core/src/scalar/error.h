// The error function's relatives, the normal distribution's functions and digamma for float32 numbers: in float64
// without branches, by series just long enough.
#pragma once
#include "scalar/power.h"

namespace taeda::loops::TAEDA_ISA {

/// exp(z^2) erfc(z) = t exp(exponent) for z >= 0: a polynomial in t = 1 / (1 + z / 2), a form that Hastings gave
/// (Approximations for Digital Computers, 1955).
struct ScaledTail {
  double t, exponent;
};
TAEDA_HD inline ScaledTail scaled_tail(double z) {
  constexpr double c[] = {-0.6717940851517215,    0.6726432205460084,     0.0473434175210675,
                          -0.046895482160995,     -0.009874534918291376,  0.00882355817764504,
                          0.001770666118629671,   -0.002339277724052592,  -0.00018278214171601266,
                          0.0006579538477710235,  -3.211377231212548e-05, -0.00015463379082966594,
                          1.3371503491274448e-05, 2.0723070957778815e-05};
  const double t = 1.0 / (1.0 + 0.5 * z);
  return {t, polynomial(c, 2.0 * t - 1.0)};
}
/// erfc(z) for z >= 0; 0 where float32 has nothing left.
TAEDA_HD inline double tail_of(ScaledTail s, double z) {
  const double e = s.exponent - z * z;
  return s.t * exp_core(e < -130.0 ? -130.0 : e);
}
TAEDA_HD inline double erfc_core(double x) {
  const double z = magnitude(x), y = tail_of(scaled_tail(z), z);
  return x != x ? x : x < 0.0 ? 2.0 - y : y;
}
TAEDA_HD inline float erfc_of(float x) { return float(erfc_core(double(x))); }
TAEDA_HD inline float erfcx_of(float x) {
  const double z = magnitude(double(x)), square = z * z;
  const ScaledTail s = scaled_tail(z);
  const double y = s.t * exp_core(s.exponent), mirrored = 2.0 * exp_core(square) - y;
  return x != x ? x : float(x < 0.0f ? mirrored : y);
}
TAEDA_HD inline float ndtr_of(float x) { return float(0.5 * erfc_core(double(x) * -0.70710678118654752440)); }
TAEDA_HD inline float log_ndtr_of(float x) {
  const double y = double(x), z = magnitude(y) * 0.70710678118654752440;
  const ScaledTail s = scaled_tail(z);
  const double q = 0.5 * tail_of(s, z), l = log2_core(y < 0.0 ? 0.5 * s.t : 1.0 - q) * 0.69314718055994530942;
  const double above = q < 0x1p-20 ? -q - 0.5 * q * q : l;
  return x != x ? x : float(y < 0.0 ? (l + s.exponent) - 0.5 * y * y : above);
}

/// erfinv(y) for |y| < 1 over w = -log(1 - y^2) up to 17: after Giles, "Approximating the erfinv function", 2010.
TAEDA_HD inline double erfinv_core(double y, double w) {
  constexpr double near_series[] = {1.5014093517282388,     0.6166006919867009,     -0.026108280762080514,
                                    -0.019573564270649057,  0.008525934497817092,   -0.0004878764749554979,
                                    -0.0008364687382200096, 0.00029213577974979843, 2.5157435365049296e-05,
                                    -4.140043618074984e-05, 4.149577433493437e-06,  2.9311370421177085e-06};
  constexpr double far_series[] = {3.026638164429193,      0.9613762618951328,     0.005553282738621455,
                                   -0.0038359103359023043, 0.002531582745754399,   -0.0016371780221048854,
                                   0.0008502717593379195,  -0.0002615175665062476, -2.9151173881156048e-05,
                                   6.864287326056324e-05,  -2.1095899769227682e-05};
  const double near = polynomial(near_series, w * 0.4 - 1.0);
  const double far = polynomial(far_series, (sqrt(magnitude(w)) - 3.1930339887498946) * 1.044969192472864);
  return y * (w < 5.0 ? near : far);
}
TAEDA_HD inline float erfinv_of(float x) {
  const double y = double(x), w = log2_core((1.0 - y) * (1.0 + y)) * -0.69314718055994530942;
  const double inside = erfinv_core(y, w), outside = magnitude(y) == 1.0 ? y * kInfinity<double> : kNan<double>;
  return float(magnitude(y) < 1.0 ? inside : outside);
}
/// Where `ndtri_of` of a float32 number holds: the series go no further.
TAEDA_HD inline bool ndtri_domain(float p) { return (p > 1e-8f) & (p < 1.0f); }
TAEDA_HD inline bool ndtri_domain(double) { return false; }
TAEDA_HD inline float ndtri_of(float p) {
  const double q = double(p), w = log2_core(4.0 * q * (1.0 - q)) * -0.69314718055994530942;
  return float(1.41421356237309504880 * erfinv_core(2.0 * q - 1.0, w));
}

/// The derivative of the logarithm of the gamma function.
TAEDA_HD inline float digamma_of(float value) {
  constexpr double pi = 3.14159265358979323846;
  const double x = double(value), magic = Format<double>::magic;
  // Below a half by reflection, below 8 from eight places further up: the sum of 1 / (y + k) is p' / p for the product
  // p of the y + k, which is a polynomial in y (y + 7).
  const bool reflected = x < 0.5;
  const double y = reflected ? 1.0 - x : x;
  const bool small = y < 8.0;
  const double u = y * (y + 7.0);
  const double sum =
      (2.0 * y + 7.0) * (((4.0 * u + 84.0) * u + 504.0) * u + 720.0) / (u * (((u + 28.0) * u + 252.0) * u + 720.0));
  const double z = small ? y + 8.0 : y, v = 1.0 / z, q = v * v;
  const double series = q * poly(q, 1.0 / 12, -1.0 / 120, 1.0 / 252, -1.0 / 240, 1.0 / 132, -691.0 / 32760);
  const double above = vlog(z) - 0.5 * v - series - (small ? sum : 0.0);
  const double turn = x < -0x1p23 ? 0.0 : x - ((x + magic) - magic);
  const double result = reflected ? above - pi / vtan(pi * turn) : above;
  const double pole = x == 0.0 ? with_sign_of(kInfinity<double>, -x) : kNan<double>;
  return x != x ? value : float((x <= 0.0) & (turn == 0.0) ? pole : result);
}
/// The derivative of digamma.
TAEDA_HD inline float trigamma_of(float value) {
  constexpr double pi = 3.14159265358979323846;
  const double x = double(value), magic = Format<double>::magic;
  // As digamma: the sum of 1 / (y + k)^2 is (p'^2 - p p'') / p^2, and p' is (2 y + 7) g of u = y (y + 7).
  const bool reflected = x < 0.5;
  const double y = reflected ? 1.0 - x : x;
  const bool small = y < 8.0;
  const double u = y * (y + 7.0), d = 2.0 * y + 7.0;
  const double p = u * (((u + 28.0) * u + 252.0) * u + 720.0), g = ((4.0 * u + 84.0) * u + 504.0) * u + 720.0;
  const double sum = (d * d * g * g - p * (2.0 * g + d * d * ((12.0 * u + 168.0) * u + 504.0))) / (p * p);
  const double z = small ? y + 8.0 : y, v = 1.0 / z, q = v * v;
  const double series = v * q * poly(q, 1.0 / 6, -1.0 / 30, 1.0 / 42, -1.0 / 30, 5.0 / 66, -691.0 / 2730);
  const double above = v + 0.5 * q + series + (small ? sum : 0.0);
  const double turn = x < -0x1p23 ? 0.0 : x - ((x + magic) - magic), slope = vtan(pi * turn);
  const double result = reflected ? pi * pi * (1.0 + 1.0 / (slope * slope)) - above : above;
  return x != x ? value : float((x <= 0.0) & (turn == 0.0) ? kInfinity<double> : result);
}

}  // namespace taeda::loops::TAEDA_ISA
