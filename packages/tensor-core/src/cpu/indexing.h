// Shared by indexing kernels: plans of advanced indexing, strided block copies, exact accumulation.
#pragma once
#include <type_traits>
#include <vector>

#include "taeda/interrupt.h"
#include "taeda/tensor.h"

namespace taeda::cpu {

/// Advanced indexing resolved to byte offsets: result = [before dims] + picked shape + [after dims].
struct IndexPlan {
  Shape result;                    // shape of self[indices]
  Shape picked;                    // broadcast shape of the index tensors
  int64_t picked_at = 0;           // its position in `result`
  std::vector<int64_t> offsets;    // one per picked element, bytes into self
  Shape rest_sizes, rest_strides;  // dimensions of self that are kept whole (strides in elements)
};
IndexPlan plan_index(const char* op, const Tensor& self, TensorList indices);

/// int64, row-major copy of an integer index tensor, each entry checked and wrapped into [0, size).
std::vector<int64_t> checked_indices(const char* op, const Tensor& index, int64_t size, int64_t dim);

/// Copies a block of `sizes` elements between strided places (strides in elements).
void copy_block(char* to, IntSpan to_strides, const char* from, IntSpan from_strides, IntSpan sizes, int64_t item);

/// a + b in the arithmetic of the dtype: halves in float, bool as "or".
template <class T>
T plus(T a, T b) {
  if constexpr (std::is_same_v<T, bool>)
    return a || b;
  else if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>)
    return T(float(a) + float(b));
  else if constexpr (std::is_integral_v<T>)
    return T(std::make_unsigned_t<T>(a) + std::make_unsigned_t<T>(b));
  else
    return a + b;
}
template <class T>
T times(T a, T b) {
  if constexpr (std::is_same_v<T, bool>)
    return a && b;
  else if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>)
    return T(float(a) * float(b));
  else if constexpr (std::is_integral_v<T>)
    return T(uint64_t(a) * uint64_t(b));
  else
    return a * b;
}

/// Visits every position of `sizes` in row-major order with element offsets into N strided tensors, from `offset` on.
template <size_t N, class Body>
void for_each_offset(IntSpan sizes, const std::array<IntSpan, N>& strides, const Body& body,
                     std::array<int64_t, N> offset = {}) {
  const int64_t count = product(sizes);
  if (count == 0) return;
  std::array<int64_t, kMaxDims> at{};
  if (sizes.empty()) return body(offset, at);
  // Rows of the last dimension go without the bookkeeping of the others.
  const int64_t last = int64_t(sizes.size()) - 1, length = sizes[size_t(last)];
  std::array<int64_t, N> step;
  for (size_t k = 0; k < N; ++k) step[k] = strides[k][size_t(last)];
  constexpr int64_t between = 1 << 16;  // elements between looks at signals
  int64_t left = between;
  for (int64_t row = 0; row < count; row += length) {
    for (at[size_t(last)] = 0; at[size_t(last)] < length;) {
      const int64_t end = std::min(length, at[size_t(last)] + between);
      if ((left -= end - at[size_t(last)]) < 0) [[unlikely]] {
        poll_signals();
        left = between;
      }
      for (; at[size_t(last)] < end; ++at[size_t(last)]) {
        body(offset, at);
        for (size_t k = 0; k < N; ++k) offset[k] += step[k];
      }
    }
    for (size_t k = 0; k < N; ++k) offset[k] -= step[k] * length;
    for (int64_t d = last - 1; d >= 0; --d) {
      for (size_t k = 0; k < N; ++k) offset[k] += strides[k][d];
      if (++at[d] < sizes[d]) break;
      for (size_t k = 0; k < N; ++k) offset[k] -= strides[k][d] * sizes[d];
      at[d] = 0;
    }
  }
}

}  // namespace taeda::cpu
