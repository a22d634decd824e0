// Gradients of scatter_reduce and of table look-ups.
#include "taeda/autograd/formulas.h"

namespace taeda::formulas {
namespace {

/// How many values met at each place of `self`.
Tensor counts_at(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src, bool include_self) {
  const Tensor start = include_self ? ops::ones_like(self) : ops::zeros_like(self);
  return ops::clamp_min(ops::scatter_add(start, dim, index, ops::ones_like(src)), 1);
}

[[noreturn]] void no_formula(std::string_view reduce) {
  fail(ErrorKind::NotImplemented, "scatter_reduce: the derivative with reduce='", reduce, "' is not implemented");
}

/// For amax/amin: gradient of one chosen element, ties share equally.
Tensor shared(const Tensor& grad, const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src, bool include_self, const Tensor& result) {
  const Tensor hits = ops::to_dtype(ops::eq(src, ops::gather(result, dim, index)), grad.dtype());
  const Tensor start = include_self ? ops::to_dtype(ops::eq(self, result), grad.dtype()) : ops::zeros_like(self);
  return grad / ops::clamp_min(ops::scatter_add(start, dim, index, hits), 1);
}

}  // namespace

Tensor scatter_reduce_grad_self(const Tensor& grad, const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src, std::string_view reduce,
                                bool include_self, const Tensor& result) {
  Tensor g;
  if (reduce == "sum")
    g = grad;
  else if (reduce == "mean")
    g = grad / counts_at(self, dim, index, src, include_self);
  else if (reduce == "amax" || reduce == "amin")
    g = shared(grad, self, dim, index, src, include_self, result) * ops::to_dtype(ops::eq(self, result), grad.dtype());
  else
    no_formula(reduce);
  return include_self ? g : ops::scatter_value(g, dim, index, 0);
}

Tensor scatter_reduce_grad_src(const Tensor& grad, const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src, std::string_view reduce,
                               bool include_self, const Tensor& result) {
  if (reduce == "sum") return scatter_src_backward(grad, dim, index, src.sizes());
  if (reduce == "mean") return scatter_src_backward(grad / counts_at(self, dim, index, src, include_self), dim, index, src.sizes());
  if (reduce != "amax" && reduce != "amin") no_formula(reduce);
  const Tensor hits = ops::to_dtype(ops::eq(src, ops::gather(result, dim, index)), grad.dtype());
  return ops::gather(shared(grad, self, dim, index, src, include_self, result), dim, index) * hits;
}

Tensor embedding_grad_grad(const Tensor& grad, const Tensor& indices, int64_t num_weights, int64_t padding_idx, bool scale_grad_by_freq) {
  Tensor rows = ops::embedding(grad, indices);
  if (padding_idx >= 0) rows = masked(rows, ops::unsqueeze(ops::ne(indices, padding_idx), -1));
  if (!scale_grad_by_freq) return rows;
  const Tensor counts = ops::bincount(ops::reshape(indices, Shape{-1}), Tensor(), num_weights);
  return rows / ops::unsqueeze(ops::to_dtype(ops::index(counts, std::array{indices}), grad.dtype()), -1);
}

}  // namespace taeda::formulas
