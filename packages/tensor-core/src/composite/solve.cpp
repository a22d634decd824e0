// Systems, inverses and determinants written in terms of the operators that keep their factors.
#include "taeda/ops/solve.h"

#include <algorithm>

#include "infer/matrices.h"
#include "taeda/arithmetic.h"
#include "taeda/checked.h"
#include "taeda/ops.h"
#include "taeda/wrappers.h"

namespace taeda::impl {

Tensor linalg_det(const Tensor& A) { return std::get<0>(ops::_linalg_det(A)); }
Tensor det(const Tensor& self) { return std::get<0>(ops::_linalg_det(self)); }
std::tuple<Tensor, Tensor> linalg_slogdet(const Tensor& A) {
  auto [sign, logarithm, factors, pivots] = ops::_linalg_slogdet(A);
  return {sign, logarithm};
}
std::tuple<Tensor, Tensor> slogdet(const Tensor& self) { return linalg_slogdet(self); }
Tensor logdet(const Tensor& self) {
  const auto [sign, logarithm] = linalg_slogdet(self);
  if (is_complex(self.dtype())) return ops::log(sign) + logarithm;
  return ops::where(ops::eq(sign, Tensor(-1)), Tensor(std::numeric_limits<double>::quiet_NaN()), logarithm);
}

Tensor linalg_inv(const Tensor& A) { return std::get<0>(ops::linalg_inv_ex(A, true)); }
Tensor inverse(const Tensor& self) { return std::get<0>(ops::linalg_inv_ex(self, true)); }

Tensor linalg_solve(const Tensor& A, const Tensor& B, bool left) {
  return std::get<0>(ops::_linalg_solve_ex(A, B, left, true));
}
std::tuple<Tensor, Tensor> linalg_solve_ex(const Tensor& A, const Tensor& B, bool left, bool check_errors) {
  auto [result, factors, pivots, info] = ops::_linalg_solve_ex(A, B, left, check_errors);
  return {result, info};
}
Tensor lu_solve(const Tensor& self, const Tensor& LU_data, const Tensor& LU_pivots) {
  return ops::linalg_lu_solve(LU_data, LU_pivots, self);
}
std::tuple<Tensor, Tensor> triangular_solve(const Tensor& self, const Tensor& A, bool upper, bool transpose,
                                            bool unitriangular) {
  infer::expect_square("triangular_solve", "A", A);
  const Tensor turned = transpose ? ops::transpose(A, -2, -1) : A;
  return {ops::linalg_solve_triangular(turned, self, upper != transpose, true, unitriangular), ops::clone(A)};
}

Tensor cholesky_solve(const Tensor& self, const Tensor& input2, bool upper) {
  infer::expect_square("cholesky_solve", "input2", input2);
  const Tensor adjoint = ops::adjoint(input2), &L = upper ? adjoint : input2, &U = upper ? input2 : adjoint;
  return ops::linalg_solve_triangular(U, ops::linalg_solve_triangular(L, self, false), true);
}
Tensor cholesky_inverse(const Tensor& self, bool upper) {
  infer::expect_square("cholesky_inverse", "self", self);
  infer::expect_exact("cholesky_inverse", "self", self);
  const Tensor identity = ops::eye(self.size(-1), std::nullopt, self.dtype(), stated_device(self));
  const Tensor adjoint = ops::adjoint(self), &L = upper ? adjoint : self;
  const Tensor inverse = ops::linalg_solve_triangular(L, identity, false);
  return ops::matmul(ops::adjoint(inverse), inverse);
}

namespace {
Tensor bound(double value, const Tensor& self) {
  return ops::full(Shape{}, Scalar(value), DType::Float64, stated_device(self));
}
}  // namespace

Tensor linalg_pinv(const Tensor& self, std::optional<double> atol, std::optional<double> rtol, bool hermitian) {
  return ops::_linalg_pinv(self, atol ? bound(*atol, self) : Tensor(), rtol ? bound(*rtol, self) : Tensor(), hermitian);
}
Tensor linalg_pinv_tensors(const Tensor& self, const Tensor& atol, const Tensor& rtol, bool hermitian) {
  return ops::_linalg_pinv(self, atol, rtol, hermitian);
}
Tensor linalg_pinv_rcond(const Tensor& self, double rcond, bool hermitian) {
  return ops::_linalg_pinv(self, Tensor(), bound(rcond, self), hermitian);
}
Tensor linalg_pinv_rcond_tensor(const Tensor& self, const Tensor& rcond, bool hermitian) {
  return ops::_linalg_pinv(self, Tensor(), rcond, hermitian);
}
Tensor pinverse(const Tensor& self, double rcond) { return linalg_pinv_rcond(self, rcond, false); }

Tensor linalg_tensorinv(const Tensor& self, int64_t ind) {
  const char* const op = "linalg_tensorinv";
  check(ind > 0, ErrorKind::Runtime, op, ": argument 'ind' is ", ind, ", expected a positive number");
  check(ind <= self.dim(), ErrorKind::Runtime, op, ": argument 'ind' is ", ind, ", expected at most ", self.dim(),
        ", the number of dimensions of 'self'");
  const IntSpan rows = self.sizes().first(size_t(ind)), columns = self.sizes().subspan(size_t(ind));
  const int64_t n = product(rows);
  check(n == product(columns), ErrorKind::Runtime, op, ": argument 'self' has shape ", shape_text(self.sizes()),
        ", expected the products of its first ", ind, " sizes and of the others to be equal");
  Shape sizes(columns);
  for (int64_t size : rows) sizes.push_back(size);
  return ops::reshape(ops::linalg_inv(ops::reshape(self, Shape{n, n})), sizes);
}

Tensor linalg_tensorsolve(const Tensor& self, const Tensor& other, const std::optional<IntSpan> dims) {
  const char* const op = "linalg_tensorsolve";
  Tensor moved = self;
  if (dims) {
    Shape ends;
    for (size_t i = 0; i < dims->size(); ++i) ends.push_back(self.dim() - int64_t(dims->size()) + int64_t(i));
    moved = ops::movedim(self, *dims, ends);
  }
  check(moved.dim() >= other.dim(), ErrorKind::Runtime, op, ": argument 'other' has shape ", shape_text(other.sizes()),
        ", expected no more dimensions than 'self' of shape ", shape_text(self.sizes()));
  const Shape sizes(moved.sizes().subspan(size_t(other.dim())));
  const int64_t n = product(sizes);
  check(n == product(moved.sizes().first(size_t(other.dim()))) && n == other.numel(), ErrorKind::Runtime, op,
        ": argument 'self' has shape ", shape_text(moved.sizes()), ", expected as many rows, of the shape ",
        shape_text(other.sizes()), " of 'other', as columns");
  const Tensor solution = ops::linalg_solve(ops::reshape(moved, Shape{n, n}), ops::reshape(other, Shape{n}));
  return ops::reshape(solution, sizes);
}

}  // namespace taeda::impl
