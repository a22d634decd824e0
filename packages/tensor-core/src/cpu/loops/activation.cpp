// Inner loops of activations, their gradients, and softmax over rows.
#include "cpu/loops/lanes.h"
#include "cpu/loops/loop.h"
#include "cpu/loops/math.h"
#include "cpu/loops/tables.h"

namespace taeda::loops::TAEDA_ISA {
namespace {

template <class T>
inline T log1p_of(T x) { return T(vlog1p(double(x))); }

/// A functor with up to three parameters p, q, r; one operand x, or the gradient g and the saved x.
#define TAEDA_ACTIVATION(NAME, EXPRESSION)                                                                    \
  template <class T>                                                                                          \
  struct NAME {                                                                                               \
    T p, q, r;                                                                                                \
    explicit NAME(const LoopParams* n) : p(n ? T(n->real[0]) : T(0)), q(n ? T(n->real[1]) : T(0)), r(n ? T(n->real[2]) : T(0)) {} \
    T operator()(T x) const { return EXPRESSION; }                                                            \
  };
#define TAEDA_GRADIENT(NAME, EXPRESSION)                                                                      \
  template <class T>                                                                                          \
  struct NAME {                                                                                               \
    T p, q, r;                                                                                                \
    explicit NAME(const LoopParams* n) : p(n ? T(n->real[0]) : T(0)), q(n ? T(n->real[1]) : T(0)), r(n ? T(n->real[2]) : T(0)) {} \
    T operator()(T g, T x) const { return EXPRESSION; }                                                       \
  };

template <class T>
inline T tanh_of_softplus(T x) {
  // tanh(log(1 + e)) = (e^2 + 2e) / (e^2 + 2e + 2)
  const T e = vexp(x > T(20) ? T(20) : x), n = e * (e + T(2));
  return n / (n + T(2));
}
template <class T>
inline T relu6(T x) {
  x = x < T(0) ? T(0) : x;
  return x > T(6) ? T(6) : x;
}

TAEDA_ACTIVATION(Elu, x > T(0) ? x * q : vexpm1(x * r) * (p * q))
TAEDA_ACTIVATION(Softplus, x* p > q ? x : log1p_of(vexp(x * p)) / p)
TAEDA_ACTIVATION(Mish, x* tanh_of_softplus(x))
TAEDA_ACTIVATION(Hardswish, x* relu6(x + T(3)) / T(6))
TAEDA_ACTIVATION(Hardsigmoid, relu6(x + T(3)) / T(6))
TAEDA_ACTIVATION(Hardshrink, x >= -p && x <= p ? T(0) : x)
TAEDA_ACTIVATION(Softshrink, x > p ? x - p : x < -p ? x + p : x * T(0))
TAEDA_ACTIVATION(Threshold, x <= p ? q : x)
TAEDA_ACTIVATION(Logsigmoid, (x < T(0) ? x : T(0)) - log1p_of(vexp(-magnitude(x))))
TAEDA_GRADIENT(MishBackward, g*(tanh_of_softplus(x) + x * vsigmoid(x) * (T(1) - tanh_of_softplus(x) * tanh_of_softplus(x))))
TAEDA_GRADIENT(SoftplusBackward, x* p > q ? g : g * vsigmoid(x * p))
TAEDA_GRADIENT(EluBackward, x > T(0) ? g * q : g * (r * p * q) * vexp(x * r))
TAEDA_GRADIENT(HardtanhBackward, (x > p) & (x < q) ? g : T(0))
TAEDA_GRADIENT(HardswishBackward, x <= T(-3) ? T(0) : x >= T(3) ? g : g * (x / T(3) + T(0.5)))
TAEDA_GRADIENT(HardsigmoidBackward, (x > T(-3)) & (x < T(3)) ? g / T(6) : T(0))
TAEDA_GRADIENT(ShrinkBackward, (x > p) | (x < -p) ? g : T(0))
TAEDA_GRADIENT(LogsigmoidBackward, g* vsigmoid(-x))
TAEDA_GRADIENT(DropoutBackward, g * x * p)

template <class T>
void softmax_rows(void* out_, const void* in_, const void*, int64_t rows, int64_t n) {
  T* out = static_cast<T*>(out_);
  const T* in = static_cast<const T*>(in_);
  for (int64_t r = 0; r < rows; ++r, in += n, out += n) {
    const T top = max_contiguous(in, n);
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) out[i] = vexp(in[i] - top);
    const T scale = T(1) / sum_contiguous(out, n);
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) out[i] *= scale;
  }
}
template <class T>
void log_softmax_rows(void* out_, const void* in_, const void*, int64_t rows, int64_t n) {
  T* out = static_cast<T*>(out_);
  const T* in = static_cast<const T*>(in_);
  constexpr int64_t block = 1024;
  T terms[block];
  for (int64_t r = 0; r < rows; ++r, in += n, out += n) {
    const T top = max_contiguous(in, n);
    double sum = 0;
    for (int64_t done = 0; done < n; done += block) {
      const int64_t m = n - done < block ? n - done : block;
      for (int64_t i = 0; i < m; ++i) terms[i] = vexp(in[done + i] - top);
      sum += double(sum_block(terms, m));
    }
    const T shift = vlog(T(sum));
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) out[i] = (in[i] - top) - shift;
  }
}
/// Sum over a row of f(i), by blocks.
template <class T, class F>
inline T row_sum(int64_t n, const F& f) {
  constexpr int64_t block = 1024;
  T terms[block];
  double sum = 0;
  for (int64_t done = 0; done < n; done += block) {
    const int64_t m = n - done < block ? n - done : block;
    for (int64_t i = 0; i < m; ++i) terms[i] = f(done + i);
    sum += double(sum_block(terms, m));
  }
  return T(sum);
}
template <class T>
void softmax_backward_rows(void* out_, const void* grad_, const void* output_, int64_t rows, int64_t n) {
  T* out = static_cast<T*>(out_);
  const T* grad = static_cast<const T*>(grad_);
  const T* y = static_cast<const T*>(output_);
  for (int64_t r = 0; r < rows; ++r, grad += n, out += n, y += n) {
    const T dot = row_sum<T>(n, [=](int64_t i) { return grad[i] * y[i]; });
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) out[i] = y[i] * (grad[i] - dot);
  }
}
template <class T>
void log_softmax_backward_rows(void* out_, const void* grad_, const void* output_, int64_t rows, int64_t n) {
  T* out = static_cast<T*>(out_);
  const T* grad = static_cast<const T*>(grad_);
  const T* y = static_cast<const T*>(output_);
  for (int64_t r = 0; r < rows; ++r, grad += n, out += n, y += n) {
    const T total = sum_contiguous(grad, n);
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) out[i] = grad[i] - vexp(y[i]) * total;
  }
}

