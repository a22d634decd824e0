// Gradients of distances and of bags of rows.
#include "taeda/autograd/formulas.h"

namespace taeda::formulas {

Two euclidean_grads(const Tensor& grad, const Tensor& x1, const Tensor& x2, const Tensor& distances,
                    const std::array<bool, 2>& wanted) {
  // Rows that meet have no direction: nothing goes there.
  const Tensor apart = ops::ne(distances, 0);
  const Tensor ratio = masked(grad / ops::where(apart, distances, Tensor(1)), apart);
  const auto side = [](const Tensor& r, const Tensor& own, const Tensor& other) {
    const int64_t last = -1;
    return own * ops::sum(r, IntSpan(&last, 1), true) - ops::matmul(r, other);
  };
  return {wanted[0] ? side(ratio, x1, x2) : Tensor(),
          wanted[1] ? side(ops::transpose(ratio, -1, -2), x2, x1) : Tensor()};
}

/// The row that is left out, from the start; -1: none.
static int64_t row_left_out(std::optional<int64_t> padding_idx, int64_t rows) {
  if (!padding_idx) return -1;
  return *padding_idx < 0 ? *padding_idx + rows : *padding_idx;
}

Tensor embedding_bag_grad(const Tensor& grad, const Tensor& indices, const Tensor& offset2bag, const Tensor& bag_size,
                          const Tensor& max_indices, int64_t rows, bool scale_grad_by_freq, int64_t mode,
                          const Tensor& per_sample_weights, std::optional<int64_t> padding_idx) {
  if (grad.size(0) == 0) return zeros_of(Shape{rows, grad.size(-1)}, grad);  // no bag, whatever the indices
  if (mode == 2) {
    const Tensor filled = masked(grad, ops::unsqueeze(ops::gt(bag_size, 0), -1));
    return ops::scatter_add(zeros_of(Shape{rows, grad.size(-1)}, grad), 0, max_indices, filled);
  }
  Tensor each = grad;
  if (mode == 1) each = each / ops::unsqueeze(ops::to_dtype(ops::clamp_min(bag_size, 1), grad.dtype()), -1);
  each = ops::index_select(each, 0, offset2bag);
  if (per_sample_weights.defined()) each = each * ops::unsqueeze(per_sample_weights, -1);
  return ops::embedding_backward(each, indices, rows, row_left_out(padding_idx, rows), scale_grad_by_freq);
}

Tensor embedding_bag_factor_grad(const Tensor& grad, const Tensor& weight, const Tensor& indices,
                                 const Tensor& offset2bag, std::optional<int64_t> padding_idx) {
  if (grad.size(0) == 0) return zeros_of(indices.sizes(), grad);
  const int64_t last = -1;
  const Tensor products = ops::index_select(grad, 0, offset2bag) * ops::embedding(weight, indices);
  const Tensor sums = ops::sum(products, IntSpan(&last, 1));
  const int64_t padding = row_left_out(padding_idx, weight.size(0));
  return padding >= 0 ? masked(sums, ops::ne(indices, padding)) : sums;
}

Tensor pick_in_planes(const Tensor& t, const Tensor& indices) {
  const Tensor picked = ops::gather(ops::flatten(t, -2, -1), -1, ops::flatten(indices, -2, -1));
  return ops::reshape(picked, indices.sizes());
}
Tensor maxima_of_volumes_grad(const Tensor& grad, IntSpan sizes, DType dtype, const Tensor& indices) {
  const auto volumes = [](IntSpan of) {
    Shape flat{1, 1};
    for (size_t d = 0; d < of.size(); ++d) flat[d + 3 < of.size() ? 0 : 1] *= of[d];
    return flat;
  };
  const Shape whole = volumes(sizes), part = volumes(grad.sizes());
  // Windows that overlap add up: halves in float32, which the engine rounds once.
  const DType wide = is_half(dtype) ? DType::Float32 : dtype;
  const Tensor zeros = ops::zeros(whole, wide, stated_device(grad)),
               added = ops::to_dtype(ops::reshape(grad, part), wide);
  return ops::reshape(ops::scatter_add(zeros, 1, ops::reshape(indices, part), added), sizes);
}

}  // namespace taeda::formulas
