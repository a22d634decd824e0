// What comes before each of several states that are joined in order: of a block's threads, and of a line's parts.
#pragma once
#include "kernels/launch.h"

namespace taeda::cuda {

/// States of a block's threads, and what the threads before a thread have together.
template <class Op>
struct Before {
  static constexpr int kThreads = 256, kGroup = 16;
  using State = decltype(Op::start());
  State states[kThreads], groups[kThreads / kGroup];
  /// A phase between writing states and asking for what is before them.
  TAEDA_HD void fold(int thread) {
    if (thread >= kThreads / kGroup) return;
    State sum = Op::start();
    for (int j = thread * kGroup; j < (thread + 1) * kGroup; ++j) {
      const State next = Op::join(sum, states[j]);
      states[j] = sum;
      sum = next;
    }
    groups[thread] = sum;
  }
  TAEDA_HD State of(int thread) const {
    State sum = Op::start();
    for (int g = 0; g < thread / kGroup; ++g) sum = Op::join(sum, groups[g]);
    return Op::join(sum, states[thread]);
  }
};
/// A block for each line of `parts` states: each becomes what comes before it, and all together go where it is wanted.
template <class Op>
struct StartsOfParts {
  static constexpr int kThreads = Before<Op>::kThreads;
  using State = decltype(Op::start());
  using Shared = Before<Op>;
  struct Own {};
  Address states, totals;
  int64_t parts;
  TAEDA_HD int phases() const { return 3; }
  TAEDA_HD void run(int phase, int64_t line, int thread, Shared& shared, Own&) const {
    if (phase == 1) return shared.fold(thread);
    State* const of_line = at<State>(states) + line * parts;
    const int64_t stretch = (parts + kThreads - 1) / kThreads, begin = thread * stretch;
    const int64_t end = begin + stretch < parts ? begin + stretch : parts;
    State state = phase == 0 ? Op::start() : shared.of(thread);
    for (int64_t k = begin; k < end; ++k) {
      const State next = Op::join(state, of_line[k]);
      if (phase == 2) of_line[k] = state;
      state = next;
    }
    if (phase == 0) shared.states[thread] = state;
    else if (totals && thread == kThreads - 1) at<State>(totals)[line] = state;
  }
};

}  // namespace taeda::cuda
