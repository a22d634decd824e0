// Logarithms of sums of exponentials.
#pragma once
#include "scalar/pairs.h"

namespace taeda::loops::TAEDA_ISA {

/// log(1 + e) for 0 <= e <= 1, as 2 atanh(e / (2 + e)); with a shorter series for float32 results.
template <class T>
TAEDA_HD inline double log1p_of_power(double e) {
  const double s = e / (2.0 + e), z = s * s;
  if constexpr (is_same<T, float>)
    return 2.0 * s + s * z *
                         poly(z, 0.6666666666665532, 0.40000000013063114, 0.28571426112416837, 0.22222397892023063,
                              0.18175687570070126, 0.1549981932800968, 0.12153361830054052, 0.1780828619579233);
  else
    return 2.0 * s + s * z *
                         poly(z, 0.6666666666666666, 0.39999999999999525, 0.285714285716001, 0.2222222219823677,
                              0.18181819897962714, 0.1538454396486055, 0.13335178631449257, 0.11734279061303197,
                              0.10845178394880015, 0.07492143795550767, 0.1563057780092285);
}
/// log(exp(a) + exp(b)), or that to base 2; of equal infinities the difference would be no number.
template <class T>
TAEDA_HD inline T log_add_exp(T a, T b) {
  const double high = double(a > b ? a : b), low = double(a > b ? b : a), d = a == b ? 0.0 : low - high;
  double e;
  if constexpr (is_same<T, float>) {
    e = vexp_small(d < -700.0 ? -700.0 : d);
  } else {
    const double lost = a == b ? 0.0 : exact_sum(low, -high).low;  // two conditions in one do not vectorise
    e = vexp(d);
    e += e * (d > -800.0 ? lost : 0.0);
  }
  return T(high + log1p_of_power<T>(e));
}
template <class T>
TAEDA_HD inline T log_add_exp2(T a, T b) {
  const double high = double(a > b ? a : b), low = double(a > b ? b : a), d = a == b ? 0.0 : low - high;
  return T(high + log1p_of_power<T>(vexp2(d)) * 1.44269504088896340736);
}

/// float64 numbers whose larger one, between `below` and `from`, is so little below 0 that the sum may be near 1 are
/// left to the functions below.
template <class T>
TAEDA_HD inline auto sum_is_not_one(T a, T b, double below, double from) {
  if constexpr (is_same<T, double>) {
    const double high = a > b ? a : b;
    return (high >= from) | !(high > below);
  } else {
    return Always();
  }
}
/// exp(x) - `less`, 0 or 1, for -30 < x < 3, right to about 2^-100 of what is small of it: by 32nds of log(2), as in
/// `exponential`, and Taylor's series.
TAEDA_HD inline Pair exp_precise(Pair x, double less) {
  const double magic = Format<double>::magic, shifted = fma(x.high, 46.16624130844683, magic), n = shifted - magic;
  const Pair r =
      Pair{x.high - n * 0x1.62e42fef80000p-6, x.low} - Pair{5.062034433330175e-13, -4.1014682555578923e-29} * n;
  Pair sum{1.0, 0.0};
  for (double k = 15.0; k > 1.0; k -= 1.0) sum = r * sum / Pair{k, 0.0} + 1.0;
  if (n == 0.0) return r * sum + (1.0 - less);
  const Pair power = (r * sum + 1.0) * kRootsOfTwo[bit_cast<uint64_t>(shifted) & 31];
  return scaled(power, power_of_two(floor(n * (1.0 / 32)))) + -less;
}
/// log(exp(a unit) + exp(b unit)) / unit where it may be near 0.
TAEDA_HD inline double log_add_powers(double a, double b, Pair unit, Pair inverse) {
  const double high = a > b ? a : b, low = a > b ? b : a;
  if (low != low || low < high - 100.0) return low != low ? low : high;
  const Pair e = exp_pair(exact_sum(low, -high) * unit);
  const Pair near = log_pair(e + 1.0) * inverse + high;
  if (magnitude(near.high) > 0x1p-8 || low < -28.0) return rounded(near);
  const Pair beyond = exp_precise(unit * high, 1.0) + exp_precise(unit * low, 0.0);
  const double u = beyond.high;
  return rounded((beyond + -(u * u * poly(u, 0.5, -1.0 / 3, 0.25, -0.2, 1.0 / 6, -1.0 / 7, 0.125))) * inverse);
}
template <class T>
TAEDA_HD inline T log_add_exp_near_one(T a, T b) {
  if constexpr (is_same<T, double>) {
    const double plain = log_add_exp(a, b);
    return magnitude(plain) > 0.5 ? plain : log_add_powers(a, b, {1.0, 0.0}, {1.0, 0.0});
  } else {
    return a;
  }
}
template <class T>
TAEDA_HD inline T log_add_exp2_near_one(T a, T b) {
  if constexpr (is_same<T, double>) {
    const double plain = a == b ? a + 1.0 : log_add_exp2(a, b);
    return a == b || magnitude(plain) > 1.0 ? plain
                                            : log_add_powers(a, b, {0.6931471805599453, 2.3190468138462996e-17},
                                                             {1.4426950408889634, 2.0355273740931033e-17});
  } else {
    return a;
  }
}

}  // namespace taeda::loops::TAEDA_ISA
