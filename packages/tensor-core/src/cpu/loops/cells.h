// Inner loops of cross entropy, of gates and of recurrent cells.
#pragma once
#include <algorithm>
#include <cmath>
#include <limits>

#include "cpu/loops/layers.h"
#include "scalar/math.h"

namespace taeda::loops::TAEDA_ISA {

constexpr int64_t kSumLanes = 32, kSumBlock = 4096;

/// Sum of f(x[i]) in fixed lanes, flushed to double by blocks.
template <class T, class F>
double sum_of(const T* x, int64_t n, const F& f) {
  double total = 0;
  for (int64_t begin = 0; begin < n; begin += kSumBlock) {
    const int64_t end = std::min(n, begin + kSumBlock);
    int64_t i = begin;
    alignas(64) T sum[kSumLanes] = {};
    for (; i + kSumLanes <= end; i += kSumLanes)
      for (int64_t j = 0; j < kSumLanes; ++j) sum[j] += f(x[i + j]);
    for (int64_t j = 0; i < end; ++i, ++j) sum[j] += f(x[i]);
    if (end - begin < kSumLanes) {
      for (int64_t j = 0; j < end - begin; ++j) total += double(sum[j]);
    } else {
      double wide[8] = {};
      for (int64_t j = 0; j < kSumLanes; j += 8)
        for (int64_t k = 0; k < 8; ++k) wide[k] += double(sum[j + k]);
      for (double part : wide) total += part;
    }
  }
  return total;
}

template <class T>
double row_sum(const void* x_, int64_t n) {
  return sum_of(static_cast<const T*>(x_), n, [](T v) { return v; });
}

/// The greatest of x[0..n), whatever NaNs are among them.
template <class T>
T greatest(const T* x, int64_t n) {
  T top = -std::numeric_limits<T>::infinity();
  int64_t i = 0;
  if (n >= kSumLanes) {
    alignas(64) T best[kSumLanes];
    std::fill_n(best, kSumLanes, top);
    for (; i + kSumLanes <= n; i += kSumLanes)
      for (int64_t j = 0; j < kSumLanes; ++j) best[j] = x[i + j] > best[j] ? x[i + j] : best[j];
    for (int64_t half = kSumLanes / 2; half > 0; half /= 2)
      for (int64_t j = 0; j < half; ++j) best[j] = best[j + half] > best[j] ? best[j + half] : best[j];
    top = best[0];
  }
  for (; i < n; ++i) top = x[i] > top ? x[i] : top;
  return top;
}

template <class T>
double log_sum_exp(const void* x_, int64_t n, double* largest) {
  const T* const x = static_cast<const T*>(x_);
  const T top = greatest(x, n);
  *largest = double(top);
  // Differences from an infinite score are no numbers, and the losses of its position none either.
  if (std::isinf(top)) return std::numeric_limits<double>::quiet_NaN();
  return std::log(sum_of(x, n, [top](T v) { return vexp_down(v - top); }));
}

/// Whether a rounded logarithm of a sum has lost so much that exponentials of differences from it are made to sum up to
/// 1. Elsewhere they are left as they are, so that derivatives by the logarithm are those of its formula.
template <class T>
inline bool lost_digits(T lse) {
  return is_same<T, float> || std::abs(lse) > T(1024);
}

template <class T>
void softmax_scaled(const void* x_, double lse_, double scale_, double smooth_, int64_t n, void* out_) {
  const T* const x = static_cast<const T*>(x_);
  T* const out = static_cast<T*>(out_);
  const T lse = T(lse_), scale = T(scale_), smooth = T(smooth_);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) out[i] = vexp_down(x[i] - lse);
  const double total = lost_digits(lse) ? row_sum<T>(out, n) : 1;
  const T whole = T(total > 0 ? 1 / total : 1);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) out[i] = scale * (out[i] * whole - smooth);
}

