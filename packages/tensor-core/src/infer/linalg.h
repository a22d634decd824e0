// Checks of the linalg family.
#pragma once
#include "taeda/tensor.h"

namespace taeda::infer {

/// linear_backward: the operands of linear, and a gradient of the shape and dtype of its result.
void linear_backward(const Tensor& grad, const Tensor& input, const Tensor& weight);

const Tensor& layer_bias_slow(const Tensor& bias, const Tensor& weight, Tensor& room);
/// The bias of a layer with one number for each of its outputs, where one row or one number stands for them.
inline const Tensor& layer_bias(const Tensor& bias, const Tensor& weight, Tensor&& room) {
  const bool fits = !bias.defined() || (bias.dim() == 1 && weight.dim() == 2 && bias.size(0) == weight.size(0));
  return fits ? bias : layer_bias_slow(bias, weight, room);
}

}  // namespace taeda::infer