// Softmax along a dimension that is not the last: a tile of columns at a time, its rows side by side in `scratch`.

/// Runs `body(width)` with the full width known to the compiler.
template <class Body>
inline void with_width(int64_t columns, const Body& body) {
  if (columns == kColumns) body(std::integral_constant<int64_t, kColumns>{});
  else body(columns);
}
/// sum[j] = sum of term(i, j) over all rows i, by blocks of rows.
template <class T, class Width, class Term>
[[gnu::always_inline]] inline void column_sums(int64_t n, Width columns, T* __restrict sum, const Term& term) {
  constexpr int64_t block = 64;
  const int64_t w = columns;
  alignas(64) double total[kColumns] = {};
  for (int64_t i0 = 0; i0 < n; i0 += block) {
    alignas(64) T part[kColumns] = {};
    for (int64_t i = i0; i < n && i < i0 + block; ++i) {
#pragma GCC ivdep
      for (int64_t j = 0; j < w; ++j) part[j] += term(i, j);
    }
    for (int64_t j = 0; j < w; ++j) total[j] += double(part[j]);
  }
  for (int64_t j = 0; j < w; ++j) sum[j] = T(total[j]);
}
template <class T, bool Log>
void softmax_columns(void* out_, const void* in_, const void*, int64_t n, int64_t stride, int64_t columns, void* scratch_) {
  T* const out = static_cast<T*>(out_);
  const T* const in = static_cast<const T*>(in_);
  T* const tile = static_cast<T*>(scratch_);
  with_width(columns, [=](auto width) {
    const int64_t w = width;
    alignas(64) T top[kColumns], sum[kColumns];
    for (int64_t j = 0; j < w; ++j) top[j] = in[j];
    for (int64_t i = 0; i < n; ++i) {
      const T* const from = in + i * stride;
      T* const to = tile + i * kColumns;
#pragma GCC ivdep
      for (int64_t j = 0; j < w; ++j) {
        const T v = from[j];
        to[j] = v;
        top[j] = (v > top[j]) | (v != v) ? v : top[j];
      }
    }
    column_sums(n, width, sum, [&](int64_t i, int64_t j) {
      T& place = tile[i * kColumns + j];
      const T shifted = place - top[j], e = vexp(shifted);
      place = Log ? shifted : e;
      return e;
    });
    for (int64_t j = 0; j < w; ++j) sum[j] = Log ? vlog(sum[j]) : T(1) / sum[j];
    for (int64_t i = 0; i < n; ++i) {
#pragma GCC ivdep
      for (int64_t j = 0; j < w; ++j) out[i * stride + j] = Log ? tile[i * kColumns + j] - sum[j] : tile[i * kColumns + j] * sum[j];
    }
  });
}
template <class T, bool Log>
void softmax_backward_columns(void* out_, const void* grad_, const void* output_, int64_t n, int64_t stride, int64_t columns, void*) {
  T* const out = static_cast<T*>(out_);
  const T *const grad = static_cast<const T*>(grad_), *const y = static_cast<const T*>(output_);
  with_width(columns, [=](auto width) {
    const int64_t w = width;
    alignas(64) T sum[kColumns];
    column_sums(n, width, sum, [=](int64_t i, int64_t j) { return Log ? grad[i * stride + j] : grad[i * stride + j] * y[i * stride + j]; });
    for (int64_t i = 0; i < n; ++i) {
#pragma GCC ivdep
      for (int64_t j = 0; j < w; ++j) {
        const int64_t at = i * stride + j;
        out[at] = Log ? grad[at] - vexp(y[at]) * sum[j] : y[at] * (grad[at] - sum[j]);
      }
    }
  });
}

