// Attention and its gradient, with all scores at once.
#include <limits>

#include "decompose/common.h"

namespace taeda::decompose {
namespace {

struct Weights {
  Tensor of, logsumexp;
  Weights(const Tensor& query, const Tensor& key, const Tensor& mask, bool causal, double scale) {
    const Tensor never(-std::numeric_limits<double>::infinity());
    Tensor scores = ops::matmul(query, ops::transpose(key, -2, -1)) * Tensor(scale);
    if (mask.defined())
      scores = mask.dtype() == DType::Bool ? ops::masked_fill(scores, ops::logical_not(mask), never) : scores + mask;
    if (causal) {
      const Tensor past = ops::tril(ops::ones(Shape{query.size(2), key.size(2)}, DType::Bool, query.device()));
      scores = ops::masked_fill(scores, ops::logical_not(past), never);
    }
    // Rows that see nothing have weights of 0, and a slope of 0.
    const Tensor blind = ops::all(ops::eq(scores, never), Shape{-1}, true);
    const Tensor sighted = ops::masked_fill(scores, blind, Tensor(0));
    of = ops::masked_fill(ops::softmax(sighted, -1), blind, Tensor(0));
    logsumexp = ops::masked_fill(ops::logsumexp(sighted, Shape{-1}), ops::squeeze_dims(blind, Shape{-1}), never);
  }
};

Two fused_attention(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& mask, bool causal,
                    double scale) {
  const Weights weights(query, key, mask, causal, scale);
  return {ops::matmul(weights.of, value), weights.logsumexp};
}
Three fused_attention_backward(const Tensor& grad, const Tensor& query, const Tensor& key, const Tensor& value,
                               const Tensor& mask, const Tensor&, const Tensor&, bool causal, double scale,
                               int64_t wanted) {
  const Tensor p = Weights(query, key, mask, causal, scale).of;
  const Tensor up = ops::matmul(grad, ops::transpose(value, -2, -1));
  const Tensor slope = p * (up - ops::sum(p * up, Shape{-1}, true)) * Tensor(scale);
  return {wanted & 1 ? ops::matmul(slope, key) : Tensor(),
          wanted & 2 ? ops::matmul(ops::transpose(slope, -2, -1), query) : Tensor(),
          wanted & 4 ? ops::matmul(ops::transpose(p, -2, -1), grad) : Tensor()};
}

DECOMPOSE(fused_attention)
DECOMPOSE(fused_attention_backward)

}  // namespace
}  // namespace taeda::decompose
