// Attention of halves on tensor cores, where the device has them and the shapes fit.
#pragma once
#include "ops/call.h"

namespace taeda::cuda {

/// The operands of a call of attention, (N, H, rows, elements); the mask may be absent.
struct AttentionOperands {
  const Tensor &query, &key, &value, &mask;
  bool causal;
  double scale;
};
bool takes_flash(const Call& call, const AttentionOperands& operands);
/// `logsumexp` is row-major float32.
void flash_attention(const Call& call, const AttentionOperands& operands, const Tensor& out, Address logsumexp);
/// Gradients of those that bits 1, 2, 4 of `wanted` name.
void flash_attention_backward(const Call& call, const AttentionOperands& operands, const Tensor& grad,
                              const Tensor& result, Address logsumexp, int64_t wanted);

}  // namespace taeda::cuda