template <class T>
constexpr void set_columns(ActivationTable& t, int which) {
  t.column_fns[kSoftmax][which] = softmax_columns<T, false>;
  t.column_fns[kLogSoftmax][which] = softmax_columns<T, true>;
  t.column_fns[kSoftmaxBackward][which] = softmax_backward_columns<T, false>;
  t.column_fns[kLogSoftmaxBackward][which] = softmax_backward_columns<T, true>;
}
constexpr ActivationTable make() {
  ActivationTable t{};
  LoopRow* r = t.rows;
  r[kElu] = unary_row<Elu>(Floats{});
  r[kSoftplus] = unary_row<Softplus>(Floats{});
  r[kMish] = unary_row<Mish>(Floats{});
  r[kHardswish] = unary_row<Hardswish>(Floats{});
  r[kHardsigmoid] = unary_row<Hardsigmoid>(Floats{});
  r[kHardshrink] = unary_row<Hardshrink>(Floats{});
  r[kSoftshrink] = unary_row<Softshrink>(Floats{});
  r[kThreshold] = unary_row<Threshold>(Floats{});
  r[kLogsigmoid] = unary_row<Logsigmoid>(Floats{});
  r[kMishBackward] = binary_row<MishBackward>(Floats{});
  r[kSoftplusBackward] = binary_row<SoftplusBackward>(Floats{});
  r[kEluBackward] = binary_row<EluBackward>(Floats{});
  r[kHardtanhBackward] = binary_row<HardtanhBackward>(Floats{});
  r[kHardswishBackward] = binary_row<HardswishBackward>(Floats{});
  r[kHardsigmoidBackward] = binary_row<HardsigmoidBackward>(Floats{});
  r[kShrinkBackward] = binary_row<ShrinkBackward>(Floats{});
  r[kLogsigmoidBackward] = binary_row<LogsigmoidBackward>(Floats{});
  r[kDropoutBackward] = binary_row<DropoutBackward>(Floats{});
  t.row_fns[kSoftmax][0] = softmax_rows<float>;
  t.row_fns[kSoftmax][1] = softmax_rows<double>;
  t.row_fns[kLogSoftmax][0] = log_softmax_rows<float>;
  t.row_fns[kLogSoftmax][1] = log_softmax_rows<double>;
  t.row_fns[kSoftmaxBackward][0] = softmax_backward_rows<float>;
  t.row_fns[kSoftmaxBackward][1] = softmax_backward_rows<double>;
  t.row_fns[kLogSoftmaxBackward][0] = log_softmax_backward_rows<float>;
  t.row_fns[kLogSoftmaxBackward][1] = log_softmax_backward_rows<double>;
  set_columns<float>(t, 0);
  set_columns<double>(t, 1);
  return t;
}

}  // namespace

constinit const ActivationTable activation = make();

}  // namespace taeda::loops::TAEDA_ISA
