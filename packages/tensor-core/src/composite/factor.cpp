// Factorisations under their other names, and what is made of factors.
#include "taeda/ops/factor.h"

#include "infer/matrices.h"
#include "taeda/arithmetic.h"
#include "taeda/ops.h"
#include "taeda/wrappers.h"

namespace taeda::impl {

using infer::batch_of;
using infer::with_tail;

Tensor linalg_cholesky(const Tensor& self, bool upper) {
  return std::get<0>(ops::linalg_cholesky_ex(self, upper, true));
}
Tensor cholesky(const Tensor& self, bool upper) { return std::get<0>(ops::linalg_cholesky_ex(self, upper, true)); }

std::tuple<Tensor, Tensor> linalg_lu_factor(const Tensor& A, bool pivot) {
  auto [factors, pivots, info] = ops::linalg_lu_factor_ex(A, pivot, true);
  return {factors, pivots};
}
std::tuple<Tensor, Tensor> linalg_ldl_factor(const Tensor& self, bool hermitian) {
  auto [factors, pivots, info] = ops::linalg_ldl_factor_ex(self, hermitian, true);
  return {factors, pivots};
}
std::tuple<Tensor, Tensor, Tensor> linalg_lu(const Tensor& A, bool pivot) {
  const auto [factors, pivots, info] = ops::linalg_lu_factor_ex(A, pivot, false);
  return ops::lu_unpack(factors, pivots, true, true);
}

std::tuple<Tensor, Tensor, Tensor> lu_unpack(const Tensor& LU_data, const Tensor& LU_pivots, bool unpack_data,
                                             bool unpack_pivots) {
  const char* const op = "lu_unpack";
  infer::expect_matrices(op, "LU_data", LU_data);
  const int64_t m = LU_data.size(-2), n = LU_data.size(-1), k = std::min(m, n);
  const auto none = [&] { return ops::empty(Shape{0}, LU_data.dtype(), stated_device(LU_data)); };
  Tensor P = none(), L = none(), U = none();
  if (unpack_pivots) {
    check(LU_pivots.dtype() == DType::Int32, ErrorKind::Runtime, op, ": argument 'LU_pivots' has dtype ",
          name(LU_pivots.dtype()), ", expected int32");
    const Shape expected = with_tail(batch_of(LU_data), {k});
    check(std::ranges::equal(LU_pivots.sizes(), IntSpan(expected)), ErrorKind::Runtime, op,
          ": argument 'LU_pivots' has shape ", shape_text(LU_pivots.sizes()), ", expected ", shape_text(expected),
          " to fit 'LU_data' of shape ", shape_text(LU_data.sizes()));
    const Tensor rows = ops::_pivots_to_permutation(LU_pivots, m);
    // Row i of the factors is row rows[i] of the matrix.
    P = ops::to_dtype(
        ops::eq(ops::unsqueeze(rows, -2),
                ops::unsqueeze(ops::arange(Scalar(0), Scalar(m), Scalar(1), DType::Int64, stated_device(LU_data)), -1)),
        LU_data.dtype());
  }
  if (unpack_data) {
    const Tensor ones = ops::eye(k, std::nullopt, LU_data.dtype(), stated_device(LU_data));
    const Tensor lower = m > n ? LU_data : ops::narrow(LU_data, -1, 0, k),
                 upper = m < n ? LU_data : ops::narrow(LU_data, -2, 0, k);
    const Tensor diagonal = m > k ? ops::constant_pad_nd(ones, Shape{0, 0, 0, m - k}, Scalar(0)) : ones;
    L = ops::tril(lower, -1) + diagonal;
    U = ops::triu(upper, 0);
  }
  return {P, L, U};
}

std::tuple<Tensor, Tensor> qr(const Tensor& self, bool some) {
  return ops::linalg_qr(self, some ? "reduced" : "complete");
}

namespace {

/// Reflectors and factors that fit each other.
void expect_reflectors(const char* op, const char* v_name, const Tensor& v, const char* tau_name, const Tensor& tau) {
  infer::expect_matrices(op, v_name, v);
  infer::expect_exact(op, v_name, v);
  infer::expect_like(op, tau_name, tau, v_name, v);
  check(tau.dim() == v.dim() - 1 && std::ranges::equal(batch_of(v), batch_of(tau, 1)), ErrorKind::Runtime, op,
        ": argument '", tau_name, "' has shape ", shape_text(tau.sizes()), ", expected the leading dimensions of '",
        v_name, "' of shape ", shape_text(v.sizes()), " and one more");
  check(v.size(-2) >= v.size(-1), ErrorKind::Runtime, op, ": argument '", v_name, "' has shape ", shape_text(v.sizes()),
        ", expected no more columns than rows");
  check(tau.size(-1) <= v.size(-1), ErrorKind::Runtime, op, ": argument '", tau_name, "' has ", tau.size(-1),
        " factors, expected at most ", v.size(-1), ", the number of columns of '", v_name, "'");
}

/// The product of reflectors as I - V T V^H: V has ones on its diagonal and nothing above, and T = D (I + S D)^-1 with
/// the factors on D's diagonal and S = V^H V above its diagonal.
struct Reflectors {
  Tensor V, T;
  Reflectors(const Tensor& given, const Tensor& tau) {
    const int64_t m = given.size(-2), k = tau.size(-1);
    const Tensor ones = ops::eye(m, k, given.dtype(), stated_device(given));
    V = ops::tril(ops::narrow(given, -1, 0, k), -1) + ones;
    const Tensor square = ops::eye(k, std::nullopt, given.dtype(), stated_device(given));
    const Tensor inner = square + ops::triu(ops::matmul(ops::adjoint(V), V), 1) * ops::unsqueeze(tau, -2);
    const Tensor inverse = ops::linalg_solve_triangular(inner, ops::expand(square, inner.sizes()), true, true, true);
    T = ops::unsqueeze(tau, -1) * inverse;
  }
};

}  // namespace

Tensor linalg_householder_product(const Tensor& input, const Tensor& tau) {
  expect_reflectors("linalg_householder_product", "input", input, "tau", tau);
  const Tensor identity = ops::eye(input.size(-2), input.size(-1), input.dtype(), stated_device(input));
  const Reflectors q(input, tau);
  const Tensor first = ops::adjoint(ops::narrow(q.V, -2, 0, input.size(-1)));
  return identity - ops::matmul(q.V, ops::matmul(q.T, first));
}
Tensor orgqr(const Tensor& self, const Tensor& input2) { return ops::linalg_householder_product(self, input2); }

Tensor ormqr(const Tensor& self, const Tensor& input2, const Tensor& input3, bool left, bool transpose) {
  const char* const op = "ormqr";
  infer::expect_matrices(op, "self", self);
  infer::expect_matrices(op, "input3", input3);
  infer::expect_exact(op, "self", self);
  infer::expect_like(op, "input2", input2, "self", self);
  infer::expect_like(op, "input3", input3, "self", self);
  check(input2.dim() == self.dim() - 1 && input3.dim() == self.dim() &&
            std::ranges::equal(batch_of(self), batch_of(input2, 1)) &&
            std::ranges::equal(batch_of(self), batch_of(input3)),
        ErrorKind::Runtime, op, ": arguments 'self', 'input2' and 'input3' have shapes ", shape_text(self.sizes()),
        ", ", shape_text(input2.sizes()), " and ", shape_text(input3.sizes()),
        ", expected (..., m, k), (..., k) and matrices "
        "with the same leading dimensions");
  const int64_t m = self.size(-2), k = input2.size(-1);
  check(k <= self.size(-1) && k <= m, ErrorKind::Runtime, op, ": argument 'input2' has ", k,
        " factors, expected at most ", std::min(m, self.size(-1)));
  check(input3.size(left ? -2 : -1) == m, ErrorKind::Runtime, op, ": argument 'input3' has shape ",
        shape_text(input3.sizes()), ", expected ", m, left ? " rows" : " columns", " to fit 'self' of shape ",
        shape_text(self.sizes()));
  const Reflectors q(self, input2);
  const Tensor T = transpose ? ops::adjoint(q.T) : q.T, Vh = ops::adjoint(q.V);
  if (left) return input3 - ops::matmul(q.V, ops::matmul(T, ops::matmul(Vh, input3)));
  return input3 - ops::matmul(ops::matmul(ops::matmul(input3, q.V), T), Vh);
}

}  // namespace taeda::impl
