// The logarithm of the gamma function's magnitude for float32 numbers, computed in float64 without branches.
#pragma once
#include "scalar/math.h"

namespace taeda::loops::TAEDA_ISA {

/// Stirling's series for z >= 8; truncated behind a term below 1e-15.
TAEDA_HD inline double stirling(double z) {
  const double w = 1.0 / z, q = w * w;
  const double series = poly(q, 1.0 / 12, -1.0 / 360, 1.0 / 1260, -1.0 / 1680, 1.0 / 1188, -691.0 / 360360, 1.0 / 156);
  return (z - 0.5) * vlog(z) - z + (0.91893853320467274178 + w * series);
}

/// log(gamma(y)) for y >= 1/2, from eight places further up where y is below 8: gamma(y + 8) = gamma(y) y (y + 1) ...
/// (y + 7).
TAEDA_HD inline double log_gamma_above(double y) {
  const bool small = y < 8.0;
  const double u = y * (y + 7.0);
  const double rest = stirling(small ? y + 8.0 : y);
  return small ? rest - vlog((u * (u + 6.0)) * ((u + 10.0) * (u + 12.0))) : rest;
}

TAEDA_HD inline float vlgamma(float value) {
  const double x = double(value), inf = kInfinity<double>, pi = 3.14159265358979323846;
  // Below a half by reflection: |gamma(x) gamma(1 - x)| = pi / |sin(pi x)|.
  const bool reflected = x < 0.5;
  const double y = reflected ? 1.0 - x : x;
  // Below 8 from eight places further up: gamma(y + 8) = gamma(y) y (y + 1) ... (y + 7).
  const bool small = y < 8.0;
  const double u = y * (y + 7.0);
  const double product = small ? (u * (u + 6.0)) * ((u + 10.0) * (u + 12.0)) : 1.0;
  const double rest = stirling(small ? y + 8.0 : y);
  // Integers, as all large numbers are, leave nothing for the sine, and the quotient becomes infinite.
  const double turn = x < -0x1p23 ? 0.0 : x - ((x + Format<double>::magic) - Format<double>::magic);
  const double factor = reflected ? pi / magnitude(vsin(pi * turn)) * product : product;
  const double logarithm = vlog(factor);
  const double result = reflected ? logarithm - rest : rest - logarithm;
  const double finite = (x == 1.0) | (x == 2.0) ? 0.0 : result;  // exactly
  return magnitude(x) == inf ? float(inf) : float(finite);
}

}  // namespace taeda::loops::TAEDA_ISA
