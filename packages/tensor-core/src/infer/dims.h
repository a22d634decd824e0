// Dimensions as kernels want them, of arguments that inference has let through.
#pragma once
#include <algorithm>

#include "taeda/infer.h"

namespace taeda::infer {

/// `dim` counted from the front; that of a number is 0.
constexpr int64_t axis_of(int64_t dim, int64_t ndim) noexcept {
  return dim < 0 ? dim + std::max<int64_t>(ndim, 1) : dim;
}

/// Bit d is set when dimension d is reduced.
inline uint64_t reduced_mask(const Tensor& self, const Dims& dim) noexcept {
  const uint64_t all = self.dim() == 64 ? ~uint64_t(0) : (uint64_t(1) << self.dim()) - 1;
  if (!dim || dim->empty()) return all;
  uint64_t reduced = 0;
  for (int64_t d : *dim) reduced |= uint64_t(1) << axis_of(d, self.dim());
  return reduced & all;
}

}  // namespace taeda::infer
