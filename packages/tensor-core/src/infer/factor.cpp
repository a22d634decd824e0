// Inference of the factor family.
#include <algorithm>

#include "infer/matrices.h"
#include "taeda/ops/factor.h"

namespace taeda::infer {

namespace {
/// A matrix of the shape of `t`, and a number for each.
std::array<Spec, 2> factor_and_info(const Tensor& t) {
  return {columns(Shape(t.sizes()), t.dtype()), spec(batch_of(t), DType::Int32)};
}
}  // namespace

std::array<Spec, 2> linalg_cholesky_ex(const Tensor& self, bool, bool) {
  expect_square("linalg_cholesky_ex", "self", self);
  expect_exact("linalg_cholesky_ex", "self", self);
  return factor_and_info(self);
}

std::array<Spec, 3> linalg_lu_factor_ex(const Tensor& A, bool pivot, bool) {
  const char* const op = "linalg_lu_factor_ex";
  expect_matrices(op, "A", A);
  expect_exact(op, "A", A);
  check(pivot, ErrorKind::Runtime, op, ": argument 'pivot' is False, which only devices with such a routine take");
  const auto [factors, info] = factor_and_info(A);
  return {factors, spec(with_tail(batch_of(A), {std::min(A.size(-1), A.size(-2))}), DType::Int32), info};
}

std::array<Spec, 3> linalg_ldl_factor_ex(const Tensor& self, bool, bool) {
  expect_square("linalg_ldl_factor_ex", "self", self);
  expect_exact("linalg_ldl_factor_ex", "self", self);
  const auto [factors, info] = factor_and_info(self);
  return {factors, spec(self.sizes().first(size_t(self.dim() - 1)), DType::Int32), info};
}

std::array<Spec, 2> geqrf(const Tensor& self) {
  expect_matrices("geqrf", "self", self);
  expect_exact("geqrf", "self", self);
  return {columns(Shape(self.sizes()), self.dtype()),
          spec(with_tail(batch_of(self), {std::min(self.size(-1), self.size(-2))}), self.dtype())};
}

std::array<Spec, 2> linalg_qr(const Tensor& A, std::string_view mode) {
  expect_matrices("linalg_qr", "A", A);
  expect_exact("linalg_qr", "A", A);
  check(mode == "reduced" || mode == "complete" || mode == "r", ErrorKind::Runtime, "linalg_qr: argument 'mode' is '",
        mode, "', expected 'reduced', 'complete' or 'r'");
  const int64_t m = A.size(-2), n = A.size(-1), k = mode == "complete" ? m : std::min(m, n);
  const Spec q = mode == "r" ? spec(Shape{0}, A.dtype()) : columns(with_tail(batch_of(A), {m, k}), A.dtype());
  return {q, columns(with_tail(batch_of(A), {k, n}), A.dtype())};
}

Spec _pivots_to_permutation(const Tensor& pivots, int64_t n) {
  const char* const op = "_pivots_to_permutation";
  if (pivots.dim() < 1 || pivots.dtype() != DType::Int32) [[unlikely]]
    fail(ErrorKind::Runtime, op, ": argument 'pivots' is ", describe(pivots),
         ", expected int32 of at least one dimension");
  check(pivots.size(-1) <= n, ErrorKind::Runtime, op, ": argument 'n' is ", n, ", expected at least ", pivots.size(-1),
        ", the number of pivots");
  return spec(with_tail(batch_of(pivots, 1), {n}), DType::Int64);
}

}  // namespace taeda::infer
