// Check of the gradient of attention.
#pragma once
#include "taeda/tensor.h"

namespace taeda::infer {

/// Whether a device's operator lets several neighbouring heads of queries attend to one of keys and values.
bool takes_head_groups(Device device);

/// The operands of fused_attention, its results and a gradient of the first.
void fused_attention_backward(const Tensor& grad, const Tensor& query, const Tensor& key, const Tensor& value,
                              const Tensor& attn_mask, const Tensor& result, const Tensor& logsumexp);

}  // namespace taeda::infer
