// The frame of kernels that are written at run time: element-wise operators of one shape, one after the other, in one
// pass over memory. What they compute is a `Chain`, whose text fusion/source.cpp writes from the lines of the
// operators.
#pragma once
#include "kernels/line.h"

namespace taeda::cuda {

namespace lines = loops::TAEDA_ISA;

inline constexpr int kFusedDims = 8;

/// An operand of a chain; its element type stands in the chain's text.
struct FusedOperand {
  Address data;
  Lies lies;        // Straight, Strided or Alone
  int32_t aligned;  // whether packs may be read from its begin on, and with strides from each row of packs
  int64_t strides[kFusedDims];
};
/// A number among the arguments of an operator.
struct FusedNumber {
  Number number;
  double real;
};
/// What each body begins with; behind it lie the operands, the outputs last, and the numbers.
struct FusedHead {
  uint64_t on_host;  // what runs the kernel on the simulated driver
  int64_t n;
  int32_t ndim;
  int16_t straight;  // whether no operand is Strided
  int16_t in_rows;   // whether no pack goes beyond the last dimension
  int64_t sizes[kFusedDims];
};

/// A step: what a line computes in C from its operands, as an element of type T of its result.
template <template <class> class Line, class C, class T, class... Operands>
TAEDA_HD inline T step(const Number (&n)[3], const double (&real)[3], Operands... given) {
  const C x[] = {number_as<C>(given)...};
  return number_as<T>(Line<C>(n, real).at(x));
}

/// The chain has kOperands, kOutputs of them written, kNumbers, kPack elements of a thread, `Values` with a member for
/// each operand, `each(f)`, which calls f(k, member) for the k-th, and `run`, which fills the members that are written.
template <class Chain>
struct Fused {
  static constexpr int V = Chain::kPack, kOperands = Chain::kOperands, kInputs = kOperands - Chain::kOutputs;
  using Values = typename Chain::Values;
  FusedHead head;
  FusedOperand operands[kOperands];
  FusedNumber numbers[Chain::kNumbers > 0 ? Chain::kNumbers : 1];

  template <class Member>
  using Element = std::remove_reference_t<decltype(std::declval<Values&>().*std::declval<Member>())>;

  TAEDA_HD void operator()(int64_t item) const {
    const int64_t first = item * V;
    Values values[V];
    compute(first, int(head.n - first < V ? head.n - first : V), values);
  }
  /// `count` elements from `first` on.
  TAEDA_HD void compute(int64_t first, int count, Values (&values)[V]) const {
    int64_t off[V][kOperands];
    if (!head.straight) places(first, count, off);
    Chain::each([&](int k, auto member) {
      if (k < kInputs) fetch(operands[k], k, first, count, off, member, values);
    });
    TAEDA_UNROLL
    for (int v = 0; v < V; ++v) Chain::run(values[v], numbers);
    Chain::each([&](int k, auto member) {
      if (k >= kInputs) put(operands[k], k, first, count, off, member, values);
    });
  }
  /// Where a whole pack of an operand lies; -1 where its elements do not lie so.
  TAEDA_HD int64_t pack_at(const FusedOperand& o, int64_t first, int count, int64_t off) const {
    if (count < V || !o.aligned) return -1;
    if (o.lies == Lies::Straight) return first;
    return head.in_rows && o.strides[head.ndim - 1] == 1 ? off : -1;
  }
  template <class Member>
  TAEDA_HD void fetch(const FusedOperand& o, int k, int64_t first, int count, const int64_t (&off)[V][kOperands],
                      Member member, Values (&values)[V]) const {
    using T = Element<Member>;
    const T* const from = at<const T>(o.data);
    const bool strided = o.lies == Lies::Strided;
    if (o.lies == Lies::Alone || (strided && head.in_rows && o.strides[head.ndim - 1] == 0)) {
      const T value = from[strided ? off[0][k] : 0];
      TAEDA_UNROLL
      for (int v = 0; v < V; ++v) values[v].*member = value;
    } else if (const int64_t begin = pack_at(o, first, count, strided ? off[0][k] : 0); begin >= 0) {
      const auto pack = *at<const Pack<T, V>>(o.data + uint64_t(begin) * sizeof(T));
      TAEDA_UNROLL
      for (int v = 0; v < V; ++v) values[v].*member = pack.values[v];
    } else {
      TAEDA_UNROLL
      for (int v = 0; v < V; ++v) values[v].*member = v < count ? from[strided ? off[v][k] : first + v] : T{};
    }
  }
  template <class Member>
  TAEDA_HD void put(const FusedOperand& o, int k, int64_t first, int count, const int64_t (&off)[V][kOperands],
                    Member member, const Values (&values)[V]) const {
    using T = Element<Member>;
    const bool strided = o.lies == Lies::Strided;
    if (const int64_t begin = pack_at(o, first, count, strided ? off[0][k] : 0); begin >= 0) {
      Pack<T, V> pack;
      TAEDA_UNROLL
      for (int v = 0; v < V; ++v) pack.values[v] = values[v].*member;
      *at<Pack<T, V>>(o.data + uint64_t(begin) * sizeof(T)) = pack;
    } else {
      TAEDA_UNROLL
      for (int v = 0; v < V; ++v)
        if (v < count) at<T>(o.data)[strided ? off[v][k] : first + v] = values[v].*member;
    }
  }
  /// Where the elements from `first` on lie in each operand.
  TAEDA_HD void places(int64_t first, int count, int64_t (&off)[V][kOperands]) const {
    const int last = head.ndim - 1;
    TAEDA_UNROLL
    for (int v = 0; v < V; ++v) {
      if (v >= count) continue;
      if (v > 0 && head.in_rows) {
        for (int k = 0; k < kOperands; ++k) off[v][k] = off[v - 1][k] + operands[k].strides[last];
        continue;
      }
      int64_t i = first + v;
      for (int k = 0; k < kOperands; ++k) off[v][k] = 0;
      for (int d = last; d >= 0; --d) {
        const int64_t next = d == 0 ? 0 : quotient(i, head.sizes[d]), digit = i - next * head.sizes[d];
        for (int k = 0; k < kOperands; ++k) off[v][k] += digit * operands[k].strides[d];
        i = next;
      }
    }
  }
};

}  // namespace taeda::cuda

// Defines the kernel of a chain, the last thing in its text.
#ifdef __CUDACC__
#define TAEDA_FUSED(...)           \
  namespace taeda::cuda {          \
  TAEDA_KERNEL(fused, __VA_ARGS__) \
  }
#else
#define TAEDA_FUSED(...)                                                                                        \
  namespace taeda::cuda {                                                                                       \
  constinit thread_local uint64_t simulated_shift = 0;                                                          \
  }                                                                                                             \
  extern "C" [[gnu::visibility("default")]] void taeda_fused(const void* body, int64_t items, uint64_t shift) { \
    taeda::cuda::simulated_shift = shift;                                                                       \
    using namespace taeda::cuda;                                                                                \
    run_on_host<__VA_ARGS__>(body, items);                                                                      \
  }
#endif
