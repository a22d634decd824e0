// Functions by pieces: polynomials about points, whose first coefficient and point are pairs of numbers.
//
// What remains of an expansion is small beside its first term, so little of its rounding is left in the result. About a
// zero of the function the expansion is one of the function over the distance, and results next to it keep all digits.
// The tables are computed by tools/expansions.py.
#pragma once
#include "scalar/pairs.h"

namespace taeda::loops::TAEDA_ISA {

/// Around center + offset: c[0] + rest + c[1] d + ...; where c[0] is 0 it is d (c[1] + rest + c[2] d + ...).
template <int N>
struct Expansion {
  double center, offset, rest, c[N];
};
template <int N>
TAEDA_HD inline Pair expanded(const Expansion<N>& e, Pair x) {
  const double whole = x.high - e.center, part = x.low - e.offset, d = whole + part;
  const bool zero = e.c[0] == 0.0;
  double sum = e.c[N - 1];
  for (int k = N - 2; k > 1; --k) sum = fma(sum, d, e.c[k]);
  if (zero) return ordered_sum(e.c[1], fma(sum, d, e.rest)) * exact_sum(whole, part);
  return ordered_sum(e.c[0], fma(fma(sum, d, e.c[1]), d, e.rest));
}
/// The piece of a table whose pieces are 1 / pieces_in_one wide, from `low` on; what lies beyond takes the last.
template <int N, int Count>
TAEDA_HD inline Pair by_pieces(const Expansion<N> (&table)[Count], Pair x, double low, double pieces_in_one) {
  const double place = (x.high - low) * pieces_in_one;
  const int k = place > 0.0 ? (place < Count ? int(place) : Count - 1) : 0;
  return expanded(table[k], x);
}

/// How an oscillating function goes on far away: c[0] + c[1] / x^2 + ... of the phase and of the square of its size.
template <int N>
struct Phase {
  Pair angle[N];
  double square[N];
  /// What the phase has beside x and a constant, for w = 1 / x.
  TAEDA_HD Pair beside(Pair w) const {
    const Pair s = w * w;
    Pair sum = angle[N - 1];
    for (int k = N - 2; k >= 0; --k) sum = sum * s + angle[k];
    return sum * w;
  }
  TAEDA_HD double size_squared(double w) const {
    const double s = w * w;
    double sum = square[N - 1];
    for (int k = N - 2; k >= 0; --k) sum = fma(sum, s, square[k]);
    return sum;
  }
};
/// x less `count` eighths of a turn, for whole counts to 2^52.
TAEDA_HD inline Pair less_eighths(Pair x, double count) {
  const Pair first = exact_product(count, 0.78539816339744830962), second = exact_product(count, 3.061616997868383e-17);
  return ((x - first) - second) + -count * -7.486924524295849e-34;
}

}  // namespace taeda::loops::TAEDA_ISA
