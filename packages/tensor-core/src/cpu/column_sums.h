// Sums of the columns of a row-major matrix: gradients of biases.
#pragma once
#include <algorithm>
#include <type_traits>

#include "taeda/dtype.h"
#include "taeda/interrupt.h"
#include "taeda/parallel.h"

namespace taeda::cpu {

/// Blocks of rows are added up first, so that long columns lose little precision; the order is fixed.
template <class T>
void column_sums(T* out, const T* rows_data, int64_t rows, int64_t columns) {
  constexpr int64_t kRows = 64;
  using W = std::conditional_t<std::is_same_v<T, float>, double,
                               std::conditional_t<std::is_same_v<T, Complex64>, Complex128, T>>;
  parallel_for(columns, 256, [=](int64_t begin, int64_t end) {
    T part[256];
    W total[256];
    const int64_t width = end - begin;
    std::fill_n(total, width, W(0));
    Patience patience;
    for (int64_t block = 0; block < rows; block += kRows) {
      patience();
      std::fill_n(part, width, T(0));
      for (int64_t i = block; i < std::min(rows, block + kRows); ++i) {
        const T* const row = rows_data + i * columns + begin;
        for (int64_t j = 0; j < width; ++j) part[j] += row[j];
      }
      for (int64_t j = 0; j < width; ++j) total[j] += W(part[j]);
    }
    for (int64_t j = 0; j < width; ++j) out[begin + j] = T(total[j]);
  });
}

}  // namespace taeda::cpu
