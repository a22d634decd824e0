// Gradients of the shape and index families that take more than a line.
#include "taeda/autograd/formulas.h"

#include <algorithm>

#include "taeda/autograd/engine.h"
#include "taeda/autograd/views.h"
#include "taeda/wrappers.h"

namespace taeda::formulas {

Shape inverse_permutation(IntSpan dims) {
  const int64_t n = int64_t(dims.size());
  Shape inverse(dims.size());
  for (int64_t i = 0; i < n; ++i) inverse[size_t(dims[i] < 0 ? dims[i] + n : dims[i])] = i;
  return inverse;
}

Shape negated(IntSpan values) {
  Shape out(values);
  for (int64_t& v : out) v = -v;
  return out;
}

Tensor as_strided_grad(const Tensor& grad, IntSpan sizes, IntSpan strides, int64_t offset, IntSpan view_sizes,
                       IntSpan view_strides, std::optional<int64_t> view_offset) {
  using autograd::Geometry;
  const Geometry base{Shape(sizes), Shape(strides), offset};
  return autograd::embed(grad, base, Geometry{Shape(view_sizes), Shape(view_strides), view_offset.value_or(offset)});
}

std::vector<Tensor> cat_backward(const Tensor& grad, const std::vector<Shape>& sizes, int64_t dim) {
  const int64_t d = wrap_dim(dim, grad.dim(), "cat");
  std::vector<Tensor> out;
  int64_t at = 0;
  for (const Shape& size : sizes) {
    if (size.size() == 1 && size[0] == 0) {  // an empty 1-d tensor joins anything and takes no place
      out.push_back(ops::new_zeros(grad, size));
      continue;
    }
    out.push_back(ops::slice(grad, d, at, at + size[size_t(d)], 1));
    at += size[size_t(d)];
  }
  return out;
}

Tensor diagonal_backward(const Tensor& grad, IntSpan sizes, int64_t offset, int64_t dim1, int64_t dim2) {
  const Tensor out = ops::new_zeros(grad, sizes);
  ops::copy_(ops::diagonal(out, offset, dim1, dim2), grad);
  return out;
}

Tensor select_backward(const Tensor& grad, IntSpan sizes, int64_t dim, int64_t index) {
  const auto add = [&](const Tensor& sum) { ops::add_(ops::select(sum, dim, index), grad); };
  if (autograd::add_at_once("SelectBackward0", sizes, grad.dtype(), add)) return {};
  const Tensor out = ops::new_zeros(grad, sizes);
  ops::copy_(ops::select(out, dim, index), grad);
  return out;
}

Tensor slice_backward(const Tensor& grad, IntSpan sizes, int64_t dim, std::optional<int64_t> start,
                      std::optional<int64_t> stop, int64_t step) {
  const auto add = [&](const Tensor& sum) { ops::add_(ops::slice(sum, dim, start, stop, step), grad); };
  if (autograd::add_at_once("SliceBackward0", sizes, grad.dtype(), add)) return {};
  const Tensor out = ops::new_zeros(grad, sizes);
  ops::copy_(ops::slice(out, dim, start, stop, step), grad);
  return out;
}

Tensor unfold_backward(const Tensor& grad, IntSpan sizes, int64_t dimension, int64_t size, int64_t step) {
  if (sizes.empty()) return ops::sum(grad, Shape{0}, false);  // of one window or of none
  const int64_t d = wrap_dim(dimension, int64_t(sizes.size()), "unfold");
  const Tensor numbers = ops::reshape(
      ops::unfold(ops::arange(0, sizes[size_t(d)], 1, DType::Int64, stated_device(grad)), 0, size, step), Shape{-1});
  // (..., windows, ..., size) -> (..., windows * size, ...)
  const Tensor windows = ops::flatten(ops::movedim(grad, Shape{-1}, Shape{d + 1}), d, d + 1);
  return ops::index_add(ops::new_zeros(grad, sizes), d, numbers, windows);
}

Tensor index_backward(const Tensor& grad, IntSpan sizes, TensorList indices) {
  const Tensor out = ops::new_zeros(grad, sizes);
  ops::index_put_(out, indices, grad, true);
  return out;
}

Tensor scatter_src_backward(const Tensor& grad, int64_t dim, const Tensor& index, IntSpan src_sizes) {
  if (index.numel() == 0) return ops::new_zeros(grad, src_sizes);
  return widen(ops::gather(grad, dim, index), src_sizes);
}

Tensor widen(const Tensor& part, IntSpan sizes) {
  if (std::ranges::equal(part.sizes(), sizes)) return part;
  if (part.numel() == 1 && product(sizes) == 1) return ops::reshape(part, sizes);
  if (part.dim() == 0) return widen(ops::reshape(part, Shape{1}), sizes);
  const Tensor out = ops::new_zeros(part, sizes);
  Tensor window = out;
  for (int64_t d = 0; d < part.dim(); ++d) window = ops::slice(window, d, 0, part.size(d), 1);
  ops::copy_(window, part);
  return out;
}

}  // namespace taeda::formulas
