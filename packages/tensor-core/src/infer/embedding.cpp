// Inference of the embedding family.
#include "taeda/checked.h"
#include "taeda/ops/embedding.h"

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
  check(grad.dim() == indices.dim() + 1 && (Count(indices.numel()) * grad.size(-1)).is(grad.numel()),
        ErrorKind::Runtime, "embedding_backward: argument 'grad' has shape ", shape_text(grad.sizes()),
        ", expected the shape of 'indices' ", shape_text(indices.sizes()), " and one more dimension");
  return spec(Shape{num_weights, grad.size(-1)}, grad.dtype());
}

}  // namespace taeda::infer
