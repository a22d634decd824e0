// Scaled dot-product attention.
#include <algorithm>
#include <cmath>
#include <limits>

#include "infer/attention.h"
#include "taeda/arithmetic.h"
#include "taeda/half.h"
#include "taeda/ops.h"
#include "taeda/tracking.h"
#include "taeda/wrappers.h"

namespace taeda::impl {
namespace {

constexpr double kNever = -std::numeric_limits<double>::infinity();

void expect_attention(const char* argument, const Tensor& t) {
  check(t.dim() >= 2, ErrorKind::Runtime, "scaled_dot_product_attention: argument '", argument, "' has shape ",
        shape_text(t.sizes()), ", expected at least 2 dimensions");
  check(is_differentiable(t.dtype()), ErrorKind::Runtime, "scaled_dot_product_attention: argument '", argument,
        "' has dtype ", name(t.dtype()), ", expected a floating-point dtype");
}
/// A mask of whole numbers would be added to the scores, whatever its writer thought; several dtypes are a mistake.
void expect_dtypes(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& mask) {
  check(key.dtype() == query.dtype() && value.dtype() == query.dtype(), ErrorKind::Runtime,
        "scaled_dot_product_attention: arguments 'query', 'key' and 'value' have dtypes ", name(query.dtype()), ", ",
        name(key.dtype()), " and ", name(value.dtype()), ", expected one");
  check(
      !mask.defined() || mask.dtype() == DType::Bool || mask.dtype() == DType::Float32 || mask.dtype() == query.dtype(),
      ErrorKind::Runtime, "scaled_dot_product_attention: argument 'attn_mask' has dtype ",
      mask.defined() ? name(mask.dtype()) : "", ", expected bool, float32 or ", name(query.dtype()),
      ", the dtype of 'query'");
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

bool differentiated(const Tensor& t) {
  return t.defined() && thread_state.grad_enabled && (is_tracked(t) || (t.impl()->flags & kCarries));
}
/// As (N, H, rows, columns).
Tensor four_dims(Tensor t) {
  while (t.dim() < 4) t = ops::unsqueeze(t, 0);
  return t;
}
/// What a query may attend to: keys up to its own place.
Tensor causal_mask(int64_t queries, int64_t keys, Device device) {
  return ops::tril(ops::ones(Shape{queries, keys}, DType::Bool, device));
}
/// A mask that leaves out later keys too.
Tensor without_future(const Tensor& mask, int64_t queries, int64_t keys) {
  const Tensor past = causal_mask(queries, keys, mask.device());
  if (mask.dtype() == DType::Bool) return ops::logical_and(mask, past);
  return ops::where(past, mask, Tensor(kNever));
}
void expect_heads(const char* argument, const Tensor& t, const Tensor& query) {
  check(query.dim() >= 3 && t.dim() >= 3, ErrorKind::Runtime,
        "scaled_dot_product_attention: argument 'enable_gqa' needs heads in dimension -3");
  const int64_t heads = query.size(-3), own = t.size(-3);
  check(own == heads || own == 0 || heads % own == 0, ErrorKind::Runtime, "scaled_dot_product_attention: argument '",
        argument, "' has ", own, " heads, expected a divisor of the ", heads, " of 'query'");
}
/// Whether several heads of queries attend to one of `t`.
bool shares_heads(const Tensor& query, const Tensor& t) { return t.size(-3) != query.size(-3); }
/// Heads of keys or values as often as queries have heads for each.
Tensor repeated(const Tensor& t, const Tensor& query) {
  return shares_heads(query, t) ? ops::repeat_interleave(t, query.size(-3) / t.size(-3), -3) : t;
}
bool same_lead(const Tensor& a, const Tensor& b, int64_t matrix_dims) {
  return a.dim() == b.dim() && std::ranges::equal(a.sizes().first(size_t(a.dim() - matrix_dims)),
                                                  b.sizes().first(size_t(b.dim() - matrix_dims)));
}
bool same_batch(const Tensor& a, const Tensor& b) { return same_lead(a, b, 2); }
/// Whether the operator that keeps no scores lets several heads of queries attend to one of keys and values.
bool takes_groups(const Tensor& query, const Tensor& key, const Tensor& value) {
  return infer::takes_head_groups(query.device()) && same_lead(query, key, 3) && same_lead(query, value, 3) &&
         key.size(-3) == value.size(-3);
}
/// Whether there are no heads, or no examples, for those that queries have.
bool lacks_a_partner(const Tensor& query, const Tensor& t, bool enable_gqa) {
  if (query.dim() != t.dim() || t.numel() != 0) return false;
  for (int64_t d = 0; d < t.dim() - 2; ++d)
    if (t.size(d) == 0 && query.size(d) > (enable_gqa && d == t.dim() - 3 ? 0 : 1)) return true;
  return false;
}
/// Zeros, which depend on the queries for whoever asks.
Tensor nothing_attended(const Tensor& query, int64_t features) {
  const int64_t last[] = {-1};
  Shape sizes(query.sizes());
  sizes[sizes.size() - 1] = features;
  return ops::clone(ops::expand(ops::sum(ops::narrow(query, -1, 0, 0), last, true), sizes), "contiguous_format");
}
/// Whether the operator that keeps no scores can take these.
bool fits_fused(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& mask, double dropout_p,
                bool enable_gqa) {
  // A mask of more digits than halves have keeps them.
  const bool rounds_mask =
      is_half(query) && mask.defined() && mask.dtype() != DType::Bool && mask.dtype() != query.dtype();
  return !is_complex(query.dtype()) && key.dtype() == query.dtype() && value.dtype() == query.dtype() && !rounds_mask &&
         dropout_p == 0 && query.dim() <= 4 && (!mask.defined() || mask.dim() <= query.dim()) &&
         ((same_batch(query, key) && same_batch(query, value)) || (enable_gqa && takes_groups(query, key, value))) &&
         query.numel() && key.numel() && value.numel() && !differentiated(mask);  // then the scores must have a history
}
/// Whether gradients of several heads are added up, which halves would round each of before.
bool adds_gradients(const Tensor& query, const Tensor& t) {
  return is_half(t) && differentiated(t) && shares_heads(query, t);
}
Tensor fused(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& attn_mask, bool is_causal,
             double scale) {
  const Tensor q = four_dims(query), k = four_dims(key), v = four_dims(value);
  Tensor mask;
  if (attn_mask.defined()) {
    const bool ready = attn_mask.dtype() == DType::Bool || attn_mask.dtype() == query.dtype();
    mask = ops::expand(four_dims(ready ? attn_mask : ops::to_dtype(attn_mask, query.dtype())),
                       Shape{q.size(0), q.size(1), q.size(2), k.size(2)});
  }
  Tensor out = std::get<0>(ops::fused_attention(q, k, v, mask, is_causal, scale));
  for (int64_t d = query.dim(); d < 4; ++d) out = ops::squeeze_dims(out, Shape{0});
  return out;
}

/// Halves through several steps in float32, rounded once.
Tensor through_float32(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& mask,
                       double dropout_p, bool is_causal, std::optional<double> scale, bool enable_gqa) {
  const Tensor result = scaled_dot_product_attention(in_float32(query), in_float32(key), in_float32(value),
                                                     in_float32(mask), dropout_p, is_causal, scale, enable_gqa);
  return from_float32(result, query.dtype());
}

}  // namespace

Tensor scaled_dot_product_attention(const Tensor& query, const Tensor& key, const Tensor& value,
                                    const Tensor& attn_mask, double dropout_p, bool is_causal,
                                    std::optional<double> scale, bool enable_gqa) {
  if (enable_gqa) {
    expect_heads("key", key, query);
    expect_heads("value", value, query);
  }
  expect_attention("query", query);
  expect_attention("key", key);
  expect_attention("value", value);
  expect_dtypes(query, key, value, attn_mask);
  expect_sizes("key", key, -1, query.size(-1), "the features of 'query'");
  expect_sizes("value", value, -2, key.size(-2), "the places of 'key'");
  if (is_causal && attn_mask.defined()) {
    const Tensor both = without_future(attn_mask, query.size(-2), key.size(-2));
    return scaled_dot_product_attention(query, key, value, both, dropout_p, false, scale, enable_gqa);
  }
  if (lacks_a_partner(query, key, enable_gqa) || lacks_a_partner(query, value, enable_gqa))
    return nothing_attended(query, value.size(-1));
  const double factor = scale.value_or(1 / std::sqrt(double(query.size(-1))));
  if (fits_fused(query, key, value, attn_mask, dropout_p, enable_gqa))
    return fused(query, key, value, attn_mask, is_causal, factor);
  if (enable_gqa && !adds_gradients(query, key) && !adds_gradients(query, value))
    return scaled_dot_product_attention(query, repeated(key, query), repeated(value, query), attn_mask, dropout_p,
                                        is_causal, factor, false);
  if (any_half(query, key, value, attn_mask))
    return through_float32(query, key, value, attn_mask, dropout_p, is_causal, factor, enable_gqa);
  // Each takes a root of the scale, and so is a copy: programs may overwrite theirs before backward.
  const double root = std::sqrt(std::abs(factor));
  Tensor scores = ops::matmul(query * Tensor(std::copysign(root, factor)), ops::transpose(key, -2, -1) * Tensor(root));
  if (is_causal) {
    const Tensor past = causal_mask(query.size(-2), key.size(-2), stated_device(query));
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
