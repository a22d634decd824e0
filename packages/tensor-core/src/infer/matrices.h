// What operators on batches of matrices ask of their arguments, and the shapes that they share.
#pragma once
#include "taeda/spec.h"

namespace taeda::infer {

/// RuntimeError unless `t` has at least two dimensions.
void expect_matrices(const char* op, const char* argument, const Tensor& t);
/// And the last two of one size.
void expect_square(const char* op, const char* argument, const Tensor& t);
/// RuntimeError unless the dtype is float32, float64, complex64 or complex128.
void expect_exact(const char* op, const char* argument, const Tensor& t);
/// RuntimeError unless both have one dtype.
void expect_like(const char* op, const char* argument, const Tensor& t, const char* like, const Tensor& other);

/// All dimensions but the last `tail`.
inline IntSpan batch_of(const Tensor& t, int64_t tail = 2) { return t.sizes().first(size_t(t.dim() - tail)); }
/// A batch with further dimensions.
Shape with_tail(IntSpan batch, std::initializer_list<int64_t> tail);
/// Matrices whose columns are dense, as LAPACK fills them.
Spec columns(const Shape& sizes, DType dtype);

/// Whether the right side of a system is a vector for each matrix of A.
bool is_vector_side(const Tensor& A, const Tensor& B);

}  // namespace taeda::infer
