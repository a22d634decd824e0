// The checked geometry of losses over classes, used by inference and kernels alike.
#pragma once
#include "taeda/tensor.h"

namespace taeda::infer {

/// Input (n, c, inner): classes in dimension 1 (or 0 of a vector), `inner` positions behind it; one target each.
struct ClassShape {
  int64_t n, c, inner;
};
ClassShape class_shape(const char* op, const Tensor& input, const Tensor& target, const Tensor& weight);

}  // namespace taeda::infer
