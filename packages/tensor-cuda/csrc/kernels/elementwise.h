// Element-wise kernels: any expression over operands that lie as they like.
#pragma once
#include <utility>

#include "kernels/launch.h"

#ifndef __CUDACC__
#include <vector>
#endif

namespace taeda::cuda {

/// Division is quick where both fit 32 bits.
TAEDA_HD inline int64_t quotient(int64_t a, int64_t b) {
  return (a | b) >> 32 == 0 ? int64_t(uint32_t(a) / uint32_t(b)) : a / b;
}
/// How the elements of an operand are found.
enum class Lies : int32_t {
  Straight,  // one after the other
  Strided,   // by the strides of the dimensions
  Alone,     // there is one
  Periodic,  // again and again, each of them so many times: a bias of channels; the two numbers are the first strides
  Number,    // it is no tensor
};
struct Operand {
  Array array;
  Lies lies = Lies::Straight;
  int32_t packed = 0;  // 1: its begin is aligned for packs of elements, 2: so is each pack of a row
  Number number;
  int64_t strides[kDims];
  TAEDA_HD int64_t times() const { return strides[0]; }
  TAEDA_HD int64_t period() const { return strides[1]; }
  TAEDA_HD int64_t periodic(int64_t i) const {
    const int64_t turn = quotient(i, times());
    return turn - quotient(turn, period()) * period();
  }
};
/// What goes with any element-wise kernel; dimensions that could be merged are.
template <int N>
struct Elements {
  int64_t n;
  int32_t ndim, divides;  // whether a second operand of 0 is an error
  int32_t many, in_rows;  // whether threads take several packs; whether no pack goes beyond the last dimension
  int64_t sizes[kDims];
  Operand out, in[N];
  Number numbers[3];
  double real[3];
  Report report;
};

template <class T, int V>
struct alignas(sizeof(T) * V) Pack {
  T values[V];
};
template <class C, class T, int V>
TAEDA_HD inline void fetch_pack(Address data, int64_t first, C (&x)[V]) {
  const auto pack = *at<const Pack<T, V>>(data + uint64_t(first) * sizeof(T));
  TAEDA_UNROLL
  for (int v = 0; v < V; ++v) x[v] = number_as<C>(pack.values[v]);
}
template <class C, class T, int V>
TAEDA_HD inline void put_pack(Address data, int64_t first, const C (&x)[V]) {
  Pack<T, V> pack;
  TAEDA_UNROLL
  for (int v = 0; v < V; ++v) pack.values[v] = number_as<T>(x[v]);
  *at<Pack<T, V>>(data + uint64_t(first) * sizeof(T)) = pack;
}
/// Calls `f` with the element type where it is one that kernels of class C meet often; false for others.
template <class C, class F>
TAEDA_HD inline bool with_usual_type(int dtype, const F& f) {
  if constexpr (is_same<C, bool>) {
    if (dtype == TAEDA_BOOL) return f.template operator()<bool>(), true;
  } else if constexpr (is_float<C>) {
    if (dtype == TAEDA_FLOAT32) return f.template operator()<float>(), true;
    if constexpr (is_same<C, double>)
      if (dtype == TAEDA_FLOAT64) return f.template operator()<double>(), true;
    if (dtype == TAEDA_FLOAT16) return f.template operator()<Half>(), true;
    if (dtype == TAEDA_BFLOAT16) return f.template operator()<BFloat16>(), true;
    if (dtype == TAEDA_BOOL) return f.template operator()<bool>(), true;  // a mask
  } else if constexpr (is_complex<C>) {
    if (dtype == TAEDA_COMPLEX64) return f.template operator()<Complex64>(), true;
    if (dtype == TAEDA_COMPLEX128) return f.template operator()<Complex128>(), true;
  } else {
    if (dtype == TAEDA_INT64) return f.template operator()<int64_t>(), true;
    if (dtype == TAEDA_INT32) return f.template operator()<int32_t>(), true;
    if (dtype == TAEDA_UINT8) return f.template operator()<uint8_t>(), true;
  }
  return false;
}

/// From so many elements on the device is busy although a thread takes several packs.
inline constexpr int64_t kMany = int64_t(1) << 20;

/// Line is an expression of N operands of type C that gives an R. Each thread computes V elements at a time; of many
/// that lie straight P packs of V, so that several reads are under way at once. Packs of a block's threads lie beside
/// each other.
template <class Line, class C, int N, int V, int P>
struct Elementwise {
  static constexpr int64_t kStep = int64_t(kEachThreads) * V;  // from pack to pack
  using R = decltype(std::declval<const Line&>().at(static_cast<const C*>(nullptr)));
  Elements<N> e;

