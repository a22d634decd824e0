// How the dimensions of operands that are met element by element become as few as they can.
#pragma once
#include <algorithm>
#include <array>
#include <cstdlib>
#include <span>

#include "ops/call.h"

namespace taeda::cuda {

/// Dimensions of the output, the slowest first, with the strides of all of up to `Most` operands in each; the output's
/// come last.
template <int Most>
struct Dimensions {
  int ndim = 0;
  int64_t sizes[TAEDA_MAX_DIMS];
  int64_t strides[Most][TAEDA_MAX_DIMS];
};

inline int64_t stride_in(const Tensor& t, int d, int ndim) {
  const int own = d - (ndim - t.ndim());
  return own < 0 || t.size(own) == 1 ? 0 : t.stride(own);
}
/// The last of the tensors is the output, to which the others are broadcast.
template <int Most>
Dimensions<Most> merged_dimensions(std::span<const Tensor* const> tensors) {
  const Tensor& out = *tensors.back();
  const int count = int(tensors.size()), ndim = out.ndim();
  std::array<int, TAEDA_MAX_DIMS> order;
  int kept = 0;
  for (int d = 0; d < ndim; ++d)
    if (out.size(d) != 1) order[size_t(kept++)] = d;
  std::stable_sort(order.begin(), order.begin() + kept,
                   [&](int a, int b) { return std::abs(out.stride(a)) > std::abs(out.stride(b)); });
  Dimensions<Most> to;
  for (int i = 0; i < kept; ++i) {
    const int d = order[size_t(i)];
    bool merges = to.ndim > 0;
    for (int k = 0; k < count && merges; ++k)
      merges = to.strides[k][to.ndim - 1] == stride_in(*tensors[size_t(k)], d, ndim) * out.size(d);
    const int at = merges ? to.ndim - 1 : to.ndim++;
    to.sizes[at] = merges ? to.sizes[at] * out.size(d) : out.size(d);
    for (int k = 0; k < count; ++k) to.strides[k][at] = stride_in(*tensors[size_t(k)], d, ndim);
  }
  return to;
}

}  // namespace taeda::cuda
