// Inner loops of normalisation: moments and affine maps of channels, planes and rows.
#pragma once
#include <algorithm>
#include <cmath>
#include <type_traits>
#include <utility>

#include "cpu/loops/layers.h"
#include "cpu/loops/short_rows.h"

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
  constexpr int64_t lanes = 32, block = 4096, few = 15;
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
/// Two sums over each of some runs of n elements, one after the other, added to first[run] and second[run]: short runs
/// together, of `pair(run, first element, how many)`, others each by itself, of `term(run, element, sum, sum)`.
template <class T, class Pair, class Term>
inline void sums_of_runs(int64_t runs, int64_t n, double* first, double* second, const Pair& pair, const Term& term) {
  using Sums = RowSums<T>;
  if (n == 1) {
#pragma GCC ivdep
    for (int64_t r = 0; r < runs; ++r) {
      T one = 0, two = 0;
      term(r, int64_t(0), one, two);
      first[r] += double(one);
      second[r] += double(two);
    }
    return;
  }
  const int64_t together = Sums::together(n);
  int64_t done = 0;
  for (; together > 1 && runs - done >= together / 2; done += together) {
    T one[Sums::width], two[Sums::width];
    const int64_t count = std::min(together, runs - done);
    Sums::of_both(count, n, one, two, [&](int64_t r, int64_t i, int64_t k) { return pair(done + r, i, k); });
    for (int64_t r = 0; r < count; ++r) first[done + r] += double(one[r]), second[done + r] += double(two[r]);
  }
  for (; done < runs; ++done) {
    double sums[2];
    run_sums<T>(n, sums, [&](int64_t i, T& one, T& two) { term(done, i, one, two); });
    first[done] += sums[0];
    second[done] += sums[1];
  }
}
template <class T>
void plane_moments(const void* x_, const void* shift_, int64_t planes, int64_t n, double* first, double* second) {
  using Sums = RowSums<T>;
  const T *const x = static_cast<const T*>(x_), *const shift = static_cast<const T*>(shift_);
  sums_of_runs<T>(
      planes, n, first, second,
      [=](int64_t p, int64_t i, int64_t count) {
        const auto d = Sums::load(x + p * n + i, count, shift[p]) - Sums::all(shift[p]);
        return std::pair(d, d * d);
      },
      [=](int64_t p, int64_t i, T& one, T& two) {
        const T d = x[p * n + i] - shift[p];
        one += d;
        two += d * d;
      });
}
template <class T>
void plane_products(const void* grad_, const void* x_, const void* mean_, int64_t planes, int64_t n, double* first,
                    double* second) {
  using Sums = RowSums<T>;
  const T *const grad = static_cast<const T*>(grad_), *const x = static_cast<const T*>(x_),
                 *const mean = static_cast<const T*>(mean_);
  sums_of_runs<T>(
      planes, n, first, second,
      [=](int64_t p, int64_t i, int64_t count) {
        const auto g = Sums::load(grad + p * n + i, count, T(0));
        return std::pair(g, g * (Sums::load(x + p * n + i, count, mean[p]) - Sums::all(mean[p])));
      },
      [=](int64_t p, int64_t i, T& one, T& two) {
        one += grad[p * n + i];
        two += grad[p * n + i] * (x[p * n + i] - mean[p]);
      });
}
template <class T>
void plane_affine(const void* x_, const void* center_, const void* scale_, const void* offset_, int64_t planes,
                  int64_t n, void* y_) {
  const T *x = static_cast<const T*>(x_), *const centers = static_cast<const T*>(center_),
          *const scales = static_cast<const T*>(scale_), *const offsets = static_cast<const T*>(offset_);
  T* y = static_cast<T*>(y_);
  if (n == 1) return channel_affine<T>(x, centers, scales, offsets, 1, planes, y);
  for (int64_t p = 0; p < planes; ++p, x += n, y += n) {
    const T center = centers[p], scale = scales[p], offset = offsets[p];
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) y[i] = (x[i] - center) * scale + offset;
  }
}
template <class T>
void plane_combine(const void* grad_, const void* x_, const void* center_, const void* a_, const void* b_,
                   const void* d_, int64_t planes, int64_t n, void* out_) {
  const T *grad = static_cast<const T*>(grad_), *x = static_cast<const T*>(x_),
          *const centers = static_cast<const T*>(center_), *const as = static_cast<const T*>(a_),
          *const bs = static_cast<const T*>(b_), *const ds = static_cast<const T*>(d_);
  T* out = static_cast<T*>(out_);
  if (n == 1) return channel_combine<T>(grad, x, centers, as, bs, ds, 1, planes, out);
  for (int64_t p = 0; p < planes; ++p, grad += n, x += n, out += n) {
    const T center = centers[p], a = as[p], b = bs[p], d = ds[p];
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) out[i] = a * grad[i] + (b * (x[i] - center) + d);
  }
}

