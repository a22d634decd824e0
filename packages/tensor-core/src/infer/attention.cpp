// Inference of the attention family.
#include "infer/attention.h"

#include <algorithm>

#include "infer/dtypes.h"
#include "infer/gradients.h"
#include "infer/memory_format.h"
#include "taeda/abi.h"
#include "taeda/backend.h"
#include "taeda/ops/attention.h"

namespace taeda::infer {
namespace {

void expect_sizes(const char* op, const char* argument, const Tensor& t, const Shape& expected) {
  check(std::ranges::equal(t.sizes(), expected), ErrorKind::Runtime, op, ": argument '", argument, "' has shape ",
        shape_text(t.sizes()), ", expected ", shape_text(expected));
}
void expect_operands(const char* op, const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& mask) {
  check(is_floating(query.dtype()), ErrorKind::NotImplemented, op, ": not implemented for dtype ", name(query.dtype()));
  expect_dtype(op, "key", key, query.dtype(), "query");
  expect_dtype(op, "value", value, query.dtype(), "query");
  check(query.dim() == 4, ErrorKind::Runtime, op, ": argument 'query' has shape ", shape_text(query.sizes()),
        ", expected (N, H, L, E)");
  check(key.dim() == 4, ErrorKind::Runtime, op, ": argument 'key' has shape ", shape_text(key.sizes()),
        ", expected (N, H, S, E)");
  const int64_t n = query.size(0), h = query.size(1), own = key.size(1), places = key.size(2);
  const bool grouped = takes_head_groups(query.device()) && own > 0 && h % own == 0;
  const int64_t shared = grouped ? own : h;
  expect_sizes(op, "key", key, Shape{n, shared, places, query.size(3)});
  check(value.dim() == 4, ErrorKind::Runtime, op, ": argument 'value' has shape ", shape_text(value.sizes()),
        ", expected (N, H, S, Ev)");
  expect_sizes(op, "value", value, Shape{n, shared, places, value.size(3)});
  if (!mask.defined()) return;
  expect_sizes(op, "attn_mask", mask, Shape{n, h, query.size(2), places});
  if (mask.dtype() != DType::Bool) expect_dtype(op, "attn_mask", mask, query.dtype(), "query");
}

/// Strides of rows that follow one another as those of `query` do: where heads lie side by side in it, joining the
/// result's needs no copy, and where they do not, programs view the result as row-major. Empty: row-major.
Shape rows_laid_as(const Tensor& query, const Shape& sizes) {
  if (product(sizes) == 0) return {};
  const Tensor* const only[] = {&query};
  const Shape strides = closed_strides(sizes, only);
  return !strides.empty() && strides[3] == 1 ? strides : Shape();
}

}  // namespace

bool takes_head_groups(Device device) {
  if (device.backend == kCPU || device.backend == kMeta) return true;
  const taeda_backend* const plugin = backend(device.backend).plugin();
  return plugin && (plugin->capabilities & TAEDA_CAN_GROUP_HEADS);
}

std::array<Spec, 2> fused_attention(const Tensor& query, const Tensor& key, const Tensor& value,
                                    const Tensor& attn_mask, bool, double) {
  expect_operands("fused_attention", query, key, value, attn_mask);
  const int64_t n = query.size(0), h = query.size(1), length = query.size(2), features = value.size(3);
  Spec result = spec(Shape{n, h, length, features}, query.dtype());
  result.strides = rows_laid_as(query, result.sizes);
  return {result, spec(Shape{n, h, length}, statistics_dtype(query.dtype()))};
}

void fused_attention_backward(const Tensor& grad, const Tensor& query, const Tensor& key, const Tensor& value,
                              const Tensor& attn_mask, const Tensor& result, const Tensor& logsumexp) {
  const char* const op = "fused_attention_backward";
  expect_operands(op, query, key, value, attn_mask);
  const Shape given{query.size(0), query.size(1), query.size(2), value.size(3)};
  expect_sizes(op, "grad", grad, given);
  expect_sizes(op, "result", result, given);
  expect_sizes(op, "logsumexp", logsumexp, Shape{given[0], given[1], given[2]});
  expect_dtype(op, "grad", grad, query.dtype(), "query");
  expect_dtype(op, "result", result, query.dtype(), "query");
  check(is_floating(logsumexp.dtype()), ErrorKind::Runtime, op, ": argument 'logsumexp' has dtype ",
        name(logsumexp.dtype()), ", expected a floating-point dtype");
}

namespace {

std::tuple<Tensor, Tensor, Tensor> backward_meta(const Tensor& grad, const Tensor& query, const Tensor& key,
                                                 const Tensor& value, const Tensor&, const Tensor&, const Tensor&, bool,
                                                 double, int64_t output_mask) {
  return {gradient_meta(grad, query.sizes(), output_mask, 1), gradient_meta(grad, key.sizes(), output_mask, 2),
          gradient_meta(grad, value.sizes(), output_mask, 4)};
}
const bool registered = [] {
  kernel<op::fused_attention_backward>(kMeta, backward_meta);
  return true;
}();

}  // namespace

}  // namespace taeda::infer
