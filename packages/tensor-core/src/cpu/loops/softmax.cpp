// Inner loops of softmax, over rows and along columns.
#include <algorithm>
#include <cstring>
#include <limits>

#include "cpu/loops/lanes.h"
#include "cpu/loops/short_rows.h"
#include "cpu/loops/softmax.h"
#include "scalar/math.h"

namespace taeda::loops::TAEDA_ISA {
namespace {

template <class T>
inline void shifted_exponentials(T* x, T top) {
  for (int i = 0; i < Lanes<T>::count; ++i) x[i] = vexp_down(x[i] - top);
}
/// out = exp(in - top), the last ones as a whole vector too; `out` may be `in`.
template <class T>
inline void shifted_exponentials(T* out, const T* in, int64_t n, T top) {
  constexpr int64_t L = Lanes<T>::count;
  alignas(64) T last[L] = {};
  const int64_t from = n > L ? n - L : 0, count = n - from;
  std::copy_n(in + from, count, last);
  shifted_exponentials(last, top);
#pragma GCC ivdep
  for (int64_t i = 0; i < from / L * L; ++i) out[i] = vexp_down(in[i] - top);
  if (from % L) {
    alignas(64) T x[L];
    std::memcpy(x, in + from / L * L, sizeof x);
    shifted_exponentials(x, top);
    std::memcpy(out + from / L * L, x, sizeof x);
  }
  std::copy_n(last, count, out + from);
}

/// out = exp(in - greatest) and its sum; returns the greatest.
template <class T>
[[gnu::noinline]] T exponentials_of(T* out, const T* in, int64_t n, T& sum) {
  const T top = max_contiguous(in, n);
  shifted_exponentials(out, in, n, top);
  sum = sum_contiguous(out, n);
  return top;
}
template <class T>
void weigh(void* x, int64_t rows, int64_t n, void* lse_, void* factors_) {
  constexpr T never = -std::numeric_limits<T>::infinity();
  T *const lse = static_cast<T*>(lse_), *const factors = static_cast<T*>(factors_);
  T* row = static_cast<T*>(x);
  for (int64_t r = 0; r < rows; ++r, row += n) {
    T sum(1);
    const T top = n ? exponentials_of(row, row, n, sum) : never;
    const bool nothing = top == never;
    if (nothing) std::fill_n(row, n, T(0));
    lse[r] = top;
    factors[r] = nothing ? T(1) : sum;
  }
  // Logarithms of all sums at once: one by one they take as long as a row of exponentials.
  for (int64_t r = 0; r < rows; ++r) {
    lse[r] += vlog(factors[r]);
    factors[r] = T(1) / factors[r];
  }
}
template <class T>
void forbid(void* x_, int64_t n, const uint8_t* allowed, int64_t step) {
  constexpr T never = -std::numeric_limits<T>::infinity();
  T* const x = static_cast<T*>(x_);
  if (step == 1) {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) x[i] = allowed[i] ? x[i] : never;
    return;
  }
  for (int64_t i = 0; i < n; ++i)
    if (!allowed[i * step]) x[i] = never;
}
template <class T>
void softmax_rows(void* out_, const void* in_, const void*, int64_t rows, int64_t n) {
  T* out = static_cast<T*>(out_);
  const T* in = static_cast<const T*>(in_);
  for (int64_t r = 0; r < rows; ++r, in += n, out += n) {
    T sum;
    exponentials_of(out, in, n, sum);
    const T scale = T(1) / sum;
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
      shifted_exponentials(terms, in + done, m, top);
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
/// Rows of gradients: `sum` of a row's gradient and result, then `each(gradient, result, sum)` of every element.
template <class T, class Sum, class Each>
inline void backward_rows(void* out_, const void* grad_, const void* output_, int64_t rows, int64_t n, const Sum& sum,
                          const Each& each) {
  T* out = static_cast<T*>(out_);
  const T* grad = static_cast<const T*>(grad_);
  const T* y = static_cast<const T*>(output_);
  for (int64_t r = 0; r < rows; ++r, grad += n, out += n, y += n) {
    const T total = sum(grad, y);
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) out[i] = each(grad[i], y[i], total);
  }
}
template <class T>
void softmax_backward_rows(void* out, const void* grad, const void* output, int64_t rows, int64_t n) {
  backward_rows<T>(
      out, grad, output, rows, n,
      [n](const T* g, const T* y) { return row_sum<T>(n, [=](int64_t i) { return g[i] * y[i]; }); },
      [](T g, T y, T dot) { return y * (g - dot); });
}
template <class T>
void log_softmax_backward_rows(void* out, const void* grad, const void* output, int64_t rows, int64_t n) {
  backward_rows<T>(
      out, grad, output, rows, n, [n](const T* g, const T*) { return sum_contiguous(g, n); },
      [](T g, T y, T total) { return g - vexp_down(y) * total; });
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
[[gnu::noinline]] void softmax_columns(void* out_, const void* in_, const void*, int64_t n, int64_t stride,
                                       int64_t columns, void* scratch_) {
  T* const out = static_cast<T*>(out_);
  const T* const in = static_cast<const T*>(in_);
  T* const tile = static_cast<T*>(scratch_);
  with_width(columns, [=](auto width) {
    const int64_t w = width;
    alignas(64) T top[kColumns], sum[kColumns];
    for (int64_t j = 0; j < w; ++j) top[j] = in[j];
    for (int64_t i = 0; i < n; ++i) {
      const T* const from = in + i * stride;
      T* const to = tile + i * w;
#pragma GCC ivdep
      for (int64_t j = 0; j < w; ++j) {
        const T v = from[j];
        to[j] = v;
        top[j] = (v > top[j]) | (v != v) ? v : top[j];
      }
    }
    column_sums(n, width, sum, [&](int64_t i, int64_t j) {
      T& place = tile[i * w + j];
      const T shifted = place - top[j], e = vexp_down(shifted);
      place = Log ? shifted : e;
      return e;
    });
    for (int64_t j = 0; j < w; ++j) sum[j] = Log ? vlog(sum[j]) : T(1) / sum[j];
    for (int64_t i = 0; i < n; ++i) {
#pragma GCC ivdep
      for (int64_t j = 0; j < w; ++j) out[i * stride + j] = Log ? tile[i * w + j] - sum[j] : tile[i * w + j] * sum[j];
    }
  });
}
template <class T, bool Log>
void softmax_backward_columns(void* out_, const void* grad_, const void* output_, int64_t n, int64_t stride,
                              int64_t columns, void*) {
  T* const out = static_cast<T*>(out_);
  const T *const grad = static_cast<const T*>(grad_), *const y = static_cast<const T*>(output_);
  with_width(columns, [=](auto width) {
    const int64_t w = width;
    alignas(64) T sum[kColumns];
    column_sums(n, width, sum, [=](int64_t i, int64_t j) {
      return Log ? grad[i * stride + j] : grad[i * stride + j] * y[i * stride + j];
    });
    for (int64_t i = 0; i < n; ++i) {
#pragma GCC ivdep
      for (int64_t j = 0; j < w; ++j) {
        const int64_t at = i * stride + j;
        out[at] = Log ? grad[at] - vexp_down(y[at]) * sum[j] : y[at] * (grad[at] - sum[j]);
      }
    }
  });
}

// Short rows: their extremes and sums are found together.

constexpr int64_t kShortRow = 256;

template <class T, bool Log>
[[gnu::noinline]] void softmax_short_rows(T* out, const T* in, int64_t rows, int64_t n) {
  using Sums = RowSums<T>;
  constexpr T nothing = -std::numeric_limits<T>::infinity();
  const int64_t padded = (n + Sums::width - 1) / Sums::width * Sums::width;
  alignas(64) T tile[Sums::width * kShortRow];
  alignas(64) T top[Sums::width], sum[Sums::width], by[Sums::width];
  Sums::template of<Greatest>(
      rows, n, top, [=](int64_t r, int64_t i, int64_t count) { return Sums::load(in + r * n + i, count, nothing); });
  for (int64_t r = 0; r < rows; ++r) {
    T* const to = tile + r * padded;
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) to[i] = in[r * n + i] - top[r];
    for (int64_t i = n; i < padded; ++i) to[i] = nothing;
  }
#pragma GCC ivdep
  for (int64_t i = 0; i < rows * padded; ++i) tile[i] = vexp_down(tile[i]);
  Sums::of(rows, padded, sum,
           [&](int64_t r, int64_t i, int64_t) { return Sums::load(tile + r * padded + i, Sums::width, T(0)); });
#pragma GCC ivdep
  for (int64_t r = 0; r < Sums::width; ++r) by[r] = Log ? vlog(sum[r]) : T(1) / sum[r];
  for (int64_t r = 0; r < rows; ++r) {
    const T *const x = in + r * n, *const e = tile + r * padded;
    T* const to = out + r * n;
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) to[i] = Log ? (x[i] - top[r]) - by[r] : e[i] * by[r];
  }
}
template <class T, bool Log>
[[gnu::noinline]] void softmax_backward_short_rows(T* out, const T* grad, const T* y, int64_t rows, int64_t n) {
  using Sums = RowSums<T>;
  T sums[Sums::width];
  Sums::of(rows, n, sums, [=](int64_t r, int64_t i, int64_t count) {
    auto term = Sums::load(grad + r * n + i, count, T(0));
    if constexpr (!Log) term *= Sums::load(y + r * n + i, count, T(0));
    return term;
  });
  for (int64_t r = 0; r < rows; ++r, grad += n, y += n, out += n) {
    const T sum = sums[r];
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) out[i] = Log ? grad[i] - vexp_down(y[i]) * sum : y[i] * (grad[i] - sum);
  }
}
/// Calls `body(first row, rows)` for as many rows as are taken together; false where they are too short or too long.
template <class T, class Body>
inline bool in_short_rows(int64_t rows, int64_t n, const Body& body) {
  if (n > kShortRow || RowSums<T>::together(n) == 1) return false;
  for (int64_t r = 0; r < rows; r += RowSums<T>::width) body(r, std::min(RowSums<T>::width, rows - r));
  return true;
}
template <class T, bool Log>
void softmax_backward_by_length(void* out_, const void* grad_, const void* output_, int64_t rows, int64_t n) {
  T* const out = static_cast<T*>(out_);
  const T *const grad = static_cast<const T*>(grad_), *const y = static_cast<const T*>(output_);
  if (in_short_rows<T>(rows, n, [=](int64_t r, int64_t count) {
        softmax_backward_short_rows<T, Log>(out + r * n, grad + r * n, y + r * n, count, n);
      }))
    return;
  if constexpr (Log) log_softmax_backward_rows<T>(out, grad, y, rows, n);
  else softmax_backward_rows<T>(out, grad, y, rows, n);
}

