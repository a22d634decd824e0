// Attention and its gradient, with all scores at once.
#include <algorithm>
#include <limits>

#include "decompose/common.h"
#include "taeda/wrappers.h"

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
      const Tensor past = ops::tril(ops::ones(Shape{query.size(2), key.size(2)}, DType::Bool, stated_device(query)));
      scores = ops::masked_fill(scores, ops::logical_not(past), never);
    }
    // Rows that see nothing have weights of 0, and a slope of 0.
    const Tensor blind = ops::all(ops::eq(scores, never), Shape{-1}, true);
    const Tensor sighted = ops::masked_fill(scores, blind, Tensor(0));
    of = ops::masked_fill(ops::softmax(sighted, -1), blind, Tensor(0));
    logsumexp = ops::masked_fill(ops::logsumexp(sighted, Shape{-1}), ops::squeeze_dims(blind, Shape{-1}), never);
  }
};

/// Keys that a causal mask lets somebody see; those behind them have no part in anything, whatever they hold.
int64_t seen(const Tensor& query, const Tensor& key, bool causal) {
  return causal ? std::min(query.size(2), key.size(2)) : key.size(2);
}
Tensor first(const Tensor& t, int64_t dim, int64_t count) {
  return !t.defined() || t.size(dim) == count ? t : ops::narrow(t, dim, 0, count);
}
/// Zeros behind the gradient of the first keys.
Tensor filled(const Tensor& grad, const Tensor& like) {
  if (grad.size(2) == like.size(2)) return grad;
  const Tensor rest = ops::zeros_like(ops::narrow(like, 2, grad.size(2), like.size(2) - grad.size(2)));
  return ops::cat(std::vector<Tensor>{grad, rest}, 2);
}

/// Heads of keys or values as often as several heads of queries attend to each.
Tensor repeated(const Tensor& t, const Tensor& query) {
  const int64_t heads = query.size(1);
  return t.size(1) == heads ? t : ops::repeat_interleave(t, heads / t.size(1), 1);
}
/// The gradient of what was repeated.
Tensor gathered(const Tensor& grad, const Tensor& like) {
  const int64_t own = like.size(1);
  if (grad.size(1) == own) return grad;
  return ops::sum(ops::reshape(grad, Shape{grad.size(0), own, grad.size(1) / own, grad.size(2), grad.size(3)}),
                  Shape{2}, false);
}

Two fused_attention(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& mask, bool causal,
                    double scale) {
  const int64_t keys = seen(query, key, causal);
  const Weights weights(query, repeated(first(key, 2, keys), query), first(mask, 3, keys), causal, scale);
  return {ops::matmul(weights.of, repeated(first(value, 2, keys), query)), weights.logsumexp};
}
Three fused_attention_backward(const Tensor& grad, const Tensor& query, const Tensor& key, const Tensor& value,
                               const Tensor& mask, const Tensor&, const Tensor&, bool causal, double scale,
                               int64_t wanted) {
  const int64_t keys = seen(query, key, causal);
  const Tensor k = repeated(first(key, 2, keys), query), v = repeated(first(value, 2, keys), query);
  const Tensor p = Weights(query, k, first(mask, 3, keys), causal, scale).of;
  const Tensor up = ops::matmul(grad, ops::transpose(v, -2, -1));
  const Tensor slope = p * (up - ops::sum(p * up, Shape{-1}, true)) * Tensor(scale);
  return {wanted & 1 ? ops::matmul(slope, k) : Tensor(),
          wanted & 2 ? filled(gathered(ops::matmul(ops::transpose(slope, -2, -1), query), key), key) : Tensor(),
          wanted & 4 ? filled(gathered(ops::matmul(ops::transpose(p, -2, -1), grad), value), value) : Tensor()};
}

DECOMPOSE(fused_attention)
DECOMPOSE(fused_attention_backward)

}  // namespace
}  // namespace taeda::decompose
