// Folds of elements along dimensions, and their running values. Sums and products of real numbers are kept in float64.
#pragma once
#include "scalar/arith.h"

#include "kernels/before.h"
#include "kernels/fold.h"

namespace taeda::cuda {

template <class C>
struct LogSum {
  using Input = C;
  struct State {
    C value;
    bool some;
  };
  TAEDA_HD static State start() { return {C(0), false}; }
  TAEDA_HD static State take(C value, int64_t) { return {value, true}; }
  TAEDA_HD static State join(State a, State b) {
    if (!a.some) return b;
    if (!b.some) return a;
    if (a.value != a.value) return a;
    if (b.value != b.value) return b;
    return {loops::TAEDA_ISA::log_add_exp(a.value, b.value), true};
  }
};

// --- folds ---

/// A thread for each output.
template <class Op>
struct FoldEach {
  Fold fold;
  TAEDA_HD void operator()(int64_t output) const {
    using C = typename Op::Input;
    const int64_t begin = fold.kept.offset(output);
    auto state = Op::start();
    for (int64_t i = 0; i < fold.length; ++i)
      state = Op::join(state, fold.template taken<Op>(load<C>(fold.in, begin + fold.across.offset(i)), i));
    fold.finish(output, state);
  }
};
/// What elements `first`, `first + step`... before `end` of an output that begins at `origin` come to: several are read
/// before they are joined.
template <class Op>
TAEDA_HD inline auto folded(const Fold& fold, int64_t origin, int64_t first, int64_t end, int64_t step) {
  using C = typename Op::Input;
  constexpr int kAtOnce = 8;
  auto state = Op::start();
  int64_t i = first;
  if (fold.across.ndim <= 1) {
    const int64_t stride = fold.across.ndim ? fold.across.strides[0] : 0;
    with_usual_type<C>(fold.in.dtype, [&]<class T>() {
      const T* const from = at<const T>(fold.in.data) + origin;
      for (; i + (kAtOnce - 1) * step < end; i += kAtOnce * step) {
        T x[kAtOnce];
        TAEDA_UNROLL
        for (int k = 0; k < kAtOnce; ++k) x[k] = from[(i + k * step) * stride];
        TAEDA_UNROLL
        for (int k = 0; k < kAtOnce; ++k)
          state = Op::join(state, fold.template taken<Op>(number_as<C>(x[k]), i + k * step));
      }
    });
  }
  for (; i < end; i += step)
    state = Op::join(state, fold.template taken<Op>(load<C>(fold.in, origin + fold.across.offset(i)), i));
  return state;
}
/// The same of elements beside each other, for one of `threads` that take packs in turn; where packs lie aligned.
template <class Op>
TAEDA_HD inline auto folded_packs(const Fold& fold, int64_t origin, int64_t begin, int64_t end, int thread,
                                  int threads) {
  using C = typename Op::Input;
  constexpr int kAtOnce = 4;
  auto state = Op::start();
  const bool straight = fold.across.ndim == 1 && fold.across.strides[0] == 1;
  bool done = false;
  if (straight)
    with_usual_type<C>(fold.in.dtype, [&]<class T>() {
      constexpr int kPack = sizeof(T) >= 8 ? 2 : sizeof(T) == 4 ? 4 : 8;
      using Several = Pack<T, kPack>;
      const Address first = fold.in.data + uint64_t(origin + begin) * sizeof(T);
      if (first % sizeof(Several) != 0) return;
      const Several* const from = at<const Several>(first);
      const int64_t packs = (end - begin) / kPack;
      const auto take = [&](const Several& x, int64_t u) {
        TAEDA_UNROLL
        for (int v = 0; v < kPack; ++v)
          state = Op::join(state, fold.template taken<Op>(number_as<C>(x.values[v]), begin + u * kPack + v));
      };
      int64_t u = thread;
      for (; u + (kAtOnce - 1) * threads < packs; u += kAtOnce * threads) {
        Several x[kAtOnce];
        TAEDA_UNROLL
        for (int k = 0; k < kAtOnce; ++k) x[k] = from[u + k * threads];
        TAEDA_UNROLL
        for (int k = 0; k < kAtOnce; ++k) take(x[k], u + k * threads);
      }
      for (; u < packs; u += threads) take(from[u], u);
      for (int64_t i = begin + packs * kPack + thread; i < end; i += threads)
        state = Op::join(state, fold.template taken<Op>(number_as<C>(at<const T>(first)[i - begin]), i));
      done = true;
    });
  return done ? state : folded<Op>(fold, origin, begin + thread, end, threads);
}
/// A block for each part of `Rows` outputs: threads take elements that lie beside each other, and halve their number.
template <class Op, int Rows>
struct FoldBlock {
  static constexpr int kThreads = 256, kAcross = kThreads / Rows;
  using State = decltype(Op::start());
  Fold fold;
  int64_t outputs;
  struct Shared {
    State states[kThreads];
  };
  struct Own {};
  TAEDA_HD static constexpr int halvings() {
    int count = 0;
    for (int n = kAcross; n > 1; n /= 2) ++count;
    return count;
  }
  TAEDA_HD int phases() const { return 2 + halvings(); }
  TAEDA_HD void run(int phase, int64_t item, int thread, Shared& shared, Own&) const {
    const int64_t part = item % fold.parts, output = item / fold.parts * Rows + thread / kAcross;
    const int lane = thread % kAcross;
    if (output >= outputs) return;
    if (phase == 0) {
      const int64_t begin = part * fold.part;
      const int64_t end = begin + fold.part < fold.length ? begin + fold.part : fold.length;
      shared.states[thread] = folded_packs<Op>(fold, fold.kept.offset(output), begin, end, lane, kAcross);
    } else if (phase <= halvings()) {
      const int half = kAcross >> phase;
      if (lane < half) shared.states[thread] = joined_in_order<Op>(shared.states[thread], shared.states[thread + half]);
    } else if (lane == 0) {
      if (fold.parts == 1) fold.finish(output, shared.states[thread]);
      else at<State>(fold.partial)[output * fold.parts + part] = shared.states[thread];
    }
  }
};
/// A block for each part of as many outputs as lie beside each other: so do the elements that its threads read.
template <class Op>
struct FoldTile {
  static constexpr int kThreads = 256, kAcross = 32, kDown = kThreads / kAcross, kHalvings = 3;
  using State = decltype(Op::start());
  Fold fold;
  int64_t outputs;
  struct Shared {
    State states[kThreads];
  };
  struct Own {};
  TAEDA_HD int phases() const { return 2 + kHalvings; }
  TAEDA_HD void run(int phase, int64_t item, int thread, Shared& shared, Own&) const {
    const int64_t part = item % fold.parts, output = item / fold.parts * kAcross + thread % kAcross;
    if (output >= outputs) return;
    if (phase == 0) {
      const int64_t begin = part * fold.part;
      const int64_t end = begin + fold.part < fold.length ? begin + fold.part : fold.length;
      shared.states[thread] = folded<Op>(fold, fold.kept.offset(output), begin + thread / kAcross, end, kDown);
    } else if (phase <= kHalvings) {
      const int half = kThreads >> phase;
      if (thread < half)
        shared.states[thread] = joined_in_order<Op>(shared.states[thread], shared.states[thread + half]);
    } else if (thread < kAcross) {
      if (fold.parts == 1) fold.finish(output, shared.states[thread]);
      else at<State>(fold.partial)[output * fold.parts + part] = shared.states[thread];
    }
  }
};
/// Outputs that came in parts: 32 threads take an output's parts in turn, and one of them joins what these found.
template <class Op>
struct FoldParts {
  static constexpr int kThreads = 256, kAcross = 32, kRows = kThreads / kAcross;
  using State = decltype(Op::start());
  Fold fold;
  int64_t outputs;
  struct Shared {
    State states[kThreads];
  };
  struct Own {};
  TAEDA_HD int phases() const { return 2; }
  TAEDA_HD void run(int phase, int64_t item, int thread, Shared& shared, Own&) const {
    const int64_t output = item * kRows + thread / kAcross;
    const int lane = thread % kAcross;
    if (output >= outputs) return;
    const State* const parts = at<const State>(fold.partial) + output * fold.parts;
    State state = Op::start();
    if (phase == 0) {
      for (int64_t k = lane; k < fold.parts; k += kAcross) state = joined_in_order<Op>(state, parts[k]);
      shared.states[thread] = state;
    } else if (lane == 0) {
      for (int k = 0; k < kAcross; ++k) state = joined_in_order<Op>(state, shared.states[thread + k]);
      fold.finish(output, state);
    }
  }
};

// --- running values ---

struct Scan {
  Walk from, to;  // where lines begin
  int64_t length, step_from, step_to;
  Array in, out, places;  // which lie as the output does
  int64_t parts, part;    // of a line: so many of so many elements
  Address partial;        // states of parts: what they come to, later what comes before them
  template <class State>
  TAEDA_HD void put(int64_t line, int64_t i, State s) const {
    using C = decltype(s.value);
    const int64_t place = to.offset(line) + i * step_to;
    store<C>(out, place, s.value);
    if constexpr (requires { s.place; }) store<int64_t>(places, place, s.place);
  }
  template <class Op>
  TAEDA_HD auto get(int64_t line, int64_t i) const {
    return Op::take(load<typename Op::Input>(in, from.offset(line) + i * step_from), i);
  }
};
/// A thread for each line.
template <class Op>
struct ScanEach {
  Scan scan;
  TAEDA_HD void operator()(int64_t line) const {
    auto state = Op::start();
    for (int64_t i = 0; i < scan.length; ++i) scan.put(line, i, state = Op::join(state, scan.get<Op>(line, i)));
  }
};
/// A block for each part of a line: threads fold a stretch each, and go through it again from what comes before it.
/// With `Totals` it tells what the part comes to.
template <class Op, bool Totals>
struct ScanBlock {
  static constexpr int kThreads = 256;
  using State = decltype(Op::start());
  using Shared = Before<Op>;
  struct Own {
    State stretch;
  };
  Scan scan;
  TAEDA_HD int phases() const { return 3; }
  TAEDA_HD void run(int phase, int64_t item, int thread, Shared& shared, Own& own) const {
    if (phase == 1) return shared.fold(thread);
    const int64_t line = quotient(item, scan.parts), first = (item - line * scan.parts) * scan.part;
    const int64_t rest = scan.length - first, count = rest < scan.part ? rest : scan.part;
    const int64_t stretch = (count + kThreads - 1) / kThreads, begin = thread * stretch;
    const int64_t end = begin + stretch < count ? begin + stretch : count;
    State* const partial = scan.partial ? at<State>(scan.partial) + item : nullptr;
    if (phase == 0) {
      State state = Op::start();
      for (int64_t i = first + begin; i < first + end; ++i) state = Op::join(state, scan.get<Op>(line, i));
      shared.states[thread] = own.stretch = state;
    } else if constexpr (Totals) {
      if (thread == kThreads - 1) *partial = Op::join(shared.of(thread), own.stretch);
    } else {
      State state = shared.of(thread);
      if (partial) state = Op::join(*partial, state);
      for (int64_t i = first + begin; i < first + end; ++i)
        scan.put(line, i, state = Op::join(state, scan.get<Op>(line, i)));
    }
  }
};

}  // namespace taeda::cuda
