// Folds of elements: what they come to, and how it is joined. Sums and products of real numbers are kept in float64.
#pragma once
#include "kernels/elementwise.h"

namespace taeda::cuda {

// --- what is folded: states that are joined in order ---

template <class C>
struct Sum {
  using Input = C;
  struct State {
    C value;
  };
  TAEDA_HD static State start() { return {C(0)}; }
  TAEDA_HD static State take(C value, int64_t) { return {value}; }
  TAEDA_HD static State join(State a, State b) { return {C(a.value + b.value)}; }
};
template <class C>
struct Product {
  using Input = C;
  struct State {
    C value;
  };
  TAEDA_HD static State start() { return {C(1)}; }
  TAEDA_HD static State take(C value, int64_t) { return {value}; }
  TAEDA_HD static State join(State a, State b) { return {C(a.value * b.value)}; }
};
/// Any, or with All all.
template <bool All>
struct Truth {
  using Input = bool;
  struct State {
    bool value;
  };
  TAEDA_HD static State start() { return {All}; }
  TAEDA_HD static State take(bool value, int64_t) { return {value}; }
  TAEDA_HD static State join(State a, State b) { return {All ? a.value && b.value : a.value || b.value}; }
};
/// The first extreme and its place; with Last the last one. A NaN is extreme.
template <class C, bool Largest, bool Last = false>
struct Extreme {
  using Input = C;
  struct State {
    C value;
    int64_t place;
  };
  TAEDA_HD static State start() { return {C(0), -1}; }
  TAEDA_HD static State take(C value, int64_t place) { return {value, place}; }
  TAEDA_HD static State join(State a, State b) {
    if (a.place < 0) return b;
    if (b.place < 0) return a;
    const bool nan_a = a.value != a.value, nan_b = b.value != b.value;
    if (nan_a || nan_b) return nan_b && (Last || !nan_a) ? b : a;
    if (a.value == b.value) return Last ? b : a;
    return (Largest ? b.value > a.value : b.value < a.value) ? b : a;
  }
};

// --- what is more than its state: variances and norms, each in one pass ---

/// Sum of squared deviations from the mean, by those from an element: of numbers far from 0, too, they are small. What
/// is lost is at most the number of elements times what rounding loses (Chan, Golub and LeVeque, "Algorithms for
/// computing the sample variance", 1983).
struct Moments {
  using Input = double;
  struct State {
    double from, sum, squares;
    int64_t count;
    /// Divided by the count less a correction.
    TAEDA_HD double result(double correction) const {
      const double n = double(count), all = squares - sum * sum / n, degrees = n - correction;
      return (all < 0 ? 0 : all) / (degrees > 0 ? degrees : 0);
    }
  };
  TAEDA_HD static State start() { return {0, 0, 0, 0}; }
  TAEDA_HD static State take(double value, int64_t) {
    const double none = value - value;  // of what is not finite there is no deviation
    return {value, none, none, 1};
  }
  TAEDA_HD static State join(State a, State b) {
    if (a.count == 0) return b;
    if (b.count == 0) return a;
    const double off = b.from - a.from, n = double(b.count);
    return {a.from, a.sum + b.sum + n * off, a.squares + b.squares + off * (2 * b.sum + n * off), a.count + b.count};
  }
};

/// Sums of what elements come to by `Of`, and what is made of a sum.
template <class Of>
struct NormSum {
  using Input = double;
  struct State {
    double value;
    TAEDA_HD double result(double order) const { return Of::result(value, order); }
  };
  TAEDA_HD static State start() { return {0}; }
  TAEDA_HD static State take(double value, int64_t, double order) { return {Of::take(value, order)}; }
  TAEDA_HD static State join(State a, State b) { return {a.value + b.value}; }
};
struct OfSizes {
  TAEDA_HD static double take(double x, double) { return fabs(x); }
  TAEDA_HD static double result(double sum, double) { return sum; }
};
struct OfSquares {
  TAEDA_HD static double take(double x, double) { return x * x; }
  TAEDA_HD static double result(double sum, double) { return sqrt(sum); }
};
struct OfPowers {
  TAEDA_HD static double take(double x, double order) { return pow(fabs(x), order); }
  TAEDA_HD static double result(double sum, double order) { return pow(sum, 1 / order); }
};
struct OfTruths {
  TAEDA_HD static double take(double x, double) { return x != 0; }
  TAEDA_HD static double result(double sum, double) { return sum; }
};
/// The largest or smallest size; a NaN is both. Of nothing it is 0.
template <bool Largest>
struct NormExtreme {
  using Input = double;
  struct State {
    double value;
    bool some;
    TAEDA_HD double result(double) const { return value; }
  };
  TAEDA_HD static State start() { return {0, false}; }
  TAEDA_HD static State take(double value, int64_t) { return {fabs(value), true}; }
  TAEDA_HD static State join(State a, State b) {
    if (!a.some || !b.some) return a.some ? a : b;
    if (a.value != a.value || b.value != b.value) return a.value != a.value ? a : b;
    return (Largest ? b.value > a.value : b.value < a.value) ? b : a;
  }
};

// --- where elements lie, and results go ---

/// Which elements, and where the results go.
struct Fold {
  Walk kept, across;      // where an output's elements begin, and where they lie from there
  int64_t length;         // elements of an output
  int64_t parts, part;    // in so many parts of so many elements
  Array in, out, places;  // row-major results; what is not wanted has no address
  Address partial;        // states of the parts
  double divisor;         // of sums; a number that the operation knows
  template <class State>
  TAEDA_HD void finish(int64_t output, State s) const {
    if constexpr (requires { s.result(divisor); }) {
      store<double>(out, output, s.result(divisor));
    } else {
      using C = decltype(s.value);
      if (out.data) {
        if constexpr (is_float<C>) s.value = divisor != 1 ? s.value / divisor : s.value;
        if constexpr (is_complex<C>)
          if (divisor != 1) s.value = C(s.value.re / divisor, s.value.im / divisor);
        store<C>(out, output, s.value);
      }
      if constexpr (requires { s.place; })
        if (places.data) store<int64_t>(places, output, s.place);
    }
  }
  /// What an element comes to.
  template <class Op, class C>
  TAEDA_HD auto taken(C value, int64_t i) const {
    if constexpr (requires { Op::take(value, i, divisor); }) return Op::take(value, i, divisor);
    else return Op::take(value, i);
  }
};
/// Elements are met out of order: of equal extremes the earlier one is the first.
template <class Op, class State>
TAEDA_HD inline State joined_in_order(State a, State b) {
  if constexpr (requires { a.place; })
    if (b.place >= 0 && (a.place < 0 || b.place < a.place)) return Op::join(b, a);
  return Op::join(a, b);
}

}  // namespace taeda::cuda
