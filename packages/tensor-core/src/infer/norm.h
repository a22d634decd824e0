// Checks of the gradients of normalisation.
#pragma once
#include "taeda/tensor.h"

namespace taeda::infer {

// The operands of the native operators, a gradient of the result's shape, and statistics of theirs.
void batch_norm_backward(const Tensor& grad, const Tensor& input, const Tensor& weight, const Tensor& save_mean,
                         const Tensor& save_invstd);
void layer_norm_backward(const Tensor& grad, const Tensor& input, IntSpan normalized_shape, const Tensor& mean,
                         const Tensor& rstd, const Tensor& weight);
void group_norm_backward(const Tensor& grad, const Tensor& input, int64_t num_groups, const Tensor& mean,
                         const Tensor& rstd, const Tensor& weight);

}  // namespace taeda::infer
