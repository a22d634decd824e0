// The incomplete gamma functions of float64 numbers, right to little more than half a unit in the last place: what is
// the smaller of the two, or nearly so, is computed by pairs of numbers, and the other one is what it leaves of 1.
//
// Formulas: NIST Digital Library of Mathematical Functions, 8.7, 8.9, 8.12.
#pragma once
#include <cmath>

#include "scalar/normal.h"
#include "scalar/tables/temme.h"

namespace taeda::loops::TAEDA_ISA {

TAEDA_HD inline Exponential operator*(Exponential a, Pair b) { return {a.fraction * b, a.exponent}; }
TAEDA_HD inline double rounded(Exponential a) { return scaled_by(a.fraction, a.exponent < -1200 ? -1200 : a.exponent); }
/// What a leaves of 1.
TAEDA_HD inline Pair missing(Exponential a) {
  if (a.exponent < -200) return {1, 0};
  return Pair{1, 0} - scaled(a.fraction, power_of_two(a.exponent));
}

/// log(1 + x) - x for x = (y - a) / a.
TAEDA_HD inline Pair log1p_less_x_pair(double y, double a) {
  const Pair x = exact_sum(y, -a) / Pair{a, 0};
  if (magnitude(x.high) > 0.125) return log_pair(Pair{y, 0} / Pair{a, 0}) - x;
  double tail = 0;
  for (int k = 22; k > 3; --k) tail = 1.0 / k - x.high * tail;
  return -(x * x) * (Pair{0.5, 0} - x * Pair{0.3333333333333333, 1.850371707708594e-17} + x.high * x.high * tail);
}
/// 1 / gamma(a + 1) for 0 <= a < 10.
TAEDA_HD inline Pair inverse_gamma_after(double a) {
  Pair y = exact_sum(1, a), product{1, 0};
  while (y.high > 2) {
    y = y + -1;
    product = product * y;
  }
  return by_pieces(kInverseGamma, y, 1, 16) / product;
}
/// x^a exp(-x) / gamma(a + 1).
TAEDA_HD inline Exponential gamma_density_pair(double a, double x) {
  if (a < 10) return exponential(log_pair({x, 0}) * a + -x) * inverse_gamma_after(a);
  const double q = 1 / (a * a);
  const double stirling_rest =
      (1. / 12 -
       q * (1. / 360 -
            q * (1. / 1260 -
                 q * (1. / 1680 - q * (1. / 1188 - q * (691. / 360360 - q * (1. / 156 - q * (3617. / 122400)))))))) /
      a;
  const Exponential e = exponential(log1p_less_x_pair(x, a) * a + -stirling_rest);
  return {e.fraction / root_of(Pair{6.283185307179586, 2.4492935982947064e-16} * a), e.exponent};
}
/// The lower function by its series.
TAEDA_HD inline Exponential gamma_series_pair(double a, double x) {
  Pair term{1, 0}, sum{1, 0};
  for (int k = 1; term.high > sum.high * 0x1p-68 && k < 5000; ++k) {
    term = term * x / exact_sum(a, k);
    sum = sum + term;
  }
  return gamma_density_pair(a, x) * sum;
}
/// The upper function for x above a, by Legendre's continued fraction: how many terms count is found forwards (Lentz),
/// and they are summed backwards.
TAEDA_HD inline Exponential gamma_fraction_pair(double a, double x) {
  double b = x + 1 - a, c = 1e300, d = 1 / b;
  int n = 1;
  for (; n < 5000; ++n) {
    const double part = -n * (n - a);
    b += 2;
    d = 1 / (part * d + b);
    c = b + part / c;
    if (magnitude(c * d - 1) < 0x1p-51) break;
  }
  n += n / 5 + 2;
  const Pair first = exact_sum(x, -a);
  Pair f = first + (2.0 * n + 1);
  for (int k = n; k > 0; --k) f = first + (2.0 * k - 1) - exact_sum(k, -a) * double(k) / f;
  return gamma_density_pair(a, x) * (Pair{a, 0} / f);
}
/// The upper function for a < 0.2 and x <= 1.1: 1 - x^a / gamma(a + 1) without cancellation, and the rest of the
/// series.
TAEDA_HD inline Pair gamma_upper_of_small(double a, double x) {
  Pair term{1, 0}, sum{0, 0};
  for (int n = 1; n < 200; ++n) {
    term = term * -x / Pair{double(n), 0};
    const Pair part = term / exact_sum(n, a);
    sum = sum + part;
    if (magnitude(part.high) <= 0x1p-68 * magnitude(sum.high)) break;
  }
  // log(gamma(a + 1)) over a.
  const double series =
      a * poly(a, 0.8224670334241132, -0.40068563438653143, 0.27058080842778454, -0.20738555102867398,
               0.1695571769974082, -0.1440498967688461, 0.12550966952474304, -0.11133426586956469, 0.1000994575127818,
               -0.09095401714582904, 0.083353840546109, -0.0769325164113522, 0.07143294629536133, -0.06666870588242046,
               0.06250095514121304, -0.058823978658684585, 0.055555767627403614, -0.05263167937961666,
               0.05000004769810169, -0.047619070330142226, 0.04545455629320467, -0.04347826605304026,
               0.04166666915034121, -0.04000000119214014, 0.03846153903467518, -0.037037037312989324,
               0.035714285847333355, -0.034482758684919304);
  const Pair l = (log_pair({x, 0}) - (Pair{-0.5772156649015329, 4.942915152430645e-18} + series)) * a;
  Pair less{0, 0};  // exp(l) - 1
  if (l.high < -0.1 || l.high > 0.1) less = exp_pair(l.high < -700 ? Pair{-700, 0} : l) + -1;
  else {
    double tail = 0;
    for (int k = 15; k > 2; --k) tail = (1 + tail) * l.high / k;
    less = l * (Pair{1, 0} + scaled(l, 0.5) * (Pair{1, 0} + tail));
  }
  return -less - (less + 1) * a * sum;
}

/// Where Temme's uniform expansion for large a is used, about x = a.
TAEDA_HD inline bool gamma_is_uniform(double a, double x) { return a > 20 && magnitude(x - a) < 0.3 * a; }
/// The sum of its terms, up to one that is `enough` of it. NIST DLMF 8.12.
TAEDA_HD inline double uniform_sum(double a, double eta, double enough) {
  double sum = 0, power = 1;
  for (const auto& row : kTemme) {
    double c = 0;
    for (int n = int(sizeof row / sizeof *row) - 1; n >= 0; --n) c = c * eta + row[n];
    const double term = c * power;
    sum += term;
    if (magnitude(term) < enough * magnitude(sum)) break;
    power /= a;
  }
  return sum;
}
/// The smaller one of the two functions.
TAEDA_HD inline Exponential gamma_uniform_pair(double a, double x) {
  const Pair square = -log1p_less_x_pair(x, a), exponent = square * a;
  const double size = sqrt(2 * square.high), sum = uniform_sum(a, x < a ? -size : size, 0x1p-56);
  const Pair middle = scaled(erfcx_pair(exponent.high > 0 ? root_of(exponent) : Pair{0, 0}), 0.5);
  const Pair rest = Pair{x < a ? -sum : sum, 0} / root_of(Pair{6.283185307179586, 2.4492935982947064e-16} * a);
  return exponential(-exponent) * (middle + rest);
}

/// The lower or the upper incomplete gamma function over gamma(a); they add up to 1.
TAEDA_HD inline double gamma_pair(double a, double x, bool upper) {
  if (!(x >= 0 && a >= 0)) return NAN;
  if (a == 0) return x > 0 ? double(!upper) : NAN;
  if (x == 0) return upper;
  if (a == INFINITY) return x == INFINITY ? NAN : double(upper);
  if (x == INFINITY) return !upper;
  // Where nothing is left of one of them.
  if (a > 1e300 || (x > 1e4 && x > 10 * a) || (a > 1e4 && x < 0.1 * a) || (a >= 10 && x < 1e-200))
    return x == a ? 0.5 : double((x < a) == upper);
  const bool uniform = gamma_is_uniform(a, x);
  if (!uniform && a < 0.2 && x <= 1.1) {
    const Pair q = gamma_upper_of_small(a, x);
    return upper ? rounded(q) : q.high < 0.9 ? rounded(Pair{1, 0} - q) : rounded(gamma_series_pair(a, x));
  }
  // Below a and a little more nothing is lost in the difference from 1.
  const bool lower = uniform ? x < a : x < a + 1 || x < 1.1;
  const Exponential y = uniform ? gamma_uniform_pair(a, x)
                        : lower ? gamma_series_pair(a, x)
                                : gamma_fraction_pair(a, x);
  return lower == upper ? rounded(missing(y)) : rounded(y);
}

}  // namespace taeda::loops::TAEDA_ISA
