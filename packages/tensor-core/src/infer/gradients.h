// What backward operators give on a device without memory.
#pragma once
#include "taeda/tensor.h"

namespace taeda::infer {

/// A tensor without bytes in the place of a gradient, undefined where the mask of wanted gradients leaves its bit out.
inline Tensor gradient_meta(const Tensor& grad, IntSpan sizes, int64_t output_mask, int64_t bit) {
  return output_mask & bit ? empty(sizes, grad.dtype(), grad.device()) : Tensor();
}

}  // namespace taeda::infer
