// Special functions of the host, one number at a time.
#pragma once
#include <cmath>

#include "scalar/exact.h"

namespace taeda::loops::TAEDA_ISA {

inline constexpr double kPi = 3.14159265358979323846;

TAEDA_HD inline double digamma_of(double x) {
  if (x == 0) return std::copysign(INFINITY, -x);
  if (x < 0) {
    if (x == std::floor(x)) return NAN;
    return digamma_of(1 - x) - kPi / std::tan(kPi * (x - std::floor(x)));
  }
  double shift = 0;
  for (; x < 10; ++x) shift -= 1 / x;
  const double z = 1 / (x * x);
  // Asymptotic series with Bernoulli numbers.
  const double series =
      z * (1. / 12 - z * (1. / 120 - z * (1. / 252 - z * (1. / 240 - z * (1. / 132 - z * (691. / 32760 - z / 12))))));
  return shift + std::log(x) - 0.5 / x - series;
}
/// exp(-|x|) * I_n(|x|), n = 0 or 1: power series, beyond 30 the asymptotic one.
TAEDA_HD inline double bessel_scaled(int n, double x) {
  x = std::abs(x);
  if (x != x) return x;
  if (x < 30) {
    double term = n ? x / 2 : 1, sum = term;
    for (int k = 1; k < 200 && term > sum * 1e-17; ++k) {
      term *= x * x / 4 / (double(k) * (k + n));
      sum += term;
    }
    return sum * std::exp(-x);
  }
  double term = 1, sum = 1;
  for (int k = 1; k < 30; ++k) {
    const double next = term * -(4.0 * n * n - (2 * k - 1.0) * (2 * k - 1.0)) / (8 * x * k);
    if (std::abs(next) > std::abs(term)) break;
    sum += term = next;
  }
  return sum / std::sqrt(2 * kPi * x);
}
/// I_n(|x|); the exponential in two halves, since its product with the scaled function may be finite where it is not.
TAEDA_HD inline double bessel(int n, double x) {
  const double half = std::exp(std::abs(x) / 2);
  return std::abs(x) > 1500 ? INFINITY : bessel_scaled(n, x) * half * half;
}

}  // namespace taeda::loops::TAEDA_ISA
