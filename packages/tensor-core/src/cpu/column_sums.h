// Sums of the columns of a row-major matrix: gradients of biases.
#pragma once
#include <algorithm>
#include <complex>
#include <cstring>
#include <type_traits>

#include "taeda/dtype.h"
#include "taeda/interrupt.h"
#include "taeda/parallel.h"

namespace taeda::cpu {

/// sums[j] = sum of `rows` rows, `step` apart, at the columns from j on: a few at a time stay in registers, and the
/// rows' lines are asked for together. T: a real type.
template <class T>
void add_rows(const T* from, int64_t rows, int64_t step, int64_t columns, T* sums) {
  typedef T Vector __attribute__((vector_size(16)));
  constexpr int64_t kVectors = 8, kLanes = 16 / int64_t(sizeof(T));
  int64_t j = 0;
  for (; j + kVectors * kLanes <= columns; j += kVectors * kLanes) {
    Vector part[kVectors];
#pragma GCC unroll 8
    for (int64_t u = 0; u < kVectors; ++u) part[u] = Vector{};
    for (int64_t i = 0; i < rows; ++i)
#pragma GCC unroll 8
      for (int64_t u = 0; u < kVectors; ++u) {
        Vector next;
        std::memcpy(&next, from + i * step + j + u * kLanes, sizeof next);
        part[u] += next;
      }
#pragma GCC unroll 8
    for (int64_t u = 0; u < kVectors; ++u) std::memcpy(sums + j + u * kLanes, &part[u], sizeof part[u]);
  }
  for (; j < columns; ++j) {
    T part(0);
    for (int64_t i = 0; i < rows; ++i) part = T(part + from[i * step + j]);
    sums[j] = part;
  }
}
template <class T>
void add_rows(const std::complex<T>* from, int64_t rows, int64_t step, int64_t columns, std::complex<T>* sums) {
  add_rows(reinterpret_cast<const T*>(from), rows, 2 * step, 2 * columns, reinterpret_cast<T*>(sums));
}

/// Blocks of rows are added up first, so that long columns lose little precision; the order is fixed.
template <class T>
void column_sums(T* out, const T* rows_data, int64_t rows, int64_t columns) {
  constexpr int64_t kRows = 64, kWidth = 256;
  using W = std::conditional_t<std::is_same_v<T, float>, double,
                               std::conditional_t<std::is_same_v<T, Complex64>, Complex128, T>>;
  const int64_t grain = std::clamp<int64_t>((1 << 15) / std::max<int64_t>(1, rows) / 32 * 32, 32, kWidth);
  parallel_for(columns, grain, [=](int64_t begin, int64_t end) {
    T part[kWidth];
    W total[kWidth];
    Patience patience;
    for (int64_t at = begin; at < end; at += kWidth) {
      const int64_t width = std::min(kWidth, end - at);
      std::fill_n(total, width, W(0));
      for (int64_t block = 0; block < rows; block += kRows) {
        patience();
        add_rows(rows_data + block * columns + at, std::min(kRows, rows - block), columns, width, part);
        for (int64_t j = 0; j < width; ++j) total[j] += W(part[j]);
      }
      for (int64_t j = 0; j < width; ++j) out[at + j] = T(total[j]);
    }
  });
}

}  // namespace taeda::cpu
