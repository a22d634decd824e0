// Inverses and systems by singular values.
#include <algorithm>

#include "decompose/common.h"
#include "infer/dtypes.h"
#include "infer/matrices.h"
#include "infer/solve.h"
#include "taeda/wrappers.h"

namespace taeda::decompose {
namespace {

double precision_of(DType real) { return real == DType::Float32 ? 0x1p-23 : 0x1p-52; }
Tensor inverses(const Tensor& values, const Tensor& seen) {
  return ops::where(seen, ops::reciprocal(values), Tensor(0.0));
}

/// By singular values, or eigenvalues of Hermitian matrices: those up to the bound are taken as zero, the others
/// inverted.
Tensor _linalg_pinv(const Tensor& self, const Tensor& atol, const Tensor& rtol, bool hermitian) {
  const DType real = real_of(self.dtype());
  Tensor U, S, Vh;
  if (hermitian) {
    std::tie(S, U) = ops::_linalg_eigh(self, "L", true);
    Vh = ops::adjoint(U);
  } else {
    std::tie(U, S, Vh) = ops::_linalg_svd(self, false, true, std::nullopt);
  }
  const Tensor sizes = ops::abs(S), largest = ops::amax(sizes, Shape{-1}, true);
  const auto bound = [&](const Tensor& t) { return ops::unsqueeze(ops::to_dtype(t, real), -1); };
  const Tensor absolute = atol.defined() ? bound(atol) : Tensor();
  const double least = precision_of(real) * double(std::max(self.size(-1), self.size(-2)));
  Tensor relative = ops::full(Shape{1}, Scalar(least), real, stated_device(self));
  if (rtol.defined()) relative = bound(rtol);
  else if (absolute.defined()) relative = ops::where(ops::gt(absolute, Tensor(0)), Tensor(0.0), relative);
  Tensor limit = relative * largest;
  if (absolute.defined()) limit = ops::maximum(absolute, limit);
  return ops::matmul(ops::adjoint(Vh) * ops::unsqueeze(inverses(S, ops::gt(sizes, limit)), -2), ops::adjoint(U));
}
DECOMPOSE(_linalg_pinv)

using Four = std::tuple<Tensor, Tensor, Tensor, Tensor>;

bool all_true(const Tensor& t) { return ops::to_device(ops::all(t), Device{}).data<bool>()[0]; }

/// What the host's routines compute, and say of what has no solution.
Four on_host(const Tensor& self, const Tensor& b, std::optional<double> rcond, std::optional<std::string_view> driver) {
  const auto back = [&](const Tensor& t) { return ops::to_device(t, stated_device(self)); };
  const auto [solution, residuals, rank, values] =
      ops::linalg_lstsq(ops::to_device(self, Device{}), ops::to_device(b, Device{}), rcond, driver);
  return {back(solution), back(residuals), back(rank), back(values)};
}
/// By QR, of matrices of full rank: that of the adjoint where there are more columns than rows.
Tensor by_triangles(const Tensor& self, const Tensor& B, const Tensor& Q, const Tensor& R) {
  if (self.size(-2) >= self.size(-1))
    return ops::linalg_solve_triangular(R, ops::matmul(ops::adjoint(Q), B), true, true, false);
  return ops::matmul(Q, ops::linalg_solve_triangular(ops::adjoint(R), B, false, true, false));
}
Four linalg_lstsq(const Tensor& self, const Tensor& b, std::optional<double> rcond,
                  std::optional<std::string_view> driver) {
  const std::string_view name = driver.value_or("gelsy");
  const bool vector = infer::is_vector_side(self, b), tall = self.size(-2) > self.size(-1);
  const Tensor B = vector ? ops::unsqueeze(b, -1) : b;
  if (self.numel() == 0 || B.numel() == 0 || !all_true(ops::isfinite(self)) || !all_true(ops::isfinite(B)))
    return on_host(self, b, rcond, driver);
  const auto nothing = [&](DType dtype) { return empty(Shape{0}, dtype, stated_device(self)); };
  const DType real = real_of(self.dtype());
  Tensor X, rank = nothing(DType::Int64), values = nothing(real);
  bool full = true;
  if (name == "gels") {
    const auto [Q, R] = ops::linalg_qr(tall || self.size(-2) == self.size(-1) ? self : ops::adjoint(self), "reduced");
    if (!all_true(ops::ne(ops::diagonal(R, 0, -2, -1), Tensor(0)))) return on_host(self, b, rcond, driver);
    X = by_triangles(self, B, Q, R);
  } else {
    const auto [U, S, Vh] = ops::_linalg_svd(self, false, true, std::nullopt);
    const double least = precision_of(real) * double(std::max(self.size(-1), self.size(-2)));
    const Tensor seen = ops::gt(S, ops::narrow(S, -1, 0, 1) * Tensor(rcond.value_or(least)));
    const Tensor sides = ops::matmul(ops::adjoint(U), B) * ops::unsqueeze(inverses(S, seen), -1);
    X = ops::matmul(ops::adjoint(Vh), sides);
    rank = ops::sum(seen, Shape{-1}, false, DType::Int64);
    if (name != "gelsy") values = S;
    full = !tall || name == "gelsy" || all_true(seen);
  }
  Tensor squares = nothing(real);
  if (tall && full && name != "gelsy") {
    const Tensor left = ops::abs(B - ops::matmul(self, X));
    squares = ops::sum(left * left, Shape{-2});
  }
  return {vector ? ops::squeeze_dims(X, Shape{-1}) : X, squares, rank, values};
}
DECOMPOSE(linalg_lstsq)

}  // namespace
}  // namespace taeda::decompose
