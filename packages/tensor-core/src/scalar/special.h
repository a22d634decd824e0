// Special functions of the host, one number at a time.
#pragma once
#include <cmath>

#include "scalar/exact.h"
#include "scalar/tables/gamma.h"

namespace taeda::loops::TAEDA_ISA {

inline constexpr double kPi = 3.14159265358979323846;

/// log(gamma(x)) for x >= 8, by Stirling's series.
TAEDA_HD inline double stirling_precise(double x) {
  const double w = 1 / x, q = w * w;
  const double series =
      w * poly(q, 1. / 12, -1. / 360, 1. / 1260, -1. / 1680, 1. / 1188, -691. / 360360, 1. / 156, -3617. / 122400);
  return rounded((log_pair({x, 0}) + -1) * exact_sum(x, -0.5) + (0.41893853320467274178 + series));
}
/// digamma(x) for x > 0.
TAEDA_HD inline Pair digamma_above(Pair x) {
  if (x.high < 1e-300) return {-1 / x.high, 0};
  if (x.high < 1) return digamma_above(x + 1) - Pair{1, 0} / x;
  if (x.high < 2) return expanded(kDigammaZero[0], x);
  if (x.high < 10) return by_pieces(kDigamma, x, 2, 2);
  const double z = 1 / x.high / x.high;
  // Asymptotic series with Bernoulli numbers.
  const double series =
      z *
      (1. / 12 - z * (1. / 120 -
                      z * (1. / 252 -
                           z * (1. / 240 - z * (1. / 132 - z * (691. / 32760 - z * (1. / 12 - z * (3617. / 8160))))))));
  return log_pair(x) + -(0.5 / x.high + series);
}
TAEDA_HD inline double digamma_of(double x) {
  if (x == 0) return with_sign_of(kInfinity<double>, -x);
  if (!(x < INFINITY)) return x;
  if (x > 0) return rounded(digamma_above({x, 0}));
  const double turn = x - nearbyint(x), part = magnitude(turn);
  if (!(part > 0)) return NAN;
  // pi cot(pi x), of which 1 / x is taken apart.
  const Pair cotangent = Pair{1, 0} / Pair{part, 0} + by_pieces(kCotangent, {part, 0}, 0, 16);
  const Pair above = digamma_above(exact_sum(1, -x));
  return rounded(turn > 0 ? above - cotangent : above + cotangent);
}

}  // namespace taeda::loops::TAEDA_ISA
