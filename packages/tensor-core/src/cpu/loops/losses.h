// Inner loops of element-wise losses of an input and a target.
#pragma once
#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "cpu/loops/layers.h"
#include "scalar/arith.h"

namespace taeda::loops::TAEDA_ISA {

// Each loss is a class: constructed from its parameter, `value` and `slope` of one pair.

template <class T>
struct Mse {
  explicit Mse(double) {}
  T value(T x, T t) const { return (x - t) * (x - t); }
  T slope(T x, T t) const { return T(2) * (x - t); }
};
template <class T>
struct L1 {
  explicit L1(double) {}
  T value(T x, T t) const { return magnitude(x - t); }
  T slope(T x, T t) const { return sign_of(x - t); }
};
template <class T>
struct SmoothL1 {
  T beta;
  explicit SmoothL1(double parameter) : beta(T(parameter)) {}
  T value(T x, T t) const {
    const T d = magnitude(x - t);
    return d < beta ? T(0.5) * d * d / beta : d - T(0.5) * beta;
  }
  T slope(T x, T t) const {
    const T d = x - t;
    return magnitude(d) >= beta || beta == T(0) ? sign_of(d) : d / beta;
  }
};
template <class T>
struct Huber {
  T delta;
  explicit Huber(double parameter) : delta(T(parameter)) {}
  T value(T x, T t) const {
    const T d = magnitude(x - t);
    return d <= delta ? T(0.5) * d * d : delta * (d - T(0.5) * delta);
  }
  T slope(T x, T t) const {
    const T d = x - t;
    return magnitude(d) >= delta ? delta * sign_of(d) : d;
  }
};
template <class T>
struct Bce {
  explicit Bce(double) {}
  static T limited(T v) { return v < T(-100) ? T(-100) : v; }
  T value(T x, T t) const { return -(t * limited(vlog(x)) + (T(1) - t) * limited(vlog1p_of_small(-x))); }
  T slope(T x, T t) const {
    const T spread = x * (T(1) - x);
    return (x - t) / (spread < T(1e-12) ? T(1e-12) : spread);
  }
};
template <class T>
struct BceWithLogits {
  explicit BceWithLogits(double) {}
  // One product each, so that infinities are not subtracted from one another.
  T value(T x, T t) const { return (x > T(0) ? T(1) - t : -t) * x + vlog1p_of_small(vexp(-magnitude(x))); }
  T slope(T x, T t) const { return vsigmoid(x) - t; }
};

/// Sum in fixed lanes, flushed to double by blocks.
template <template <class> class F, class T>
double pair_sum(const void* x_, const void* t_, double parameter, int64_t n) {
  const F<T> f(parameter);
  const T *const x = static_cast<const T*>(x_), *const t = static_cast<const T*>(t_);
  constexpr int64_t lanes = 32, block = 4096;
  double total = 0;
  for (int64_t begin = 0; begin < n; begin += block) {
    const int64_t end = std::min(n, begin + block);
    alignas(64) T sum[lanes] = {};
    int64_t i = begin;
    for (; i + lanes <= end; i += lanes)
      for (int64_t j = 0; j < lanes; ++j) sum[j] += f.value(x[i + j], t[i + j]);
    for (int64_t j = 0; i < end; ++i, ++j) sum[j] += f.value(x[i], t[i]);
    for (T s : sum) total += double(s);
  }
  return total;
}
template <template <class> class F, class T>
void pair_map(const void* x_, const void* t_, double parameter, int64_t n, void* out_) {
  const F<T> f(parameter);
  const T *const x = static_cast<const T*>(x_), *const t = static_cast<const T*>(t_);
  T* const out = static_cast<T*>(out_);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) out[i] = f.value(x[i], t[i]);
}
template <template <class> class F, class T>
void pair_slope(const void* x_, const void* t_, const void* grad_, double scale_, double parameter, int64_t n,
                void* out_) {
  const F<T> f(parameter);
  const T *const x = static_cast<const T*>(x_), *const t = static_cast<const T*>(t_),
                 *const grad = static_cast<const T*>(grad_);
  T* const out = static_cast<T*>(out_);
  const T scale = T(scale_);
  if (grad) {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) out[i] = grad[i] * f.slope(x[i], t[i]);
    return;
  }
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) out[i] = scale * f.slope(x[i], t[i]);
}

template <template <class> class F, class T>
constexpr PairLoops pair_loops() {
  return {pair_sum<F, T>, pair_map<F, T>, pair_slope<F, T>};
}

/// The first value outside [0, 1], or -1.
template <class T>
int64_t outside_unit(const void* x_, int64_t n) {
  const T* const x = static_cast<const T*>(x_);
  int bad = 0;
  for (int64_t i = 0; i < n; ++i) bad |= !(x[i] >= T(0) && x[i] <= T(1));
  for (int64_t i = 0; bad && i < n; ++i)
    if (!(x[i] >= T(0) && x[i] <= T(1))) return i;
  return -1;
}

}  // namespace taeda::loops::TAEDA_ISA
