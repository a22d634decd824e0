// A fold at the end of a chain: its elements are computed and folded in one pass, so that memory need not hold them.
#pragma once
#include "kernels/fold.h"
#include "kernels/fused.h"

namespace taeda::cuda {

struct FusedEnd {
  Fold fold;  // of which `kept`, `across` and `in` are the chain's business
  int64_t outputs;
  int32_t rows, halvings;  // outputs of a block; how often each one's threads can be halved
};
/// The chain's elements are those of one output after the other, `length` for each; what is folded is the member
/// `Chain::folded` of its values. A block has some outputs, or a part of each; its threads take packs in turn.
template <class Chain, class Op>
struct FusedFold {
  static constexpr int kThreads = 256, V = Chain::kPack;
  using State = decltype(Op::start());
  struct Shared {
    State states[kThreads];
  };
  struct Own {};
  Fused<Chain> chain;
  FusedEnd end;
  TAEDA_HD int phases() const { return 2 + end.halvings; }
  TAEDA_HD void run(int phase, int64_t item, int thread, Shared& shared, Own&) const {
    const Fold& fold = end.fold;
    const int across = kThreads / end.rows, lane = thread % across;
    const int64_t group = quotient(item, fold.parts), part = item - group * fold.parts;
    const int64_t output = group * end.rows + thread / across;
    if (output >= end.outputs) return;
    State& own = shared.states[thread];
    if (phase == 0) own = folded(output, part, lane, across);
    else if (phase <= end.halvings) {
      const int half = across >> phase;
      if (lane < half) own = joined_in_order<Op>(own, shared.states[thread + half]);
    } else if (lane == 0) {
      if (fold.parts == 1) fold.finish(output, own);
      else at<State>(fold.partial)[output * fold.parts + part] = own;
    }
  }

 private:
  TAEDA_HD State folded(int64_t output, int64_t part, int lane, int across) const {
    using C = typename Op::Input;
    const Fold& fold = end.fold;
    const int64_t begin = part * fold.part, origin = output * fold.length;
    const int64_t behind = begin + fold.part < fold.length ? begin + fold.part : fold.length;
    State state = Op::start();
    for (int64_t i = begin + int64_t(lane) * V; i < behind; i += int64_t(across) * V) {
      const int count = int(behind - i < V ? behind - i : V);
      typename Chain::Values values[V];
      chain.compute(origin + i, count, values);
      TAEDA_UNROLL
      for (int v = 0; v < V; ++v)
        if (v < count) state = Op::join(state, fold.template taken<Op>(number_as<C>(values[v].folded), i + v));
    }
    return state;
  }
};

}  // namespace taeda::cuda