/// What makes a row standard: y = (x - mean) * scale + shift.
template <class T>
struct Standard {
  T mean, scale, shift;
  /// From sums of differences from `center`, which is the mean but for its rounding, and of their squares.
  static Standard of(double center, double sum, double squares, int64_t n, double eps) {
    const double rest = sum / double(n), variance = squares / double(n) - rest * rest;
    const double scale = 1.0 / std::sqrt((variance < 0 ? 0.0 : variance) + eps);
    return {T(center), T(scale), T(-rest * scale)};
  }
};
template <class T>
void standard_row(const T* x, const T* weight, const T* bias, int64_t n, const Standard<T>& by, T* y) {
  const T m = by.mean, r = by.scale, shift = by.shift;
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
/// The by of at most RowSums::width short rows.
template <class T>
void short_standards(const T* x, int64_t rows, int64_t n, double eps, Standard<T>* found) {
  using Sums = RowSums<T>;
  T sums[Sums::width], squares[Sums::width], center[Sums::width];
  Sums::of(rows, n, sums, [=](int64_t r, int64_t i, int64_t count) { return Sums::load(x + r * n + i, count, T(0)); });
  for (int64_t r = 0; r < Sums::width; ++r) center[r] = T(double(sums[r]) / double(n));
  Sums::of_both(rows, n, sums, squares, [&](int64_t r, int64_t i, int64_t count) {
    // Around the mean: nothing cancels.
    const auto d = Sums::load(x + r * n + i, count, center[r]) - Sums::all(center[r]);
    return std::pair(d, d * d);
  });
  for (int64_t r = 0; r < rows; ++r)
    found[r] = Standard<T>::of(double(center[r]), double(sums[r]), double(squares[r]), n, eps);
}
template <class T>
Standard<T> standard_of(const T* x, int64_t n, double eps) {
  double sums[2];
  run_sums<T, true>(n, sums, [=](int64_t i, T& first, T&) { first += x[i]; });
  const double mean = sums[0] / double(n);
  const T center = T(mean);
  run_sums<T>(n, sums, [=](int64_t i, T& first, T& second) {
    const T d = x[i] - center;
    first += d;
    second += d * d;
  });
  return Standard<T>::of(mean, sums[0], sums[1], n, eps);
}

template <class T>
void layer_norm(const void* x_, const void* weight_, const void* bias_, int64_t rows, int64_t n, double eps, void* y_,
                void* mean_, void* rstd_) {
  using Sums = RowSums<T>;
  const T* const x = static_cast<const T*>(x_);
  T *const y = static_cast<T*>(y_), *const mean = static_cast<T*>(mean_), *const rstd = static_cast<T*>(rstd_);
  Standard<T> by[Sums::width];
  const int64_t together = Sums::together(n);
  for (int64_t first = 0; first < rows; first += together) {
    const int64_t count = std::min(together, rows - first);
    const T* const from = x + first * n;
    if (together > 1) short_standards(from, count, n, eps, by);
    else by[0] = standard_of(from, n, eps);
    for (int64_t r = 0; r < count; ++r) {
      mean[first + r] = by[r].mean;
      rstd[first + r] = by[r].scale;
      standard_row(from + r * n, static_cast<const T*>(weight_), static_cast<const T*>(bias_), n, by[r],
                   y + (first + r) * n);
    }
  }
}

/// What the gradient of a row's input takes from the row as a whole: scale * (above - mean - (x - center) * slope),
/// where `above` is the gradient of what was made standard.
template <class T>
struct RowGradient {
  T center, scale, mean = 0, slope = 0;
  void set(double sum, double products, int64_t n) {
    mean = T(sum / double(n));
    slope = T(products / double(n) * double(scale) * double(scale));
  }
};
/// Those of a few rows, which `to` has the center and the scale of.
template <bool weighted, class T>
void row_gradients(const T* grad, const T* x, const T* weight, int64_t rows, int64_t n, bool together,
                   RowGradient<T>* to) {
  using Sums = RowSums<T>;
  if (together) {
    T sums[Sums::width], products[Sums::width];
    Sums::of_both(rows, n, sums, products, [=](int64_t r, int64_t i, int64_t k) {
      auto above = Sums::load(grad + r * n + i, k, T(0));
      if constexpr (weighted) above *= Sums::load(weight + i, k, T(0));
      return std::pair(above, above * (Sums::load(x + r * n + i, k, T(0)) - Sums::all(to[r].center)));
    });
    for (int64_t r = 0; r < rows; ++r) to[r].set(double(sums[r]), double(products[r]), n);
    return;
  }
  for (int64_t r = 0; r < rows; ++r) {
    const T *const g = grad + r * n, *const v = x + r * n, center = to[r].center;
    double sums[2];
    run_sums<T>(n, sums, [=](int64_t i, T& one, T& two) {
      const T above = weighted ? g[i] * weight[i] : g[i];
      one += above;
      two += above * (v[i] - center);
    });
    to[r].set(sums[0], sums[1], n);
  }
}
/// Additions of rows to `Vectors` vectors of the parameters' gradients (either may be null) from element i on, of which
/// the last `count` elements are meant: the sums over the rows stay in registers.
template <int Vectors, class T>
void add_parameter_gradients(const T* grad, const T* x, const RowGradient<T>* by, int64_t rows, int64_t n, int64_t i,
                             int64_t count, T* grad_weight, T* grad_bias) {
  using Sums = RowSums<T>;
  typename Sums::Vector of_weight[Vectors] = {}, of_bias[Vectors] = {};
  for (int64_t r = 0; r < rows; ++r) {
    const T center = by[r].center;
    const auto scale = Sums::all(by[r].scale), from = Sums::all(center);
#pragma GCC unroll 4
    for (int k = 0; k < Vectors; ++k) {
      const int64_t at = r * n + i + k * Sums::width;
      const auto g = Sums::load(grad + at, count, T(0));
      of_weight[k] += g * (Sums::load(x + at, count, center) - from) * scale;
      of_bias[k] += g;
    }
  }
  const auto add = [=](const auto* sums, T* to) {
    for (int k = 0; to && k < Vectors; ++k)
      for (int64_t j = 0; j < count; ++j) to[i + k * Sums::width + j] += sums[k][Sums::width - count + j];
  };
  add(of_weight, grad_weight);
  add(of_bias, grad_bias);
}
template <class T>
void add_parameter_gradients(const T* grad, const T* x, const RowGradient<T>* by, int64_t rows, int64_t n,
                             T* grad_weight, T* grad_bias) {
  constexpr int64_t width = RowSums<T>::width, few = 4;
  int64_t i = 0;
  const auto add = [&]<int Vectors>(std::integral_constant<int, Vectors>, int64_t count) {
    add_parameter_gradients<Vectors>(grad, x, by, rows, n, i, count, grad_weight, grad_bias);
    i += Vectors * count;
  };
  while (i + few * width <= n) add(std::integral_constant<int, int(few)>(), width);
  while (i + width <= n) add(std::integral_constant<int, 1>(), width);
  if (i == 0) {  // nothing stands before the row that could be read as well
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t k = 0; k < n; ++k) {
        if (grad_weight) grad_weight[k] += grad[r * n + k] * (x[r * n + k] - by[r].center) * by[r].scale;
        if (grad_bias) grad_bias[k] += grad[r * n + k];
      }
  } else if (i < n) {
    add(std::integral_constant<int, 1>(), n - i);
  }
}
template <bool weighted, class T>
void layer_norm_backward_of(const T* grad, const T* x, const T* weight, const T* mean, const T* rstd, int64_t rows,
                            int64_t n, T* grad_x, T* grad_weight, T* grad_bias) {
  // Of longer rows the next one is on its way from memory while the last one is written. The parameters' gradients are
  // of so many rows together as stay in the cache.
  constexpr int64_t most = 32, longest = 128, cached = 65536;
  static_assert(most >= RowSums<T>::width);
  const bool short_rows = n <= longest, parameters = grad_weight || grad_bias;
  const int64_t together = short_rows ? RowSums<T>::together(n) : 1,
                group = !parameters  ? together
                        : short_rows ? std::max<int64_t>(together, most / 2)
                                     : std::clamp<int64_t>(cached / n, 1, most);
  RowGradient<T> by[most];
  for (int64_t first = 0; first < rows; first += group) {
    const int64_t all = std::min(group, rows - first);
    for (int64_t r = 0; r < all; ++r) by[r] = {mean[first + r], rstd[first + r]};
    for (int64_t r = 0; grad_x && r < all; r += together) {
      const int64_t count = std::min(together, all - r), at = (first + r) * n;
      row_gradients<weighted>(grad + at, x + at, weight, count, n, together > 1, by + r);
      for (int64_t k = 0; k < count; ++k) {
        const RowGradient<T> of = by[r + k];
        const T *const g = grad + at + k * n, *const v = x + at + k * n;
        T* const to = grad_x + at + k * n;
#pragma GCC ivdep
        for (int64_t i = 0; i < n; ++i)
          to[i] = of.scale * ((weighted ? g[i] * weight[i] : g[i]) - of.mean - (v[i] - of.center) * of.slope);
      }
    }
    if (parameters) add_parameter_gradients(grad + first * n, x + first * n, by, all, n, grad_weight, grad_bias);
  }
}
template <class T>
void layer_norm_backward(const void* grad_, const void* x_, const void* weight_, const void* mean_, const void* rstd_,
                         int64_t rows, int64_t n, void* grad_x_, void* grad_weight_, void* grad_bias_) {
  const auto run = [&]<bool weighted>(std::bool_constant<weighted>) {
    layer_norm_backward_of<weighted>(static_cast<const T*>(grad_), static_cast<const T*>(x_),
                                     static_cast<const T*>(weight_), static_cast<const T*>(mean_),
                                     static_cast<const T*>(rstd_), rows, n, static_cast<T*>(grad_x_),
                                     static_cast<T*>(grad_weight_), static_cast<T*>(grad_bias_));
  };
  if (weight_) run(std::true_type());
  else run(std::false_type());
}

}  // namespace taeda::loops::TAEDA_ISA
