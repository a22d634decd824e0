// Scaled dot-product attention.
#include <cmath>
#include <limits>

#include "taeda/arithmetic.h"
#include "taeda/ops.h"

namespace taeda::impl {
namespace {

constexpr double kNever = -std::numeric_limits<double>::infinity();

void expect_attention(const char* argument, const Tensor& t) {
  check(t.dim() >= 2, ErrorKind::Runtime, "scaled_dot_product_attention: argument '", argument, "' has shape ",
        shape_text(t.sizes()), ", expected at least 2 dimensions");
  check(is_differentiable(t.dtype()), ErrorKind::Runtime, "scaled_dot_product_attention: argument '", argument,
        "' has dtype ", name(t.dtype()), ", expected a floating-point dtype");
}
void expect_sizes(const char* argument, const Tensor& t, int64_t dim, int64_t size, const char* of) {
  check(t.size(dim) == size, ErrorKind::Runtime, "scaled_dot_product_attention: argument '", argument, "' has shape ",
        shape_text(t.sizes()), ", expected ", size, " in dimension ", dim, " to fit ", of);
}
/// Softmax over the last dimension; rows that are wholly -inf, where nothing may be attended to, give 0.
Tensor safe_softmax(const Tensor& scores) {
  const Tensor dead = ops::all(ops::eq(scores, Tensor(kNever)), Shape{-1}, true);
  return ops::masked_fill(ops::softmax(ops::masked_fill(scores, dead, Tensor(0)), -1), dead, Tensor(0));
}

}  // namespace

Tensor scaled_dot_product_attention(const Tensor& query, const Tensor& key, const Tensor& value,
                                    const Tensor& attn_mask, double dropout_p, bool is_causal,
                                    std::optional<double> scale) {
  expect_attention("query", query);
  expect_attention("key", key);
  expect_attention("value", value);
  expect_sizes("key", key, -1, query.size(-1), "the features of 'query'");
  expect_sizes("value", value, -2, key.size(-2), "the places of 'key'");
  check(!is_causal || !attn_mask.defined(), ErrorKind::Runtime,
        "scaled_dot_product_attention: argument 'attn_mask' must be None with is_causal=True");
  const double factor = scale.value_or(1 / std::sqrt(double(query.size(-1))));
  Tensor scores = ops::matmul(query, ops::transpose(key, -2, -1)) * Tensor(factor);
  if (is_causal) {
    const Tensor past = ops::tril(ops::ones(Shape{query.size(-2), key.size(-2)}, DType::Bool, query.device()));
    scores = ops::masked_fill(scores, ops::logical_not(past), Tensor(kNever));
  } else if (attn_mask.defined()) {
    scores = attn_mask.dtype() == DType::Bool ? ops::masked_fill(scores, ops::logical_not(attn_mask), Tensor(kNever))
                                              : scores + attn_mask;
  }
  // Each row of a causal mask leaves its own place.
  Tensor weights = attn_mask.defined() ? safe_softmax(scores) : ops::softmax(scores, -1);
  if (dropout_p > 0) weights = ops::dropout(weights, dropout_p, true);
  return ops::matmul(weights, value);
}

}  // namespace taeda::impl
