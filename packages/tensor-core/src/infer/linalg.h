// Checks of the linalg family.
#pragma once
#include "taeda/tensor.h"

namespace taeda::infer {

/// linear_backward: the operands of linear, and a gradient of the shape and dtype of its result.
void linear_backward(const Tensor& grad, const Tensor& input, const Tensor& weight);

}  // namespace taeda::infer
