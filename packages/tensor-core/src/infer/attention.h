// Check of the gradient of attention.
#pragma once
#include "taeda/tensor.h"

namespace taeda::infer {

/// The operands of fused_attention, its results and a gradient of the first.
void fused_attention_backward(const Tensor& grad, const Tensor& query, const Tensor& key, const Tensor& value,
                              const Tensor& attn_mask, const Tensor& result, const Tensor& logsumexp);

}  // namespace taeda::infer
