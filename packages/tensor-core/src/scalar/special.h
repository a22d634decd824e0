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

}  // namespace taeda::loops::TAEDA_ISA
