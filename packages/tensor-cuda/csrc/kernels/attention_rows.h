// Attention between products of matrices: from scores to shares, and to the scores' gradients.
#pragma once
#include "kernels/attention.h"
#include "kernels/rows.h"

namespace taeda::cuda {

/// A row of scores, (samples, heads, queries, keys) from sample `first` on.
struct ScoreRow {
  int64_t n, h, q, row, begin;  // row: among those of all samples
  TAEDA_HD ScoreRow(const Attended& a, int64_t item, int64_t first) {
    const int64_t head = quotient(item, a.queries), sample = quotient(head, a.heads);
    q = item - head * a.queries, h = head - sample * a.heads, n = first + sample;
    row = (n * a.heads + h) * a.queries + q;
    begin = item * a.keys;
  }
};
/// exp(score - logsumexp of the row), a block for each row.
template <class C>
struct AttentionRows {
  static constexpr int kThreads = 256, kHalvings = 8;
  using Shared = Found<C, 1>;
  struct Own {
    C largest;
  };
  Attended a;
  Array scores, shares;
  int64_t first;
  TAEDA_HD int phases() const { return 2 * kHalvings + 4; }
  /// Whether the query sees the key, and its score.
  TAEDA_HD bool seen(const ScoreRow& at, int64_t k, C& score) const {
    if (!a.sees(at.n, at.h, at.q, k)) return false;
    score = load<C>(scores, at.begin + k) * C(a.scale) + a.template added<C>(at.n, at.h, at.q, k);
    return true;
  }
  TAEDA_HD void run(int phase, int64_t item, int thread, Shared& shared, Own& own) const {
    const ScoreRow at(a, item, first);
    C& part = shared.parts[0][thread];
    C s(0);
    if (phase == 0) {
      part = -loops::TAEDA_ISA::kInfinity<C>;
      for (int64_t k = thread; k < a.keys; k += kThreads)
        if (seen(at, k, s) && (s > part || s != s)) part = s;
    } else if (phase <= kHalvings) {
      shared.halve(phase - 1, thread, true);
    } else if (phase == kHalvings + 1) {
      own.largest = shared.parts[0][0];
    } else if (phase == kHalvings + 2) {
      part = C(0);
      for (int64_t k = thread; k < a.keys; k += kThreads)
        if (seen(at, k, s)) part += C(loops::TAEDA_ISA::vexp(s - own.largest));
    } else if (phase <= 2 * kHalvings + 2) {
      shared.halve(phase - kHalvings - 3, thread, false);
    } else {
      const bool blind = own.largest == -loops::TAEDA_ISA::kInfinity<C>;
      const C sum = shared.parts[0][0];
      for (int64_t k = thread; k < a.keys; k += kThreads) {
        const bool counts = !blind && seen(at, k, s);
        store<C>(shares, at.begin + k, counts ? C(loops::TAEDA_ISA::vexp(s - own.largest)) / sum : C(0));
      }
      if (thread == 0)
        store<C>(a.logsumexp, at.row, blind ? own.largest : own.largest + C(loops::TAEDA_ISA::vlog(sum)));
    }
  }
};
/// The shares again, and the gradients of the scores: share * (up - what is the same for the row) * scale.
template <class C>
struct AttentionSlopes {
  static constexpr int kThreads = 256;
  struct Shared {};
  struct Own {};
  Attended a;
  Array scores, ups, rows, shares, slopes;
  int64_t first;
  int32_t wanted, reserved;  // whether slopes are
  TAEDA_HD int phases() const { return 1; }
  TAEDA_HD void run(int, int64_t item, int thread, Shared&, Own&) const {
    const ScoreRow at(a, item, first);
    const C lse = load<C>(a.logsumexp, at.row), same = wanted ? load<C>(rows, at.row) : C(0);
    for (int64_t k = thread; k < a.keys; k += kThreads) {
      C x(0), slope(0);
      if (lse != -loops::TAEDA_ISA::kInfinity<C> && a.sees(at.n, at.h, at.q, k)) {
        const C s = load<C>(scores, at.begin + k) * C(a.scale) + a.template added<C>(at.n, at.h, at.q, k);
        x = C(loops::TAEDA_ISA::vexp(s - lse));
        if (wanted) slope = x * (load<C>(ups, at.begin + k) - same) * C(a.scale);
      }
      store<C>(shares, at.begin + k, x);
      if (wanted) store<C>(slopes, at.begin + k, slope);
    }
  }
};

}  // namespace taeda::cuda
