// Airy's function and Bessel's, one number at a time, right to little more than half a unit in the last place next to
// their zeros too: by pieces, and far away by phase and size.
//
// Formulas: NIST Digital Library of Mathematical Functions, 9.7, 9.8, 10.8, 10.18, 10.31.
#pragma once
#include <cmath>

#include "scalar/special.h"
#include "scalar/tables/airy.h"
#include "scalar/tables/bessel_j0.h"
#include "scalar/tables/bessel_j1.h"
#include "scalar/tables/bessel_y0.h"
#include "scalar/tables/bessel_y1.h"
#include "scalar/tables/modified.h"
#include "scalar/tables/phase.h"

namespace taeda::loops::TAEDA_ISA {

/// sin(x + count pi/2) of an x within pi/4 or so.
TAEDA_HD inline Pair sine_after_quarters(Pair x, int64_t count) {
  const double s = std::sin(x.high), c = std::cos(x.high);
  const Pair y = count & 1 ? ordered_sum(c, -s * x.low) : ordered_sum(s, c * x.low);
  return count & 2 ? -y : y;
}

TAEDA_HD inline double airy_ai_of(double x) {
  if (x != x) return x;
  if (x > 110 || x < -1e10) return x > 0 || x == -INFINITY ? 0 : NAN;
  if (x >= -16 && x <= 2) return rounded(by_pieces(kAiry, {x, 0}, -16, 4));
  const double a = magnitude(x);
  const Pair root = root_of({a, 0}), z = root * a * Pair{0.6666666666666666, 3.700743415417188e-17}, w = Pair{1, 0} / z;
  if (x > 0) {
    const Exponential e = exponential(-z);
    const Pair size = root_of(root) * Pair{3.544907701811032, -1.5333172999651597e-16};
    return scaled_by(by_pieces(kAiryFar, w, 0, 16) * e.fraction / size, e.exponent);
  }
  // The size times the sine of z + pi/4 and less.
  const double count = nearbyint(z.high * (2 / kPi) + 0.5);
  const Pair angle = less_eighths(z, 2 * count - 1) - kPhaseAiry.beside(w);
  const Pair size =
      root_of(Pair{kPhaseAiry.size_squared(w.high), 0} / (root * Pair{3.141592653589793, 1.2246467991473532e-16}));
  return rounded(sine_after_quarters(angle, int64_t(count)) * size);
}

/// What J_n, Y_n and K_n near 0 share: for n = 0 the sum over k of q^k / k!^2 (l + h(k)), l = -log(x/2) less Euler's
/// constant, h(k) = 1 + 1/2 + ... + 1/k; for n = 1 that over q^k / (k! (k + 1)!) (l + (h(k) + h(k + 1)) / 2).
template <int N>
TAEDA_HD inline Pair logarithmic_sum(Pair l, double q) {
  double term = 1, harmonic = N ? 0.5 : 0, rest = harmonic;
  double plain = 0;
  for (int k = 1; k < 12; ++k) {
    term *= q / (double(k) * (k + N));
    harmonic += N ? 0.5 / k + 0.5 / (k + 1) : 1.0 / k;
    plain += term;
    rest += term * harmonic;
  }
  return l + (l.high * plain + rest);
}
template <int N>
TAEDA_HD inline Pair negative_logarithm(double x) {
  return -log_pair({0.5 * x, 0}) - Pair{0.5772156649015329, -4.942915152430645e-18};
}
/// K_n(x), or with the sign of q turned -pi/2 Y_n(x), for x <= 1/2 and q = x^2 / 4.
template <int N>
TAEDA_HD inline Pair near_zero(double x, double q) {
  const Pair sum = logarithmic_sum<N>(negative_logarithm<N>(x), q);
  if (N == 0) return sum;
  return Pair{1, 0} / Pair{x, 0} + (q < 0 ? 0.5 : -0.5) * x * sum.high;
}

/// exp(-x) I_n(x) for 0 <= x < infinity.
template <int N>
TAEDA_HD inline Pair bessel_i_tail(double x) {
  if (x > 8) {
    const Pair t{8 / x, 0};
    return (N ? by_pieces(kI1Far, t, 0, 8) : by_pieces(kI0Far, t, 0, 8)) / root_of({x, 0});
  }
  return N ? by_pieces(kI1Near, {x, 0}, 0, 2) * x : by_pieces(kI0Near, {x, 0}, 0, 2);
}
template <int N>
TAEDA_HD inline double bessel_i_scaled(double x) {
  const double a = magnitude(x);
  if (!(a < INFINITY)) return x != x ? x : N ? with_sign_of(0.0, x) : 0;
  const double y = a > 1e300 ? 0.39894228040143267794 / sqrt(a) : rounded(bessel_i_tail<N>(a));
  return N ? with_sign_of(y, x) : y;
}
template <int N>
TAEDA_HD inline double bessel_i(double x) {
  const double a = magnitude(x);
  if (!(a < 720)) return x != x ? x : N ? with_sign_of(kInfinity<double>, x) : INFINITY;
  const Exponential e = exponential({a, 0});
  const double y = scaled_by(bessel_i_tail<N>(a) * e.fraction, e.exponent);
  return N ? with_sign_of(y, x) : y;
}
/// K_0 and K_1, and the same times exp(x).
template <int N>
TAEDA_HD inline double bessel_k(double x, bool with_exponential) {
  if (!(x > 0)) return x == 0 ? INFINITY : NAN;
  if (x < 0.5) {
    if (N && x < 1e-300) return 1 / x;
    const Pair y = near_zero<N>(x, 0.25 * x * x);
    return rounded(with_exponential ? y * exp_pair({x, 0}) : y);
  }
  if (x > 1e300) return with_exponential ? 1.2533141373155002512 / sqrt(x) : 0;
  const Pair t{1 / x, 0}, tail = (N ? by_pieces(kK1, t, 0, 8) : by_pieces(kK0, t, 0, 8)) / root_of({x, 0});
  if (with_exponential) return rounded(tail);
  if (x > 760) return 0;
  const Exponential e = exponential({-x, 0});
  return scaled_by(tail * e.fraction, e.exponent);
}

/// From here on J_n and Y_n are computed by phase and size; to where the angle of a whole number loses its digits.
inline constexpr double kPhaseFrom = 64, kPhaseTo = 0x1p50;
/// sqrt(2 / (pi x)) sin(x - (2 N + 1) pi/4 + quarters pi/2), and its corrections.
template <int N>
TAEDA_HD inline double by_phase(double x, int64_t quarters) {
  const Pair w = Pair{1, 0} / Pair{x, 0};
  const double count = nearbyint(x * (2 / kPi) - (N + 0.5));
  const Phase<13>& phase = N ? kPhase1 : kPhase0;
  const Pair angle = less_eighths({x, 0}, 2 * count + (2 * N + 1)) + phase.beside(w);
  const Pair size = root_of(Pair{phase.size_squared(w.high), 0} * w * Pair{0.6366197723675814, -3.935735335036497e-17});
  return rounded(sine_after_quarters(angle, int64_t(count) + quarters) * size);
}
template <int N>
TAEDA_HD inline double bessel_j_of(double x) {
  const double a = magnitude(x);
  if (!(a < kPhaseTo)) return N ? ::j1(x) : ::j0(x);
  const double y =
      a >= kPhaseFrom ? by_phase<N>(a, 1) : rounded(N ? by_pieces(kJ1, {a, 0}, 0, 2) : by_pieces(kJ0, {a, 0}, 0, 2));
  return N && x < 0 ? -y : y;
}
template <int N>
TAEDA_HD inline double bessel_y_of(double x) {
  if (!(x > 0)) return x == 0 ? -INFINITY : NAN;
  if (!(x < kPhaseTo)) return N ? ::y1(x) : ::y0(x);
  if (x >= kPhaseFrom) return by_phase<N>(x, 0);
  if (x >= 2) return rounded(N ? by_pieces(kY1, {x, 0}, 2, 2) : by_pieces(kY0, {x, 0}, 2, 2));
  if (x >= 0.5) return rounded(N ? by_pieces(kY1Near, {x, 0}, 0.5, 8) : by_pieces(kY0Near, {x, 0}, 0.5, 8));
  if (N && x < 1e-300) return -(2 / kPi) / x;
  return -rounded(near_zero<N>(x, -0.25 * x * x) * Pair{0.6366197723675814, -3.935735335036497e-17});
}

TAEDA_HD inline double spherical_j0(double x) {
  if (magnitude(x) == INFINITY) return 0;
  return x == 0 ? 1 : std::sin(x) / x;
}

}  // namespace taeda::loops::TAEDA_ISA
