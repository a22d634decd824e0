// Inference of the embedding family.
#include <array>
#include <optional>

#include "taeda/checked.h"
#include "taeda/ops/embedding.h"
#include "infer/dtypes.h"

namespace taeda::infer {
namespace {

void expect_indices(const char* op, const Tensor& indices) {
  check(is_integral(indices.dtype()) && indices.dtype() != DType::Bool, ErrorKind::Runtime, op,
        ": argument 'indices' has dtype ", name(indices.dtype()), ", expected an integer dtype");
}

}  // namespace

Spec embedding(const Tensor& weight, const Tensor& indices, int64_t padding_idx, bool, bool sparse) {
  check(weight.dim() == 2, ErrorKind::Runtime, "embedding: argument 'weight' has shape ", shape_text(weight.sizes()),
        ", expected (rows, D)");
  expect_indices("embedding", indices);
  check(padding_idx < weight.size(0), ErrorKind::Runtime, "embedding: argument 'padding_idx' is ", padding_idx,
        ", expected less than the ", weight.size(0), " rows of 'weight'");
  check(!sparse, ErrorKind::NotImplemented,
        "embedding: argument 'sparse' must be False, sparse gradients are not offered");
  Spec out = spec(indices.sizes(), weight.dtype());
  out.sizes.push_back(weight.size(1));
  return out;
}
Spec embedding_backward(const Tensor& grad, const Tensor& indices, int64_t num_weights, int64_t, bool) {
  expect_indices("embedding_backward", indices);
  check(is_floating(grad.dtype()) || is_complex(grad.dtype()), ErrorKind::NotImplemented,
        "embedding_backward: not implemented for dtype ", name(grad.dtype()));
  check(grad.dim() == indices.dim() + 1 && (Count(indices.numel()) * grad.size(-1)).is(grad.numel()),
        ErrorKind::Runtime, "embedding_backward: argument 'grad' has shape ", shape_text(grad.sizes()),
        ", expected the shape of 'indices' ", shape_text(indices.sizes()), " and one more dimension");
  return spec(Shape{num_weights, grad.size(-1)}, grad.dtype());
}

std::array<Spec, 4> embedding_bag(const Tensor& weight, const Tensor& indices, const Tensor& offsets, bool,
                                  int64_t mode, bool sparse, const Tensor& per_sample_weights, bool include_last_offset,
                                  std::optional<int64_t> padding_idx) {
  const char* const op = "embedding_bag";
  check(weight.dim() == 2, ErrorKind::Runtime, op, ": argument 'weight' has shape ", shape_text(weight.sizes()),
        ", expected (rows, D)");
  check(is_floating(weight.dtype()), ErrorKind::NotImplemented, op, ": not implemented for dtype ",
        name(weight.dtype()));
  for (const auto& [argument, t] : {std::pair<const char*, const Tensor&>{"indices", indices}, {"offsets", offsets}}) {
    check(t.dim() == 1, ErrorKind::Runtime, op, ": argument '", argument, "' has shape ", shape_text(t.sizes()),
          ", expected 1 dimension");
    check(t.dtype() == DType::Int64 || t.dtype() == DType::Int32, ErrorKind::Runtime, op, ": argument '", argument,
          "' has dtype ", name(t.dtype()), ", expected int32 or int64");
  }
  check(mode >= 0 && mode <= 2, ErrorKind::Runtime, op, ": argument 'mode' must be 0 (sum), 1 (mean) or 2 (max), got ",
        mode);
  check(!sparse, ErrorKind::NotImplemented, op, ": argument 'sparse' must be False, sparse gradients are not offered");
  if (per_sample_weights.defined()) {
    check(mode == 0, ErrorKind::Runtime, op, ": argument 'per_sample_weights' is for mode 0 (sum), got mode ", mode);
    expect_dtype(op, "per_sample_weights", per_sample_weights, weight.dtype(), "weight");
    check(per_sample_weights.dim() == 1 && per_sample_weights.size(0) == indices.size(0), ErrorKind::Runtime, op,
          ": argument 'per_sample_weights' has shape ", shape_text(per_sample_weights.sizes()),
          ", expected that of 'indices', ", shape_text(indices.sizes()));
  }
  check(!include_last_offset || offsets.size(0) >= 1, ErrorKind::Runtime, op,
        ": argument 'offsets' must have at least 1 element with include_last_offset, got shape ",
        shape_text(offsets.sizes()));
  check(!padding_idx || (*padding_idx >= -weight.size(0) && *padding_idx < weight.size(0)), ErrorKind::Runtime, op,
        ": argument 'padding_idx' is ", padding_idx.value_or(0), ", expected within the ", weight.size(0),
        " rows of 'weight'");
  const int64_t bags = offsets.size(0) - (include_last_offset ? 1 : 0), width = weight.size(1);
  const Shape places = mode == 2 ? Shape{bags, width} : Shape{0};
  return {spec(Shape{bags, width}, weight.dtype()), spec(indices.sizes(), DType::Int64),
          spec(Shape{bags}, DType::Int64), spec(places, DType::Int64)};
}

}  // namespace taeda::infer
