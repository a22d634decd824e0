// Folds of real numbers whose result is more than their state: variances and norms, each in one pass.
#pragma once
#include "kernels/reduce.h"

namespace taeda::cuda {

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

}  // namespace taeda::cuda
