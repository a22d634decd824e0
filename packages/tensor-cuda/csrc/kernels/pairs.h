// Losses of pairs of numbers, one by one or joined, and their gradients: each in one pass.
#pragma once
#include "kernels/elementwise.h"
#include "kernels/rows.h"

namespace taeda::cuda {

enum class PairLoss : int32_t { Squared, Absolute, Smooth, Huber, Entropy, Logits };

/// Row-major numbers and their targets; one that is alone has a step of 0.
struct Pairs {
  Array in, target;
  int64_t step_in, step_target, count;
  double parameter;
  PairLoss kind;
  int32_t reserved;
  Report report;
  /// Calls `see(i, x, t)` for up to four pairs from `first` on, which are read at once where they lie so.
  template <class C, class See>
  TAEDA_HD void four(int64_t first, const See& see) const {
    C x[4], t[4];
    const int n = int(count - first < 4 ? count - first : 4);
    read<C>(in, step_in, first, n, x);
    read<C>(target, step_target, first, n, t);
    TAEDA_UNROLL
    for (int v = 0; v < 4; ++v)
      if (v < n) see(first + v, x[v], t[v]);
  }
  template <class C>
  TAEDA_HD static void read(Array a, int64_t step, int64_t first, int n, C (&x)[4]) {
    bool done = false;
    if (step == 1 && n == 4)
      with_usual_type<C>(a.dtype, [&]<class T>() {
        if (a.data % (4 * sizeof(T)) != 0) return;
        fetch_pack<C, T, 4>(a.data, first, x);
        done = true;
      });
    if (done) return;
    for (int v = 0; v < 4; ++v) x[v] = v < n ? load<C>(a, (first + v) * step) : C(0);
  }
  template <class C>
  TAEDA_HD C loss(C x, C t) const {
    const C d = x - t, size = d < C(0) ? -d : d, p = C(parameter);
    switch (kind) {
      case PairLoss::Squared: return d * d;
      case PairLoss::Absolute: return size;
      case PairLoss::Smooth: return size < p ? d * d * (C(0.5) / p) : size - C(0.5) * p;
      case PairLoss::Huber: return size <= p ? d * d * C(0.5) : (size - C(0.5) * p) * p;
      case PairLoss::Entropy:
        expect_probability(x, Wrong::Probability), expect_probability(t, Wrong::TargetProbability);
        return -(t * bounded(C(log(x))) + (C(1) - t) * bounded(C(log1p(-x))));
      default: return (x > C(0) ? C(1) - t : -t) * x + C(log1p(exp(x < C(0) ? x : -x)));
    }
  }
  template <class C>
  TAEDA_HD C slope(C x, C t) const {
    const C d = x - t, size = d < C(0) ? -d : d, p = C(parameter), sign = C(d > C(0)) - C(d < C(0));
    switch (kind) {
      case PairLoss::Squared: return C(2) * d;
      case PairLoss::Absolute: return d != d ? d : sign;
      case PairLoss::Smooth: return p == C(0) || size >= p ? sign : d / p;
      case PairLoss::Huber: return size >= p ? sign * p : d;
      case PairLoss::Entropy: {
        const C spread = x * (C(1) - x);
        return d / (spread < C(1e-12) ? C(1e-12) : spread);
      }
      default: return C(1) / (C(1) + C(exp(-x))) - t;
    }
  }

 private:
  template <class C>
  TAEDA_HD void expect_probability(C x, Wrong what) const {
    if (!(x >= C(0) && x <= C(1))) report(what, loops::TAEDA_ISA::bit_cast<int64_t>(double(x)));
  }
  template <class C>
  TAEDA_HD static C bounded(C logarithm) {
    return logarithm < C(-100) ? C(-100) : logarithm;
  }
};
template <class C>
struct PairLosses {
  Pairs pairs;
  Array out;
  TAEDA_HD void operator()(int64_t item) const {
    pairs.four<C>(item * 4, [&](int64_t i, C x, C t) { store<C>(out, i, pairs.loss(x, t)); });
  }
};
/// A block for each part of the pairs, whose losses it adds up.
template <class C>
struct SumPairLosses {
  static constexpr int kThreads = 256, kHalvings = 8;
  static constexpr int64_t kPart = 8192;
  using Shared = Found<double, 1>;
  struct Own {};
  Pairs pairs;
  Address sums;  // of parts
  TAEDA_HD int phases() const { return kHalvings + 2; }
  TAEDA_HD void run(int phase, int64_t part, int thread, Shared& shared, Own&) const {
    if (phase > 0 && phase <= kHalvings) return shared.halve(phase - 1, thread, false);
    if (phase == 0) {
      const int64_t end = (part + 1) * kPart < pairs.count ? (part + 1) * kPart : pairs.count;
      double sum = 0;
      for (int64_t i = part * kPart + 4 * thread; i < end; i += 4 * kThreads)
        pairs.four<C>(i, [&](int64_t, C x, C t) { sum += double(pairs.loss(x, t)); });
      shared.parts[0][thread] = sum;
    } else if (thread == 0) {
      at<double>(sums)[part] = shared.parts[0][0];
    }
  }
};
/// The sum of those of all parts over a divisor; one block.
struct JoinPairLosses {
  static constexpr int kThreads = 256, kHalvings = 8;
  using Shared = Found<double, 1>;
  struct Own {};
  Address sums;
  int64_t parts;
  double divisor;
  Array out;
  TAEDA_HD int phases() const { return kHalvings + 2; }
  TAEDA_HD void run(int phase, int64_t, int thread, Shared& shared, Own&) const {
    if (phase > 0 && phase <= kHalvings) return shared.halve(phase - 1, thread, false);
    if (phase == 0) {
      double sum = 0;
      for (int64_t k = thread; k < parts; k += kThreads) sum += at<const double>(sums)[k];
      shared.parts[0][thread] = sum;
    } else if (thread == 0) {
      store<double>(out, 0, shared.parts[0][0] / divisor);
    }
  }
};
/// By what comes from above, of each pair or of all: `step_grad` is 0 then.
template <class C>
struct PairSlopes {
  Pairs pairs;
  Array grad, out;
  int64_t step_grad;
  double share;
  TAEDA_HD void operator()(int64_t item) const {
    pairs.four<C>(item * 4, [&](int64_t i, C x, C t) {
      store<C>(out, i, load<C>(grad, i * step_grad) * pairs.slope(x, t) * C(share));
    });
  }
};

}  // namespace taeda::cuda
