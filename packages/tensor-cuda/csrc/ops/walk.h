// Dimensions of a tensor to go through, merged where they can be.
#pragma once
#include "ops/call.h"

namespace taeda::cuda {

/// Those whose bit is set, in their order, with sizes of another tensor of as many dimensions if it is given.
inline Walk walk_of(const Tensor& t, uint64_t mask, const Tensor* sizes = nullptr) {
  Walk walk;
  for (int d = 0; d < t.ndim(); ++d) {
    const int64_t size = sizes ? sizes->size(d) : t.size(d);
    if (!(mask >> d & 1) || size == 1) continue;
    const int last = walk.ndim - 1;
    if (last >= 0 && walk.strides[last] == t.stride(d) * size) {
      walk.sizes[last] *= size;
      walk.strides[last] = t.stride(d);
      continue;
    }
    if (walk.ndim == kDims)
      fail(TAEDA_E_NOT_IMPLEMENTED, "device 'cuda' takes at most 25 dimensions that cannot be merged");
    walk.sizes[walk.ndim] = size;
    walk.strides[walk.ndim++] = t.stride(d);
  }
  return walk;
}

}  // namespace taeda::cuda
