// Hurwitz' zeta function, polygamma functions and incomplete gamma functions, one number at a time.
#pragma once
#include <algorithm>
#include <cmath>

#include "scalar/gamma.h"
#include "scalar/special.h"

namespace taeda::loops::TAEDA_ISA {

/// Sum of (q + k)^-s over k >= 0, by Euler and Maclaurin. NIST DLMF 25.11.
TAEDA_HD inline double zeta_of(double s, double q) {
  if (s != s || q != q || s < 1) return NAN;
  if (s == 1) return INFINITY;
  if (q <= 0) {
    if (q == std::floor(q)) return INFINITY;
    if (s != std::floor(s)) return NAN;
    // What lies below 0 is, mirrored, a difference of two such sums.
    const double part = q - std::floor(q), sign = std::fmod(s, 2) == 0 ? 1 : -1;
    return zeta_of(s, part) + sign * (zeta_of(s, 1 - part) - zeta_of(s, 1 - q));
  }
  if (q == INFINITY) return 0;
  double sum = 0, a = q;
  for (const double far = std::max(14.0, s + 4); a < far; a += 1) {
    const double term = std::pow(a, -s);
    sum += term;
    if (!(term > sum * 0x1p-54)) return sum;  // small beside the sum, or both are 0 or infinite
  }
  // Bernoulli numbers over factorials, B_2j / (2j)!.
  constexpr double bernoulli[] = {1. / 12,
                                  -1. / 720,
                                  1. / 30240,
                                  -1. / 1209600,
                                  1. / 47900160,
                                  -691. / 1307674368000.,
                                  1. / 74724249600.,
                                  -3617. / 10670622842880000.,
                                  43867. / 5109094217170944000.,
                                  -174611. / 802857662698291200000.,
                                  5.5090028283602295e-18,
                                  -1.3954464685812523e-19};
  const double power = std::pow(a, -s);
  double tail = power * a / (s - 1) + power / 2, rising = s * power / a;
  for (int j = 0; j < 12; ++j) {
    const double term = bernoulli[j] * rising;
    tail += term;
    if (!(std::abs(term) > std::abs(tail) * 0x1p-55)) break;
    rising *= (s + 2 * j + 1) * (s + 2 * j + 2) / (a * a);
  }
  return sum + tail;
}

/// The derivative of digamma above 0: upwards to where the asymptotic series holds.
TAEDA_HD inline double trigamma_of(double x) {
  double sum = 0;
  for (; x < 12; ++x) sum += 1 / (x * x);
  const double v = 1 / x, w = v * v;
  // Bernoulli numbers.
  constexpr double b[] = {1. / 6, -1. / 30, 1. / 42, -1. / 30, 5. / 66, -691. / 2730, 7. / 6};
  double series = 0;
  for (int k = 6; k >= 0; --k) series = (series + b[k]) * w;
  return sum + (v + (0.5 * w + v * series));
}
/// Derivative n of digamma.
TAEDA_HD inline double polygamma_of(double n, double x) {
  if (n == 0) return digamma_of(x);
  if (n == 1 && x > 0) return trigamma_of(x);
  const double sign = std::fmod(n, 2) == 0 ? -1 : 1;
  return sign * std::tgamma(n + 1) * zeta_of(n + 1, x);
}

/// log(1 + x) - x.
TAEDA_HD inline double log1p_less_x(double x) {
  if (x < -0.4 || x > 0.4) return std::log1p(x) - x;
  // log1p(x) = 2 atanh(s), s = x / (2 + x), and 2 s - x = -s x
  const double s = x / (2 + x), z = s * s;
  double sum = 0;
  for (int k = 21; k >= 1; --k) sum = (sum + 1. / (2 * k + 1)) * z;
  return s * (2 * sum - x);
}
/// log(gamma(1 + a)) for small a.
TAEDA_HD inline double log_gamma_1p(double a) {
  if (a > 0.1) return log_gamma_of(1 + a);
  constexpr double c[] = {
      -0.57721566490153286061, 0.822467033424113218,  -0.400685634386531428,  0.270580808427784548,
      -0.207385551028673985,   0.16955717699740819,   -0.144049896768846118,  0.125509669524743042,
      -0.11133426586956469,    0.100099457512781809,  -0.0909540171458290422, 0.083353840546109004,
      -0.0769325164113521915,  0.0714329462953613361, -0.066668705882420468};  // (-1)^k zeta(k) / k, from minus Euler's
                                                                               // constant on
  double sum = 0;
  for (int k = 14; k >= 0; --k) sum = (sum + c[k]) * a;
  return sum;
}
/// How small a part of a sum ends it, for results of type T.
template <class T> inline constexpr double kEnough = is_same<T, float> ? 0x1p-32 : 0x1p-54;
/// x^a exp(-x) / gamma(a + 1).
template <class T>
TAEDA_HD inline double gamma_density(double a, double x) {
  if (a < 10) {
    if (x > 750) return 0;
    if constexpr (is_same<T, float>) return vexp(a * vlog(x) - x - log_gamma_above(a + 1));
    else return std::pow(x, a) * std::exp(-x) / std::tgamma(a + 1);
  }
  const double q = 1 / (a * a),
               stirling_rest =
                   (1. / 12 -
                    q * (1. / 360 -
                         q * (1. / 1260 - q * (1. / 1680 - q * (1. / 1188 - q * (691. / 360360 - q / 156)))))) /
                   a;
  // Far below `a` the difference would lose digits of x / a.
  const double mu = (x - a) / a, l = mu < -0.4 ? std::log(x / a) - mu : log1p_less_x(mu);
  return std::exp(a * l - stirling_rest) / std::sqrt(2 * kPi * a);
}
template <class T>
TAEDA_HD inline double gamma_series(double a, double x) {
  double term = 1, sum = 1;
  for (int k = 1; term > sum * kEnough<T> && k < 2000; ++k) sum += term *= x / (a + k);
  return gamma_density<T>(a, x) * sum;
}
/// Of the upper function, for x above a: Legendre's continued fraction by Lentz' method.
template <class T>
TAEDA_HD inline double gamma_fraction(double a, double x) {
  double b = x + 1 - a, c = 1e300, d = 1 / b, h = d;
  for (int k = 1; k < 2000; ++k) {
    const double part = -k * (k - a);
    b += 2;
    d = 1 / (part * d + b);
    c = b + part / c;
    const double change = d * c;
    h *= change;
    if (std::abs(change - 1) < 2 * kEnough<T>) break;
  }
  const double density = gamma_density<T>(a, x);
  return density * a * h;
}
/// Of the upper function, for small numbers: 1 - x^a / gamma(a + 1) without cancellation, and the rest of the series.
template <class T>
TAEDA_HD inline double gamma_upper_series(double a, double x) {
  double term = 1, sum = 0;
  for (int n = 1; n < 2000; ++n) {
    term *= -x / n;
    const double part = term / (a + n);
    sum += part;
    if (std::abs(part) <= kEnough<T> * std::abs(sum)) break;
  }
  const double l = a * std::log(x) - log_gamma_1p(a);
  return -std::expm1(l) - std::exp(l) * a * sum;
}

/// Coefficients of Temme's uniform expansion for large a. NIST DLMF 8.12; the recurrences follow from 8.12.8
/// to 8.12.12.
struct TemmeTable {
  static constexpr int kOrders = 14, kTerms = 26, kFirst = kTerms + 2 * kOrders + 2;
  double d[kOrders][kTerms];
  TemmeTable() {
    long double alpha[kFirst + 3] = {0, 1}, inverse[kFirst + 2] = {1}, row[kFirst];
    for (int m = 3; m < kFirst + 3; ++m) {  // lambda - 1 = sum of alpha_n eta^n
      long double sum = 2 * alpha[m - 2] / m;
      for (int i = 2; i <= m - 2; ++i) sum -= alpha[i] * alpha[m - i];
      alpha[m - 1] = sum / 2;
    }
    for (int n = 1; n < kFirst + 1; ++n) {
      inverse[n] = 0;
      for (int i = 1; i <= n; ++i) inverse[n] -= alpha[i + 1] * inverse[n - i];
    }
    for (int n = 0; n < kFirst; ++n) row[n] = inverse[n + 1];
    for (int k = 0; k < kOrders; ++k) {
      for (int n = 0; n < kTerms; ++n) d[k][n] = double(row[n]);
      const long double factor = row[1];
      for (int n = 0; n + 2 < kFirst - 2 * k; ++n) row[n] = (n + 2) * row[n + 2] - factor * inverse[n + 1];
    }
  }
};
template <class T>
inline double gamma_uniform(double a, double x, bool upper) {
  static const TemmeTable table;
  const double mu = (x - a) / a, half_square = -log1p_less_x(mu);
  const double eta = std::copysign(std::sqrt(2 * half_square), mu);
  double sum = 0, power = 1;
  for (int k = 0; k < TemmeTable::kOrders; ++k) {
    double c = 0;
    for (int n = TemmeTable::kTerms - 1; n >= 0; --n) c = c * eta + table.d[k][n];
    const double term = c * power;
    sum += term;
    if (std::abs(term) < kEnough<T> * std::abs(sum)) break;
    power /= a;
  }
  const double rest = std::exp(-a * half_square) / std::sqrt(2 * kPi * a) * sum;
  const double middle = 0.5 * std::erfc((upper ? eta : -eta) * std::sqrt(a / 2));
  return upper ? middle + rest : middle - rest;
}
TAEDA_HD inline bool gamma_is_uniform(double a, double x) {
  const double distance = std::abs(x - a) / a;
  return (a > 20 && a < 200 && distance < 0.3) || (a >= 200 && distance < 4.5 / std::sqrt(a));
}

/// The lower and the upper incomplete gamma function over gamma(a); they add up to 1.
template <class T>
inline double gamma_upper(double a, double x) {
  if (!(x >= 0 && a >= 0)) return NAN;
  if (a == 0) return x > 0 ? 0 : NAN;
  if (x == 0) return 1;
  if (a == INFINITY) return x == INFINITY ? NAN : 1;
  if (x == INFINITY) return 0;
  if (gamma_is_uniform(a, x)) return gamma_uniform<T>(a, x, true);
  if (x > 1.1) return x < a ? 1 - gamma_series<T>(a, x) : gamma_fraction<T>(a, x);
  const bool low = x <= 0.5 ? -0.4 / std::log(x) < a : x * 1.1 < a;
  return low ? 1 - gamma_series<T>(a, x) : gamma_upper_series<T>(a, x);
}
template <class T>
inline double gamma_lower(double a, double x) {
  if (!(x >= 0 && a >= 0)) return NAN;
  if (a == 0) return x > 0 ? 1 : NAN;
  if (x == 0) return 0;
  if (a == INFINITY) return x == INFINITY ? NAN : 0;
  if (x == INFINITY) return 1;
  if (gamma_is_uniform(a, x)) return gamma_uniform<T>(a, x, false);
  return x > 1 && x > a ? 1 - gamma_upper<T>(a, x) : gamma_series<T>(a, x);
}

}  // namespace taeda::loops::TAEDA_ISA
