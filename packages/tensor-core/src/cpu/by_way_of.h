// Filling tensors by way of numbers of another dtype.
#pragma once
#include <algorithm>

#include "cpu/kernel.h"

namespace taeda::cpu {

/// `count` elements from `first` on, in the order of memory, of a contiguous tensor.
inline Tensor run_of(const Tensor& whole, int64_t first, int64_t count) {
  TensorImpl* const impl = whole.impl();
  const int64_t start = impl->data - static_cast<char*>(impl->storage->data);
  return from_storage(impl->storage, Shape{count}, Shape{1}, start + first * whole.item_bytes(), impl->dtype);
}

/// Fills `place` with what fill(const Tensor& numbers) gives as contiguous numbers of dtype `made`. A large tensor is
/// filled piece by piece, each of whole groups of numbers but for the last, so that little memory is needed besides.
template <class F>
void by_way_of(DType made, const Tensor& place, const F& fill) {
  constexpr int64_t piece = 1 << 16;
  const int64_t count = place.numel();
  if (!place.contiguous() || count < 2 * piece) {
    const Tensor numbers = empty(place.sizes(), made);
    fill(numbers);
    return copy_elements(place, numbers);
  }
  const Tensor room = empty(Shape{2 * piece}, made);
  for (int64_t first = 0, n = 0; first < count; first += n) {
    n = count - first < 2 * piece ? count - first : piece;
    const Tensor numbers = run_of(room, 0, n);
    fill(numbers);
    copy_elements(run_of(place, first, n), numbers);
  }
}

}  // namespace taeda::cpu