/// Of at most kPlaneBlock positions.
constexpr int64_t kPlaneBlock = 128;
/// sum[j] = term(0, j) + term(1, j) + ... of c classes.
template <class T, class Term>
inline void add_classes(int64_t c, int64_t n, T* sum, const Term& term) {
  constexpr int64_t few = 16;  // that are added before their sum is: errors grow with a sixteenth of the classes
  std::fill_n(sum, n, T(0));
  alignas(64) T part[kPlaneBlock];
  for (int64_t first = 0; first < c; first += few) {
    std::fill_n(part, n, T(0));
    for (int64_t k = first; k < std::min(c, first + few); ++k) {
#pragma GCC ivdep
      for (int64_t j = 0; j < n; ++j) part[j] += term(k, j);
    }
    for (int64_t j = 0; j < n; ++j) sum[j] += part[j];
  }
}
template <class T>
void block_log_sum_exp(const T* x, int64_t step, int64_t c, int64_t n, T* top, T* sum) {
  std::copy_n(x, n, top);
  for (int64_t k = 1; k < c; ++k) {
    const T* const plane = x + k * step;
#pragma GCC ivdep
    for (int64_t j = 0; j < n; ++j) top[j] = plane[j] > top[j] ? plane[j] : top[j];
  }
  add_classes(c, n, sum, [=](int64_t k, int64_t j) { return vexp_down(x[k * step + j] - top[j]); });
#pragma GCC ivdep
  for (int64_t j = 0; j < n; ++j) sum[j] = vlog(sum[j]);
}
template <class T>
void plane_log_sum_exp(const void* x, int64_t step, int64_t c, int64_t n, void* largest, void* log_sum) {
  for (int64_t at = 0; at < n; at += kPlaneBlock)
    block_log_sum_exp(static_cast<const T*>(x) + at, step, c, std::min(kPlaneBlock, n - at),
                      static_cast<T*>(largest) + at, static_cast<T*>(log_sum) + at);
}

template <class T>
void block_softmax_scaled(const T* x, const T* lse, const T* factor, const T* even, const double* weight, int64_t step,
                          int64_t c, int64_t n, T* out) {
  for (int64_t k = 0; k < c; ++k) {
#pragma GCC ivdep
    for (int64_t j = 0; j < n; ++j) out[k * step + j] = vexp_down(x[k * step + j] - lse[j]);
  }
  alignas(64) T whole[kPlaneBlock];
  std::copy_n(factor, n, whole);
  if (std::any_of(lse, lse + n, lost_digits<T>)) {
    T total[kPlaneBlock];
    add_classes(c, n, total, [=](int64_t k, int64_t j) { return out[k * step + j]; });
    for (int64_t j = 0; j < n; ++j)
      if (total[j] > T(0) && lost_digits(lse[j])) whole[j] /= total[j];
  }
  for (int64_t k = 0; k < c; ++k) {
    const T w = T(weight[k]);
#pragma GCC ivdep
    for (int64_t j = 0; j < n; ++j) out[k * step + j] = out[k * step + j] * whole[j] - even[j] * w;
  }
}
template <class T>
void plane_softmax_scaled(const void* x, const void* lse, const void* factor, const void* even, const double* weight,
                          int64_t step, int64_t c, int64_t n, void* out) {
  for (int64_t at = 0; at < n; at += kPlaneBlock)
    block_softmax_scaled(static_cast<const T*>(x) + at, static_cast<const T*>(lse) + at,
                         static_cast<const T*>(factor) + at, static_cast<const T*>(even) + at, weight, step, c,
                         std::min(kPlaneBlock, n - at), static_cast<T*>(out) + at);
}

inline bool all_classes(const int64_t* numbers, int64_t n, int64_t c, int64_t ignored) {
  int64_t wrong = 0;
  for (int64_t i = 0; i < n; ++i) wrong |= int64_t(numbers[i] != ignored) & (numbers[i] < 0 || numbers[i] >= c);
  return !wrong;
}

template <class T>
void gated(const void* x_, const void* gate_, int64_t n, void* out_) {
  const T *const x = static_cast<const T*>(x_), *const gate = static_cast<const T*>(gate_);
  T* const out = static_cast<T*>(out_);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) out[i] = x[i] * vsigmoid(gate[i]);
}
template <class T>
void gated_backward(const void* grad_, const void* x_, const void* gate_, int64_t n, void* grad_x_, void* grad_gate_) {
  const T *const grad = static_cast<const T*>(grad_), *const x = static_cast<const T*>(x_),
                 *const gate = static_cast<const T*>(gate_);
  T *const grad_x = static_cast<T*>(grad_x_), *const grad_gate = static_cast<T*>(grad_gate_);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    const T passed = grad[i] * vsigmoid(gate[i]);
    grad_gate[i] = passed * x[i] * vsigmoid(-gate[i]);
    grad_x[i] = passed;
  }
}

