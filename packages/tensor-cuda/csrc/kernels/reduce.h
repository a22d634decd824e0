// Folds of elements along dimensions, and their running values. Sums and products of real numbers are kept in float64.
#pragma once
#include "scalar/arith.h"

#include "kernels/launch.h"

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

/// Which elements, and where the results go.
struct Fold {
  Walk kept, across;      // where an output's elements begin, and where they lie from there
  int64_t length;         // elements of an output
  int64_t parts, part;    // in so many parts of so many elements
  Array in, out, places;  // row-major results; what is not wanted has no address
  Address partial;        // states of the parts
  double divisor;         // of sums
  template <class State>
  TAEDA_HD void finish(int64_t output, State s) const {
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
};
/// A thread for each output.
template <class Op>
struct FoldEach {
  Fold fold;
  TAEDA_HD void operator()(int64_t output) const {
    using C = typename Op::Input;
    const int64_t begin = fold.kept.offset(output);
    auto state = Op::start();
    for (int64_t i = 0; i < fold.length; ++i)
      state = Op::join(state, Op::take(load<C>(fold.in, begin + fold.across.offset(i)), i));
    fold.finish(output, state);
  }
};
/// A block for each part of an output: threads take elements that lie beside each other, and halve their number.
template <class Op>
struct FoldBlock {
  static constexpr int kThreads = 256, kHalvings = 8;
  using State = decltype(Op::start());
  Fold fold;
  struct Shared {
    State states[kThreads];
  };
  struct Own {};
  TAEDA_HD int phases() const { return 2 + kHalvings; }
  TAEDA_HD void run(int phase, int64_t item, int thread, Shared& shared, Own&) const {
    using C = typename Op::Input;
    const int64_t output = item / fold.parts, part = item % fold.parts;
    if (phase == 0) {
      const int64_t origin = fold.kept.offset(output), begin = part * fold.part;
      const int64_t end = begin + fold.part < fold.length ? begin + fold.part : fold.length;
      State state = Op::start();
      for (int64_t i = begin + thread; i < end; i += kThreads)
        state = ordered(state, Op::take(load<C>(fold.in, origin + fold.across.offset(i)), i));
      shared.states[thread] = state;
    } else if (phase <= kHalvings) {
      const int half = kThreads >> phase;
      if (thread < half) shared.states[thread] = ordered(shared.states[thread], shared.states[thread + half]);
    } else if (thread == 0) {
      if (fold.parts == 1) fold.finish(output, shared.states[0]);
      else at<State>(fold.partial)[item] = shared.states[0];
    }
  }
  /// Elements are met out of order: of equal extremes the earlier one is the first.
  TAEDA_HD static State ordered(State a, State b) {
    if constexpr (requires { a.place; })
      if (b.place >= 0 && (a.place < 0 || b.place < a.place)) return Op::join(b, a);
    return Op::join(a, b);
  }
};
/// A thread for each output that came in parts.
template <class Op>
struct FoldParts {
  Fold fold;
  TAEDA_HD void operator()(int64_t output) const {
    using State = decltype(Op::start());
    State state = Op::start();
    for (int64_t k = 0; k < fold.parts; ++k)
      state = Op::join(state, at<const State>(fold.partial)[output * fold.parts + k]);
    fold.finish(output, state);
  }
};

// --- running values ---

struct Scan {
  Walk from, to;  // where lines begin
  int64_t length, step_from, step_to;
  Array in, out, places;  // which lie as the output does
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
/// A block for each line: threads fold a stretch each, one adds these up, and all go through their stretch again.
template <class Op>
struct ScanBlock {
  static constexpr int kThreads = 256;
  using State = decltype(Op::start());
  Scan scan;
  struct Shared {
    State before[kThreads];
  };
  struct Own {};
  TAEDA_HD int phases() const { return 3; }
  TAEDA_HD void run(int phase, int64_t line, int thread, Shared& shared, Own&) const {
    const int64_t stretch = (scan.length + kThreads - 1) / kThreads, begin = thread * stretch;
    const int64_t end = begin + stretch < scan.length ? begin + stretch : scan.length;
    if (phase == 0) {
      State state = Op::start();
      for (int64_t i = begin; i < end; ++i) state = Op::join(state, scan.get<Op>(line, i));
      shared.before[thread] = state;
    } else if (phase == 1) {
      State state = Op::start();
      for (int t = 0; thread == 0 && t < kThreads; ++t) {
        const State next = Op::join(state, shared.before[t]);
        shared.before[t] = state;
        state = next;
      }
    } else {
      State state = shared.before[thread];
      for (int64_t i = begin; i < end; ++i) scan.put(line, i, state = Op::join(state, scan.get<Op>(line, i)));
    }
  }
};

}  // namespace taeda::cuda