  TAEDA_HD R one(const Line& line, const C* x) const {
    if constexpr (N > 1 && !is_float<C> && !is_complex<C>) {
      if (e.divides && x[1] == C(0)) return e.report(Wrong::Zero), R(0);
    }
    return line.at(x);
  }
  /// Whether the elements of a pack lie beside each other, aligned.
  TAEDA_HD bool in_pack(const Operand& o) const {
    return o.lies == Lies::Straight ? o.packed != 0 : o.lies == Lies::Strided && e.in_rows && o.packed == 2;
  }
  /// The elements from `first` on of an operand; `count` of V are there, and where `off` says they lie.
  TAEDA_HD void fetch(const Operand& o, int64_t first, int count, int64_t* off, C (&x)[V]) const {
    if (count == V && in_pack(o)) {
      const int64_t begin = o.lies == Lies::Straight ? first : off[0];
      if (with_usual_type<C>(o.array.dtype, [&]<class T>() { fetch_pack<C, T, V>(o.array.data, begin, x); })) return;
    }
    if (o.lies == Lies::Number || o.lies == Lies::Alone) {
      const C value = o.lies == Lies::Number ? o.number.template as<C>() : load<C>(o.array, 0);
      for (int v = 0; v < V; ++v) x[v] = value;
      return;
    }
    if (o.lies == Lies::Periodic) {
      for (int v = 0; v < V; ++v) x[v] = v < count ? load<C>(o.array, o.periodic(first + v)) : C(1);
      return;
    }
    for (int v = 0; v < V; ++v)
      x[v] = v < count ? load<C>(o.array, o.lies == Lies::Straight ? first + v : off[v * (N + 1)]) : C(1);
  }
  /// Where the elements lie in the operands, the output last.
  TAEDA_HD void places(int64_t first, int count, int64_t* off) const {
    for (int v = 0; v < count; ++v, off += N + 1) {
      const int last = e.ndim - 1;
      if (v > 0 && e.in_rows) {
        for (int k = 0; k < N; ++k) off[k] = off[k - N - 1] + e.in[k].strides[last];
        off[N] = off[-1] + e.out.strides[last];
        continue;
      }
      int64_t i = first + v;
      for (int k = 0; k <= N; ++k) off[k] = 0;
      for (int d = last; d >= 0; --d) {
        const int64_t next = d == 0 ? 0 : quotient(i, e.sizes[d]), place = i - next * e.sizes[d];
        for (int k = 0; k < N; ++k) off[k] += place * e.in[k].strides[d];
        off[N] += place * e.out.strides[d];
        i = next;
      }
    }
  }
  /// A pack of one that is periodic: of elements that follow each other, or of one.
  template <class T>
  TAEDA_HD void fetch_periodic(const Operand& o, int64_t first, C (&x)[V]) const {
    const int64_t place = o.periodic(first);
    if (o.times() == 1) return fetch_pack<C, T, V>(o.array.data, place, x);
    const C value = number_as<C>(at<const T>(o.array.data)[place]);
    TAEDA_UNROLL
    for (int v = 0; v < V; ++v) x[v] = value;
  }
  /// P packs from `first` on of operands that lie straight, are periodic, alone, or numbers.
  TAEDA_HD void take_many(int64_t first) const {
    const Line line(e.numbers, e.real);
    C x[N][P][V];
    TAEDA_UNROLL
    for (int k = 0; k < N; ++k) {
      const auto read = [&]<class T>() {
        TAEDA_UNROLL
        for (int j = 0; j < P; ++j) fetch_pack<C, T, V>(e.in[k].array.data, first + j * kStep, x[k][j]);
      };
      const auto read_periodic = [&]<class T>() {
        TAEDA_UNROLL
        for (int j = 0; j < P; ++j) fetch_periodic<T>(e.in[k], first + j * kStep, x[k][j]);
      };
      if (e.in[k].lies == Lies::Straight && with_usual_type<C>(e.in[k].array.dtype, read)) continue;
      if (e.in[k].lies == Lies::Periodic && with_usual_type<C>(e.in[k].array.dtype, read_periodic)) continue;
      const C value = e.in[k].lies == Lies::Number ? e.in[k].number.template as<C>() : load<C>(e.in[k].array, 0);
      TAEDA_UNROLL
      for (int j = 0; j < P; ++j)
        for (int v = 0; v < V; ++v) x[k][j][v] = value;
    }
    R y[P][V];
    TAEDA_UNROLL
    for (int j = 0; j < P; ++j) {
      TAEDA_UNROLL
      for (int v = 0; v < V; ++v) {
        C operands[N];
        for (int k = 0; k < N; ++k) operands[k] = x[k][j][v];
        y[j][v] = one(line, operands);
      }
    }
    const auto write = [&]<class T>() {
      TAEDA_UNROLL
      for (int j = 0; j < P; ++j) put_pack<R, T, V>(e.out.array.data, first + j * kStep, y[j]);
    };
    if (with_usual_type<R>(e.out.array.dtype, write)) return;
    for (int j = 0; j < P; ++j)
      for (int v = 0; v < V; ++v) store<R>(e.out.array, first + j * kStep + v, y[j][v]);
  }
  TAEDA_HD void operator()(int64_t item) const {
    if constexpr (P > 1) {
      if (e.many) {
        const int64_t pack = item / kEachThreads * P * kEachThreads + item % kEachThreads;
        if (pack * V + (P - 1) * kStep + V <= e.n) return take_many(pack * V);
        for (int j = 0; j < P; ++j)
          if ((pack + j * kEachThreads) * V < e.n) take(pack + j * kEachThreads);
        return;
      }
    }
    take(item);
  }
  TAEDA_APART TAEDA_HD void take(int64_t chunk) const {
    const Line line(e.numbers, e.real);
    const int64_t first = chunk * V;
    const int count = int(e.n - first < V ? e.n - first : V);
    int64_t off[V * (N + 1)];
    const bool straight = e.out.lies == Lies::Straight;
    if (!straight) places(first, count, off);
    C x[N][V];
    TAEDA_UNROLL
    for (int k = 0; k < N; ++k) fetch(e.in[k], first, count, off + k, x[k]);
    R y[V];
    TAEDA_UNROLL
    for (int v = 0; v < V; ++v) {
      C operands[N];
      for (int k = 0; k < N; ++k) operands[k] = x[k][v];
      y[v] = one(line, operands);
    }
    if (count == V && in_pack(e.out)) {
      const int64_t begin = straight ? first : off[N];
      if (with_usual_type<R>(e.out.array.dtype, [&]<class T>() { put_pack<R, T, V>(e.out.array.data, begin, y); }))
        return;
    }
    for (int v = 0; v < count; ++v) store<R>(e.out.array, straight ? first + v : off[v * (N + 1) + N], y[v]);
  }
};

// --- rows of kernels, as the host picks from them ---

/// What an expression computes in.
enum class Class : int { Bool, Int, UInt, Float, Double, Complex, kCount };
template <class C> inline constexpr Class class_of = Class::kCount;
template <> inline constexpr Class class_of<bool> = Class::Bool;
template <> inline constexpr Class class_of<int64_t> = Class::Int;
template <> inline constexpr Class class_of<uint64_t> = Class::UInt;
template <> inline constexpr Class class_of<float> = Class::Float;
template <> inline constexpr Class class_of<double> = Class::Double;
template <> inline constexpr Class class_of<Complex128> = Class::Complex;

enum class Operands : int { Given, AsFloat, AsBool, ByHand };
/// The kernels of an expression, by class.
struct Row {
  const char* name;
  Operands operands;
  int arity;
  const Kernel* kernels[int(Class::kCount)];
  int32_t elements[int(Class::kCount)];  // of a pack
  int32_t packs[int(Class::kCount)];     // that a thread takes of many elements
};

}  // namespace taeda::cuda
