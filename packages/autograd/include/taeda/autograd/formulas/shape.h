// Gradients of the shape and index families that take more than a line.
#pragma once
#include <optional>
#include <vector>

#include "taeda/tensor.h"

namespace taeda::formulas {

/// Where each dimension went.
Shape inverse_permutation(IntSpan dims);
/// The parts of `grad` that belong to each joined tensor.
std::vector<Tensor> cat_backward(const Tensor& grad, const std::vector<Shape>& sizes, int64_t dim);
/// Zeros of `sizes` with `grad` in the viewed place.
Tensor diagonal_backward(const Tensor& grad, IntSpan sizes, int64_t offset, int64_t dim1, int64_t dim2);
Tensor select_backward(const Tensor& grad, IntSpan sizes, int64_t dim, int64_t index);
Tensor slice_backward(const Tensor& grad, IntSpan sizes, int64_t dim, std::optional<int64_t> start,
                      std::optional<int64_t> stop, int64_t step);
Tensor unfold_backward(const Tensor& grad, IntSpan sizes, int64_t dimension, int64_t size, int64_t step);
/// Zeros of `sizes` with `grad` added at `indices`.
Tensor index_backward(const Tensor& grad, IntSpan sizes, TensorList indices);
/// Zeros of `sizes` that begin with `part`.
Tensor widen(const Tensor& part, IntSpan sizes);
/// Gathers `grad` at `index`; the part of `src` beyond the index gets zero.
Tensor scatter_src_backward(const Tensor& grad, int64_t dim, const Tensor& index, IntSpan src_sizes);

}  // namespace taeda::formulas
