// Checks that the operators on batches of matrices share.
#include "infer/dtypes.h"
#include "infer/matrices.h"

#include <algorithm>

namespace taeda::infer {

void expect_matrices(const char* op, const char* argument, const Tensor& t) {
  check(t.dim() >= 2, ErrorKind::Runtime, op, ": argument '", argument, "' has shape ", shape_text(t.sizes()),
        ", expected at least 2 dimensions");
}

void expect_square(const char* op, const char* argument, const Tensor& t) {
  expect_matrices(op, argument, t);
  check(t.size(-1) == t.size(-2), ErrorKind::Runtime, op, ": argument '", argument, "' has shape ",
        shape_text(t.sizes()), ", expected square matrices, whose last two dimensions are equal");
}

void expect_exact(const char* op, const char* argument, const Tensor& t) {
  check(!is_integral(t.dtype()), ErrorKind::Runtime, op, ": argument '", argument, "' has dtype ", name(t.dtype()),
        ", expected a floating-point or complex dtype");
  check(t.dtype() != DType::Float16 && t.dtype() != DType::BFloat16, ErrorKind::Runtime, op, ": argument '", argument,
        "' has dtype ", name(t.dtype()), ", expected float32, float64, complex64 or complex128: low precision dtypes ",
        "are not supported");
}

void expect_like(const char* op, const char* argument, const Tensor& t, const char* like, const Tensor& other) {
  expect_dtype(op, argument, t, other.dtype(), like);
}

Shape with_tail(IntSpan batch, std::initializer_list<int64_t> tail) {
  Shape sizes(batch);
  for (int64_t size : tail) sizes.push_back(size);
  return sizes;
}

Spec columns(const Shape& sizes, DType dtype) {
  Shape turned = sizes;
  const size_t n = sizes.size();
  std::swap(turned[n - 2], turned[n - 1]);
  Shape strides = contiguous_strides(turned);
  std::swap(strides[n - 2], strides[n - 1]);
  return Spec{sizes, dtype, strides};
}

bool is_vector_side(const Tensor& A, const Tensor& B) {
  return B.dim() == 1 || (A.dim() - 1 == B.dim() && std::ranges::equal(A.sizes().first(size_t(B.dim())), B.sizes()));
}

}  // namespace taeda::infer
