// Hurwitz' zeta function, polygamma functions and incomplete gamma functions, one number at a time.
#pragma once
#include <algorithm>
#include <cmath>
#include <type_traits>

#include "scalar/gamma.h"
#include "scalar/gamma_pairs.h"
#include "scalar/special.h"

namespace taeda::loops::TAEDA_ISA {

// Zeta functions are written once, for pairs and for numbers: float32 is right with the digits of the latter.
TAEDA_HD inline double leading(double a) { return a; }
TAEDA_HD inline double leading(Pair a) { return a.high; }
TAEDA_HD inline double rounded(double a) { return a; }
TAEDA_HD inline double scaled(double a, double power) { return a * power; }
/// a + b as a number of the kind R.
template <class R>
TAEDA_HD inline R sum_as(double a, double b) {
  if constexpr (is_same<R, Pair>) return exact_sum(a, b);
  else return a + b;
}
/// A number of the kind R, infinite ones and NaN included, of which a sum of two would make NaN.
template <class R>
TAEDA_HD inline R number_as(double a) {
  if constexpr (is_same<R, Pair>) return {a, 0};
  else return a;
}
/// a^-s for a > 0.
TAEDA_HD inline Pair inverse_power(Pair a, double s) {
  if (s == floor(s) && s <= 32) {
    Pair power{1, 0}, square = Pair{1, 0} / a;
    for (int k = int(s); k; k >>= 1, square = square * square)
      if (k & 1) power = power * square;
    if (power.high > 0x1p-800 && power.high < 0x1p800) return power;  // elsewhere low parts are lost
  }
  const Pair l = log_pair(a) * -s;
  if (!(magnitude(l.high) < 700)) return {std::pow(a.high, -s), 0};
  return exp_pair(l);
}
TAEDA_HD inline double inverse_power(double a, double s) {
  if (s != floor(s) || s > 32) return std::pow(a, -s);
  double power = 1, square = 1 / a;
  for (int k = int(s); k; k >>= 1, square *= square) power *= k & 1 ? square : 1;
  return power;
}
/// Sum of (q + k)^-s over k >= 0 for s > 1 and q > 0, by Euler and Maclaurin. NIST DLMF 25.11.
template <class R>
TAEDA_HD inline R zeta_above(double s, R q) {
  constexpr bool pairs = is_same<R, Pair>;
  R sum = number_as<R>(0), a = q;
  for (const double far = s > 10 ? s + 4 : pairs ? 14 : 8; leading(a) < far; a = a + 1) {
    const R term = inverse_power(a, s);
    if (!(leading(term) < INFINITY)) return term;
    sum = sum + term;
    if (!(leading(term) > leading(sum) * (pairs ? 0x1p-60 : 0x1p-36))) return sum;  // beside the sum, or both are 0
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
  const R power = inverse_power(a, s);
  const double inverse = 1 / leading(a), square = inverse * inverse;
  double tail = 0, rising = s * leading(power) * inverse;
  for (int j = 0; j < 12; ++j) {
    const double term = bernoulli[j] * rising;
    tail += term;
    if (!(magnitude(term) > magnitude(tail) * (pairs ? 0x1p-55 : 0x1p-32))) break;
    rising *= (s + 2 * j + 1) * (s + 2 * j + 2) * square;
  }
  return sum + (power * a / sum_as<R>(s, -1) + scaled(power, 0.5) + tail);
}
/// Hurwitz' zeta function, for q <= 0 the sum that leaves no term out.
template <class R>
TAEDA_HD inline R zeta_as(double s, double q) {
  if (s != s || q != q || s < 1) return number_as<R>(NAN);
  if (s == 1) return number_as<R>(INFINITY);
  if (q == INFINITY) return number_as<R>(0);
  if (q > 0) return zeta_above(s, number_as<R>(q));
  if (q == floor(q)) return number_as<R>(INFINITY);
  if (s != floor(s)) return number_as<R>(NAN);
  // What lies below 0 is, mirrored, a difference of two such sums.
  const R part = sum_as<R>(q, -floor(q)), rest = sum_as<R>(1, -q);
  const R mirrored = zeta_above(s, number_as<R>(1) - part) - zeta_above(s, rest), above = zeta_above(s, part);
  return std::fmod(s, 2) == 0 ? above + mirrored : above - mirrored;
}
/// The kind of number by which values of type T come out right.
template <class T>
using ZetaOf = std::conditional_t<is_same<T, float>, double, Pair>;
template <class T>
TAEDA_HD inline T zeta_of(T s, T q) {
  return T(rounded(zeta_as<ZetaOf<T>>(double(s), double(q))));
}

/// Where polygamma has a series of its own.
TAEDA_HD inline bool polygamma_domain(float n) { return n == 1.0f; }
TAEDA_HD inline bool polygamma_domain(double) { return false; }
/// Derivative n of digamma.
template <class T>
TAEDA_HD inline T polygamma_of(T order, T value) {
  const double n = double(order), x = double(value);
  if (n == 0) return digamma_of(value);
  const auto zeta = zeta_as<ZetaOf<T>>(n + 1, x);
  const double sign = std::fmod(n, 2) == 0 ? -1 : 1, size = leading(zeta);
  if (n > 170 || !(size < INFINITY) || magnitude(size) < 1e-290) return T(sign * std::tgamma(n + 1) * size);
  ZetaOf<T> factorial = number_as<ZetaOf<T>>(1);
  for (double k = 2; k <= n; ++k) factorial = factorial * k;
  return T(sign * rounded(factorial * zeta));
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

template <class T>
TAEDA_HD inline double gamma_uniform(double a, double x, bool upper) {
  const double mu = (x - a) / a, half_square = -log1p_less_x(mu);
  const double eta = std::copysign(std::sqrt(2 * half_square), mu), sum = uniform_sum(a, eta, kEnough<T>);
  const double rest = std::exp(-a * half_square) / std::sqrt(2 * kPi * a) * sum;
  const double middle = 0.5 * std::erfc((upper ? eta : -eta) * std::sqrt(a / 2));
  return upper ? middle + rest : middle - rest;
}
/// The lower and the upper incomplete gamma function over gamma(a); they add up to 1.
template <class T>
TAEDA_HD inline double gamma_upper(double a, double x) {
  if constexpr (is_same<T, double>) return gamma_pair(a, x, true);
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
TAEDA_HD inline double gamma_lower(double a, double x) {
  if constexpr (is_same<T, double>) return gamma_pair(a, x, false);
  if (!(x >= 0 && a >= 0)) return NAN;
  if (a == 0) return x > 0 ? 1 : NAN;
  if (x == 0) return 0;
  if (a == INFINITY) return x == INFINITY ? NAN : 0;
  if (x == INFINITY) return 1;
  if (gamma_is_uniform(a, x)) return gamma_uniform<T>(a, x, false);
  return x > 1 && x > a ? 1 - gamma_upper<T>(a, x) : gamma_series<T>(a, x);
}

}  // namespace taeda::loops::TAEDA_ISA
