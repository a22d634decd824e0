// Places in rows that are in order, and places drawn by weights.
#pragma once
#include "kernels/random.h"

namespace taeda::cuda {

/// How many of a row stand before each value, or with `right` not behind it; NaN is last. A thread for each value.
template <class C>
struct Search {
  Array edges, values, out;
  int64_t length, per_row;  // values of a row; 0: there is one row
  int32_t right, reserved;
  TAEDA_HD static bool before(C a, C b) { return a < b || (b != b && a == a); }
  TAEDA_HD void operator()(int64_t i) const {
    const int64_t begin = per_row ? quotient(i, per_row) * length : 0;
    const C value = load<C>(values, i);
    int64_t low = 0, high = length;
    while (low < high) {
      const int64_t middle = low + (high - low) / 2;
      const C edge = load<C>(edges, begin + middle);
      if (right ? !before(value, edge) : before(edge, value)) low = middle + 1;
      else high = middle;
    }
    store<int64_t>(out, i, low);
  }
};

/// Rows of weights, of which `count` are drawn. What cannot be drawn from is reported with the row.
struct Weights {
  Array weights;
  int64_t length, count;
  Report report;
  /// Whether a weight is one; one that is not makes the row one that cannot be drawn from.
  TAEDA_HD static bool good(double w) { return w >= 0 && w - w == 0; }
  TAEDA_HD void check(int64_t row, bool all_good, bool some) const {
    if (!all_good) report(Wrong::Weights, row);
    else if (!some) report(Wrong::NoWeights, row);
  }
};
/// The race of exponential clocks: an element is the first to ring with a chance that is its share of the weights. A
/// block for each row. Where more than one is drawn the clocks are written down, those that never ring as -1: they are
/// drawn behind all others.
struct Race {
  static constexpr int kThreads = 256, kHalvings = 8;
  struct Best {
    double clock;
    int64_t place;
    bool good;
  };
  struct Shared {
    Best best[kThreads];
  };
  struct Own {};
  Weights of;
  Philox philox;
  Array clocks, first;
  TAEDA_HD int phases() const { return kHalvings + 2; }
  TAEDA_HD void run(int phase, int64_t row, int thread, Shared& shared, Own&) const {
    Best& mine = shared.best[thread];
    if (phase == 0) {
      mine = {-1, 0, true};
      for (int64_t i = thread; i < of.length; i += kThreads) {
        const int64_t at_place = row * of.length + i;
        const double w = load<double>(of.weights, at_place);
        double clock = -1;
        mine.good = mine.good && Weights::good(w);
        if (w > 0) clock = w / -log1p(-philox.unit(at_place));  // of a number in (0, 1]: finite but once in 2^53
        if (clocks.data) store<double>(clocks, at_place, clock);
        if (clock > mine.clock) mine.clock = clock, mine.place = i;
      }
    } else if (phase <= kHalvings) {
      const int half = kThreads >> phase;
      if (thread >= half) return;
      const Best& other = shared.best[thread + half];
      mine.good = mine.good && other.good;
      if (other.clock > mine.clock || (other.clock == mine.clock && other.place < mine.place))
        mine.clock = other.clock, mine.place = other.place;
    } else if (thread == 0) {
      of.check(row, mine.good, mine.clock >= 0);
      if (first.data) store<int64_t>(first, row, mine.place);
    }
  }
};
/// Draws with replacement by the sums of weights up to each, a thread for each draw.
struct DrawPlaces {
  Weights of;
  Philox philox;
  Array sums, out;
  TAEDA_HD void operator()(int64_t i) const {
    const int64_t row = quotient(i, of.count), begin = row * of.length;
    const double total = load<double>(sums, begin + of.length - 1), sought = philox.unit(i) * total;
    int64_t low = 0, high = of.length - 1;
    while (low < high) {
      const int64_t middle = low + (high - low) / 2;
      if (load<double>(sums, begin + middle) <= sought) low = middle + 1;
      else high = middle;
    }
    while (low > 0 && !(load<double>(of.weights, begin + low) > 0)) --low;  // rounding may go past the last weight
    store<int64_t>(out, i, low);
  }
};
/// A block for each row looks whether it can be drawn from.
struct CheckWeights {
  static constexpr int kThreads = Race::kThreads;
  struct Shared {
    int32_t good[kThreads], positive[kThreads];
  };
  struct Own {};
  Weights of;
  TAEDA_HD int phases() const { return 2; }
  TAEDA_HD void run(int phase, int64_t row, int thread, Shared& shared, Own&) const {
    if (phase == 0) {
      bool good = true, some = false;
      for (int64_t i = thread; i < of.length; i += kThreads) {
        const double w = load<double>(of.weights, row * of.length + i);
        good = good && Weights::good(w), some = some || w > 0;
      }
      shared.good[thread] = good, shared.positive[thread] = some;
    } else if (thread == 0) {
      bool good = true, some = false;
      for (int t = 0; t < kThreads; ++t) good = good && shared.good[t], some = some || shared.positive[t];
      of.check(row, good, some);
    }
  }
};

}  // namespace taeda::cuda
