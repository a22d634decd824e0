// What normalisations share: tensors by their channels, the dtypes that they compute in.
#pragma once
#include <algorithm>
#include <vector>

#include "cpu/converted.h"
#include "cpu/prepare.h"
#include "taeda/parallel.h"
#include "taeda/tensor.h"

namespace taeda::cpu {

template <class T>
const T* data_or_null(const Tensor& t) {
  return t.defined() ? t.data<T>() : nullptr;
}

// Note [Two layouts of channels]
// With channels innermost (channels-last, (N, C), or any dense order with stride(1) == 1) the tensor is `rows` rows of
// C numbers. Row-major (N, C, ...) is N * C planes of one channel each. Anything else is copied into the latter.
//
// Halves stay halves in memory; each piece is converted where it is computed with.
struct Channels {
  Tensor x;
  bool innermost, converted;
  int64_t n, c, inner;  // inner: pixels of one plane
  Channels(const Tensor& input, DType dtype)
      : innermost(channels_innermost(input)), converted(input.dtype() != dtype), n(input.size(0)), c(input.size(1)) {
    x = innermost ? input : row_major(input);
    inner = n > 0 && c > 0 ? input.numel() / (n * c) : 0;
  }
  static bool channels_innermost(const Tensor& t) {
    return t.dense() && t.stride(1) == 1 && (!t.contiguous() || t.numel() == t.size(0) * t.size(1));
  }
  /// `t` with its elements in the same order as those of x.
  Tensor like(const Tensor& t) const {
    if (same_order(t)) return t;
    Tensor copy = empty_like_x(t.dtype());
    ops::copy_(copy, t);
    return copy;
  }
  bool same_order(const Tensor& t) const {
    for (int64_t d = 0; d < x.dim(); ++d)
      if (x.size(d) != 1 && t.stride(d) != x.stride(d)) return false;
    return true;
  }
  Tensor empty_like_x(DType dtype) const { return empty_strided(x.sizes(), x.strides(), dtype); }
  Tensor place(const Tensor& out) const { return same_order(out) ? out : empty_like_x(out.dtype()); }
  int64_t rows() const { return n * inner; }
  int64_t numel() const { return n * c * inner; }
};

/// Planes of n elements that are taken at once: short ones are summed together.
inline int64_t planes_together(int64_t n) { return n <= 512 ? 32 : 1; }

/// Rows of one fixed piece: some tens of thousands of elements, at most 64 pieces, so that partial sums stay few.
inline int64_t rows_per_piece(int64_t rows, int64_t c) {
  return std::max({int64_t(32), 32768 / std::max<int64_t>(c, 1), (rows + 63) / 64});
}

/// Two sums for each channel over `rows` pixels of each of some samples, of channels innermost: those of sample s from
/// 2 c s on, the second ones c further on; by fixed pieces added in order, of which body(offset, rows, sample, sums)
/// gives those of some pixels.
template <class Body>
std::vector<double> sums_of_pixels(int64_t samples, int64_t rows, int64_t c, bool converted, const Body& body) {
  const int64_t grain = rows_per_piece(rows, c), pieces = (rows + grain - 1) / grain;
  std::vector<double> total(size_t(samples * 2 * c), 0.0), parts(size_t(samples * pieces * 2 * c), 0.0);
  parallel_for(samples * pieces, std::max<int64_t>(1, 32768 / std::max<int64_t>(1, c * std::min(grain, rows))),
               [&](int64_t begin, int64_t end) {
                 std::vector<double> sums(size_t(2 * c));
                 for (int64_t p = begin; p < end; ++p) {
                   const int64_t sample = p / pieces, first = p % pieces * grain;
                   double* const part = parts.data() + p * 2 * c;
                   in_runs(first, std::min(rows, first + grain), c, converted, [&](int64_t i, int64_t count) {
                     body((sample * rows + i) * c, count, sample, sums.data());
                     for (int64_t j = 0; j < 2 * c; ++j) part[j] += sums[size_t(j)];
                   });
                 }
               });
  for (int64_t p = 0; p < samples * pieces; ++p)
    for (int64_t j = 0; j < 2 * c; ++j) total[size_t(p / pieces * 2 * c + j)] += parts[size_t(p * 2 * c + j)];
  return total;
}

/// A gradient of a parameter in the dtype of the parameter's kind, or undefined.
inline Tensor back(const Tensor& t, DType dtype) {
  if (!t.defined() || t.dtype() == dtype) return t;
  Tensor cast = empty_strided(t.sizes(), t.strides(), dtype);
  ops::copy_(cast, t);
  return cast;
}

}  // namespace taeda::cpu
