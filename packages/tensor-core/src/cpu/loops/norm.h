// Inner loops of normalisation: moments and affine maps of channels, planes and rows.
#pragma once
#include <algorithm>
#include <cmath>

#include "cpu/loops/layers.h"

namespace taeda::loops::TAEDA_ISA {

/// Two sums for each channel: rows are summed in T by small blocks, blocks in double.
template <class T, class Term>
inline void channel_sums(int64_t rows, int64_t c, double* sums, const Term& term) {
  constexpr int64_t width = 64, block = 32;
  std::fill_n(sums, 2 * c, 0.0);
  for (int64_t r0 = 0; r0 < rows; r0 += block) {
    const int64_t r1 = std::min(rows, r0 + block);
    for (int64_t c0 = 0; c0 < c; c0 += width) {
      alignas(64) T first[width] = {}, second[width] = {};
      const int64_t n = std::min(width, c - c0);
      if (n == width) {
        for (int64_t r = r0; r < r1; ++r) term(r * c + c0, c0, width, first, second);
      } else {
        for (int64_t r = r0; r < r1; ++r) term(r * c + c0, c0, n, first, second);
      }
      for (int64_t j = 0; j < n; ++j) {
        sums[c0 + j] += double(first[j]);
        sums[c + c0 + j] += double(second[j]);
      }
    }
  }
}

template <class T>
void channel_moments(const void* x_, const void* shift_, int64_t rows, int64_t c, double* sums) {
  const T *const x = static_cast<const T*>(x_), *const shift = static_cast<const T*>(shift_);
  channel_sums<T>(rows, c, sums, [=](int64_t at, int64_t c0, int64_t n, T* __restrict first, T* __restrict second) {
    for (int64_t j = 0; j < n; ++j) {
      const T d = x[at + j] - shift[c0 + j];
      first[j] += d;
      second[j] += d * d;
    }
  });
}
template <class T>
void channel_products(const void* grad_, const void* x_, const void* mean_, int64_t rows, int64_t c, double* sums) {
  const T *const grad = static_cast<const T*>(grad_), *const x = static_cast<const T*>(x_),
                 *const mean = static_cast<const T*>(mean_);
  channel_sums<T>(rows, c, sums, [=](int64_t at, int64_t c0, int64_t n, T* __restrict first, T* __restrict second) {
    for (int64_t j = 0; j < n; ++j) {
      const T g = grad[at + j];
      first[j] += g;
      second[j] += g * (x[at + j] - mean[c0 + j]);
    }
  });
}
template <class T>
void channel_affine(const void* x_, const void* center_, const void* scale_, const void* offset_, int64_t rows,
                    int64_t c, void* y_) {
  const T *const x = static_cast<const T*>(x_), *const center = static_cast<const T*>(center_),
                 *const scale = static_cast<const T*>(scale_), *const offset = static_cast<const T*>(offset_);
  T* const y = static_cast<T*>(y_);
  for (int64_t r = 0; r < rows; ++r) {
#pragma GCC ivdep
    for (int64_t j = 0; j < c; ++j) y[r * c + j] = (x[r * c + j] - center[j]) * scale[j] + offset[j];
  }
}
template <class T>
void channel_combine(const void* grad_, const void* x_, const void* center_, const void* a_, const void* b_,
                     const void* d_, int64_t rows, int64_t c, void* out_) {
  const T *const grad = static_cast<const T*>(grad_), *const x = static_cast<const T*>(x_),
                 *const center = static_cast<const T*>(center_), *const a = static_cast<const T*>(a_),
                 *const b = static_cast<const T*>(b_), *const d = static_cast<const T*>(d_);
  T* const out = static_cast<T*>(out_);
  for (int64_t r = 0; r < rows; ++r) {
#pragma GCC ivdep
    for (int64_t j = 0; j < c; ++j)
      out[r * c + j] = a[j] * grad[r * c + j] + (b[j] * (x[r * c + j] - center[j]) + d[j]);
  }
}

/// The sum of 32 lanes by a tree: a chain of additions would take longer than short rows.
template <class T>
[[gnu::noinline]] double fold_lanes(const T* lanes) {
  alignas(64) double sums[32];
  for (int j = 0; j < 32; ++j) sums[j] = double(lanes[j]);
  for (int step = 16; step; step /= 2)
    for (int j = 0; j < step; ++j) sums[j] += sums[j + step];
  return sums[0];
}
/// Two sums over a contiguous run (or the first alone) in fixed lanes, flushed to double every few thousand elements.
template <class T, bool first_only = false, class Term>
inline void run_sums(int64_t n, double* sums, const Term& term) {
  constexpr int64_t lanes = 32, block = 4096, few = 8;
  sums[0] = sums[1] = 0;
  if (n <= few) {  // folding the lanes would take longer
    for (int64_t i = 0; i < n; ++i) {
      T first = 0, second = 0;
      term(i, first, second);
      sums[0] += double(first);
      sums[1] += double(second);
    }
    return;
  }
  for (int64_t begin = 0; begin < n; begin += block) {
    const int64_t end = std::min(n, begin + block);
    alignas(64) T first[lanes] = {}, second[lanes] = {};
    int64_t i = begin;
    for (; i + lanes <= end; i += lanes)
      for (int64_t j = 0; j < lanes; ++j) term(i + j, first[j], second[j]);
    for (int64_t j = 0; i < end; ++i, ++j) term(i, first[j], second[j]);
    sums[0] += fold_lanes(first);
    if constexpr (!first_only) sums[1] += fold_lanes(second);
  }
}
template <class T>
void plane_moments(const void* x_, double shift_, int64_t n, double* sums) {
  const T* const x = static_cast<const T*>(x_);
  const T shift = T(shift_);
  run_sums<T>(n, sums, [=](int64_t i, T& first, T& second) {
    const T d = x[i] - shift;
    first += d;
    second += d * d;
  });
}
template <class T>
void plane_products(const void* grad_, const void* x_, double mean_, int64_t n, double* sums) {
  const T *const grad = static_cast<const T*>(grad_), *const x = static_cast<const T*>(x_);
  const T mean = T(mean_);
  run_sums<T>(n, sums, [=](int64_t i, T& first, T& second) {
    first += grad[i];
    second += grad[i] * (x[i] - mean);
  });
}
template <class T>
void plane_affine(const void* x_, double center_, double scale_, double offset_, int64_t n, void* y_) {
  const T* const x = static_cast<const T*>(x_);
  T* const y = static_cast<T*>(y_);
  const T center = T(center_), scale = T(scale_), offset = T(offset_);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) y[i] = (x[i] - center) * scale + offset;
}
template <class T>
void plane_combine(const void* grad_, const void* x_, double center_, double a_, double b_, double d_, int64_t n,
                   void* out_) {
  const T *const grad = static_cast<const T*>(grad_), *const x = static_cast<const T*>(x_);
  T* const out = static_cast<T*>(out_);
  const T center = T(center_), a = T(a_), b = T(b_), d = T(d_);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) out[i] = a * grad[i] + (b * (x[i] - center) + d);
}