template <class T>
void lstm_gates(const void* a_, const void* b_, const void* c_, int64_t rows, int64_t h, void* h_out_, void* c_out_,
                void* gates_) {
  for (int64_t r = 0; r < rows; ++r) {
    const T *const a = static_cast<const T*>(a_) + r * 4 * h, *const b = static_cast<const T*>(b_) + r * 4 * h,
                   *const c = static_cast<const T*>(c_) + r * h;
    T *const h_out = static_cast<T*>(h_out_) + r * h, *const c_out = static_cast<T*>(c_out_) + r * h,
             *const gates = static_cast<T*>(gates_) + r * 4 * h;
#pragma GCC ivdep
    for (int64_t j = 0; j < h; ++j) {
      const T i = vsigmoid(a[j] + b[j]), f = vsigmoid(a[h + j] + b[h + j]), g = vtanh(a[2 * h + j] + b[2 * h + j]),
              o = vsigmoid(a[3 * h + j] + b[3 * h + j]);
      const T next = f * c[j] + i * g;
      gates[j] = i;
      gates[h + j] = f;
      gates[2 * h + j] = g;
      gates[3 * h + j] = o;
      c_out[j] = next;
      h_out[j] = o * vtanh(next);
    }
  }
}
template <class T>
void lstm_gates_backward(const void* grad_h_, const void* grad_c_, const void* gates_, const void* c_,
                         const void* c_out_, int64_t rows, int64_t h, void* grad_gates_, void* grad_c_in_) {
  for (int64_t r = 0; r < rows; ++r) {
    const T *const gates = static_cast<const T*>(gates_) + r * 4 * h, *const c = static_cast<const T*>(c_) + r * h,
                   *const c_out = static_cast<const T*>(c_out_) + r * h,
                   *const grad_h = static_cast<const T*>(grad_h_) + r * h,
                   *const grad_c = static_cast<const T*>(grad_c_) + r * h;
    T *const grad_gates = static_cast<T*>(grad_gates_) + r * 4 * h, *const grad_c_in =
                                                                        static_cast<T*>(grad_c_in_) + r * h;
#pragma GCC ivdep
    for (int64_t j = 0; j < h; ++j) {
      const T i = gates[j], f = gates[h + j], g = gates[2 * h + j], o = gates[3 * h + j], t = vtanh(c_out[j]);
      const T dh = grad_h[j], dc = grad_c[j] + dh * o * (T(1) - t * t);
      grad_gates[j] = dc * g * i * (T(1) - i);
      grad_gates[h + j] = dc * c[j] * f * (T(1) - f);
      grad_gates[2 * h + j] = dc * i * (T(1) - g * g);
      grad_gates[3 * h + j] = dh * t * o * (T(1) - o);
      grad_c_in[j] = dc * f;
    }
  }
}

template <class T>
void gru_gates(const void* a_, const void* b_, const void* h_in_, int64_t rows, int64_t h, void* h_out_, void* gates_) {
  for (int64_t row = 0; row < rows; ++row) {
    const T *const a = static_cast<const T*>(a_) + row * 3 * h, *const b = static_cast<const T*>(b_) + row * 3 * h,
                   *const h_in = static_cast<const T*>(h_in_) + row * h;
    T *const h_out = static_cast<T*>(h_out_) + row * h, *const gates = static_cast<T*>(gates_) + row * 4 * h;
#pragma GCC ivdep
    for (int64_t j = 0; j < h; ++j) {
      const T r = vsigmoid(a[j] + b[j]), z = vsigmoid(a[h + j] + b[h + j]), inner = b[2 * h + j],
              n = vtanh(a[2 * h + j] + r * inner);
      gates[j] = r;
      gates[h + j] = z;
      gates[2 * h + j] = n;
      gates[3 * h + j] = inner;
      h_out[j] = (T(1) - z) * n + z * h_in[j];
    }
  }
}
template <class T>
void gru_gates_backward(const void* grad_, const void* gates_, const void* h_in_, int64_t rows, int64_t h,
                        void* grad_a_, void* grad_b_, void* grad_h_) {
  for (int64_t row = 0; row < rows; ++row) {
    const T *const grad = static_cast<const T*>(grad_) + row * h,
                   *const gates = static_cast<const T*>(gates_) + row * 4 * h,
                   *const h_in = static_cast<const T*>(h_in_) + row * h;
    T *const grad_a = static_cast<T*>(grad_a_) + row * 3 * h, *const grad_b = static_cast<T*>(grad_b_) + row * 3 * h,
             *const grad_h = static_cast<T*>(grad_h_) + row * h;
#pragma GCC ivdep
    for (int64_t j = 0; j < h; ++j) {
      const T r = gates[j], z = gates[h + j], n = gates[2 * h + j], inner = gates[3 * h + j];
      const T dn = grad[j] * (T(1) - z) * (T(1) - n * n), dz = grad[j] * (h_in[j] - n) * z * (T(1) - z),
              dr = dn * inner * r * (T(1) - r);
      grad_a[j] = grad_b[j] = dr;
      grad_a[h + j] = grad_b[h + j] = dz;
      grad_a[2 * h + j] = dn;
      grad_b[2 * h + j] = dn * r;
      grad_h[j] = grad[j] * z;
    }
  }
}

}  // namespace taeda::loops::TAEDA_ISA