/// to[j * to_step + i] = from[i * from_step + j].
template <class T>
inline void turn(const T* __restrict from, int64_t from_step, int64_t rows, int64_t columns, T* __restrict to,
                 int64_t to_step) {
  for (int64_t j = 0; j < columns; ++j)
    for (int64_t i = 0; i < rows; ++i) to[j * to_step + i] = from[i * from_step + j];
}
/// The shortest rows are turned into the columns of a tile; longer ones go together, or each by itself.
template <class T, bool Log>
void softmax_by_length(void* out_, const void* in_, const void*, int64_t rows, int64_t n) {
  constexpr int64_t shortest = 16, few = 16;
  T* const out = static_cast<T*>(out_);
  const T* const in = static_cast<const T*>(in_);
  if (in_short_rows<T>(
          rows, n, [=](int64_t r, int64_t count) { softmax_short_rows<T, Log>(out + r * n, in + r * n, count, n); }))
    return;
  if (n > shortest || rows < few)
    return Log ? log_softmax_rows<T>(out, in, nullptr, rows, n) : softmax_rows<T>(out, in, nullptr, rows, n);
  alignas(64) T tile[shortest * kColumns], scratch[shortest * kColumns];
  for (int64_t r = 0; r < rows; r += kColumns) {
    const int64_t count = rows - r < kColumns ? rows - r : kColumns;
    turn(in + r * n, n, count, n, tile, kColumns);
    softmax_columns<T, Log>(tile, tile, nullptr, n, kColumns, count, scratch);
    turn(tile, kColumns, n, count, out + r * n, n);
  }
}

template <class T>
constexpr void set(SoftmaxTable& t) {
  constexpr int which = sizeof(T) == 8;
  t.row_fns[kSoftmax][which] = softmax_by_length<T, false>;
  t.row_fns[kLogSoftmax][which] = softmax_by_length<T, true>;
  t.row_fns[kSoftmaxBackward][which] = softmax_backward_by_length<T, false>;
  t.row_fns[kLogSoftmaxBackward][which] = softmax_backward_by_length<T, true>;
  t.column_fns[kSoftmax][which] = softmax_columns<T, false>;
  t.column_fns[kLogSoftmax][which] = softmax_columns<T, true>;
  t.column_fns[kSoftmaxBackward][which] = softmax_backward_columns<T, false>;
  t.column_fns[kLogSoftmaxBackward][which] = softmax_backward_columns<T, true>;
  t.weigh[which] = weigh<T>;
  t.forbid[which] = forbid<T>;
}
constexpr SoftmaxTable make() {
  SoftmaxTable t{};
  set<float>(t);
  set<double>(t);
  return t;
}

}  // namespace

constinit const SoftmaxTable softmax = make();

}  // namespace taeda::loops::TAEDA_ISA
