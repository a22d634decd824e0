// Operands of any layout, as dimensions that they are walked along.
#pragma once
#include <algorithm>
#include <cstdlib>
#include <utility>

#include "taeda/elementwise.h"

namespace taeda::cpu {

/// Elements converted at a time: all buffers of a call stay in the first-level cache.
inline constexpr int64_t kChunk = 512;

/// The walk over dimensions, innermost first.
struct Walk {
  int ndim = 0, count = 0, outputs = 1;
  int64_t sizes[kMaxDims];
  int64_t strides[kMaxDims][kMaxLoopOperands];  // bytes
  char* base[kMaxLoopOperands];
  DType dtype[kMaxLoopOperands], compute[kMaxLoopOperands];
  bool converts = false;
  bool joins = false;     // short runs go together, as of class Rows
  bool tiles = false;     // those that are gathered go on along the second dimension: they are turned, tile by tile
  uint32_t gathered = 0;  // bits of inputs that are brought together first, as those that are converted are

  bool direct(int k) const { return dtype[k] == compute[k] && !(gathered >> k & 1); }
};

inline void add_dims(Walk& walk, const LoopOperand* operands) {
  const Tensor& out = *operands[0].tensor;
  const int64_t *sizes[kMaxLoopOperands], *strides[kMaxLoopOperands];
  int64_t missing[kMaxLoopOperands], bytes[kMaxLoopOperands];
  for (int k = 0; k < walk.count; ++k) {
    const Tensor& t = *operands[k].tensor;
    missing[k] = out.dim() - t.dim(), bytes[k] = t.item_bytes();
    sizes[k] = t.sizes().data(), strides[k] = t.strides().data();
  }
  for (int64_t d = out.dim() - 1; d >= 0; --d) {
    if (sizes[0][d] == 1) continue;
    const int n = walk.ndim++;
    walk.sizes[n] = sizes[0][d];
    for (int k = 0; k < walk.count; ++k) {
      const int64_t own = d - missing[k];
      walk.strides[n][k] = own < 0 || sizes[k][own] == 1 ? 0 : strides[k][own] * bytes[k];
    }
  }
}

/// Smallest strides first, so that the inner loop runs along memory: the output decides, then the inputs in order.
inline bool goes_inside(const Walk& walk, int a, int b) {
  for (int k = 0; k < walk.count; ++k) {
    const int64_t x = std::abs(walk.strides[a][k]), y = std::abs(walk.strides[b][k]);
    if (x == y || x == 0 || y == 0) continue;
    return x < y;
  }
  return false;
}
inline void swap_dims(Walk& walk, int a, int b) {
  std::swap(walk.sizes[a], walk.sizes[b]);
  std::swap(walk.strides[a], walk.strides[b]);
}
inline void order_dims(Walk& walk) {
  for (int i = 1; i < walk.ndim; ++i)
    for (int j = i; j > 0 && goes_inside(walk, j, j - 1); --j) swap_dims(walk, j, j - 1);
}
inline void merge_dims(Walk& walk) {
  if (walk.ndim == 0) {  // one element
    walk.ndim = 1;
    walk.sizes[0] = 1;
    std::fill_n(walk.strides[0], kMaxLoopOperands, 0);
    return;
  }
  int last = 0;
  for (int d = 1; d < walk.ndim; ++d) {
    bool fits = true;
    for (int k = 0; k < walk.count && fits; ++k) fits = walk.strides[d][k] == walk.strides[last][k] * walk.sizes[last];
    if (fits) {
      walk.sizes[last] *= walk.sizes[d];
    } else if (++last != d) {
      walk.sizes[last] = walk.sizes[d];
      std::copy_n(walk.strides[d], kMaxLoopOperands, walk.strides[last]);
    }
  }
  walk.ndim = last + 1;
}

}  // namespace taeda::cpu