template <class T>
void layer_norm(const void* x_, const void* weight_, const void* bias_, int64_t n, double eps, void* y_, void* mean_,
                void* rstd_) {
  const T *const x = static_cast<const T*>(x_), *const weight = static_cast<const T*>(weight_),
                 *const bias = static_cast<const T*>(bias_);
  T* const y = static_cast<T*>(y_);
  double sums[2];
  run_sums<T, true>(n, sums, [=](int64_t i, T& first, T&) { first += x[i]; });
  const double mean = sums[0] / double(n);
  plane_moments<T>(x, mean, n, sums);  // around the mean: nothing cancels
  const double rest = sums[0] / double(n), variance = sums[1] / double(n) - rest * rest;
  const double scale = 1.0 / std::sqrt((variance < 0 ? 0.0 : variance) + eps);
  // `rest` is what the rounded mean lacks.
  const T m = T(mean), r = T(scale), shift = T(-rest * scale);
  *static_cast<T*>(mean_) = m;
  *static_cast<T*>(rstd_) = r;
  if (weight && bias) {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) y[i] = ((x[i] - m) * r + shift) * weight[i] + bias[i];
    return;
  }
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) y[i] = (x[i] - m) * r + shift;
  for (int64_t i = 0; weight && i < n; ++i) y[i] *= weight[i];
  for (int64_t i = 0; bias && i < n; ++i) y[i] += bias[i];
}

template <class T>
void layer_norm_backward(const void* grad_, const void* x_, const void* weight_, double mean_, double rstd_, int64_t n,
                         void* grad_x_, void* grad_weight_, void* grad_bias_) {
  const T *const grad = static_cast<const T*>(grad_), *const x = static_cast<const T*>(x_),
                 *const weight = static_cast<const T*>(weight_);
  T *const grad_x = static_cast<T*>(grad_x_), *const grad_weight = static_cast<T*>(grad_weight_),
           *const grad_bias = static_cast<T*>(grad_bias_);
  const T mean = T(mean_), rstd = T(rstd_);
  const auto input_gradient = [&](const auto& upstream) {
    double sums[2];
    run_sums<T>(n, sums, [=](int64_t i, T& first, T& second) {
      const T g = upstream(i);
      first += g;
      second += g * (x[i] - mean);
    });
    const T a = T(sums[0] / double(n)), b = T(sums[1] / double(n) * rstd_ * rstd_);
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) grad_x[i] = rstd * (upstream(i) - a - (x[i] - mean) * b);
  };
  if (grad_x && weight) input_gradient([=](int64_t i) { return grad[i] * weight[i]; });
  if (grad_x && !weight) input_gradient([=](int64_t i) { return grad[i]; });
  if (grad_weight && grad_bias) {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) {
      grad_weight[i] += grad[i] * (x[i] - mean) * rstd;
      grad_bias[i] += grad[i];
    }
    return;
  }
  for (int64_t i = 0; grad_weight && i < n; ++i) grad_weight[i] += grad[i] * (x[i] - mean) * rstd;
  for (int64_t i = 0; grad_bias && i < n; ++i) grad_bias[i] += grad[i];
}

}  // namespace taeda::loops::TAEDA_ISA
