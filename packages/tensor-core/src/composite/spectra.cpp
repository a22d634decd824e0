// Eigenvalues and singular values under their public names, and what is counted and divided of them.
#include "taeda/ops/spectra.h"

#include <algorithm>
#include <limits>

#include "infer/matrices.h"
#include "taeda/arithmetic.h"
#include "taeda/levels.h"
#include "taeda/ops.h"
#include "taeda/tracking.h"
#include "taeda/wrappers.h"

namespace taeda::impl {
namespace {

/// Values alone are cheaper, but their gradient needs the vectors.
bool needs_vectors(const Tensor& self) { return (thread_state.grad_enabled && is_tracked(self)) || is_carrier(self); }

/// Singular values, or of Hermitian matrices the sizes of eigenvalues.
Tensor sizes_of(const Tensor& self, bool hermitian) {
  return hermitian ? ops::abs(ops::linalg_eigvalsh(self)) : ops::linalg_svdvals(self);
}

}  // namespace

std::tuple<Tensor, Tensor> linalg_eig(const Tensor& self) { return ops::_linalg_eig(self, true); }
Tensor linalg_eigvals(const Tensor& self) { return std::get<0>(ops::_linalg_eig(self, needs_vectors(self))); }
std::tuple<Tensor, Tensor> linalg_eigh(const Tensor& self, std::string_view UPLO) {
  return ops::_linalg_eigh(self, UPLO, true);
}
Tensor linalg_eigvalsh(const Tensor& self, std::string_view UPLO) {
  return std::get<0>(ops::_linalg_eigh(self, UPLO, needs_vectors(self)));
}
std::tuple<Tensor, Tensor, Tensor> linalg_svd(const Tensor& A, bool full_matrices,
                                              std::optional<std::string_view> driver) {
  return ops::_linalg_svd(A, full_matrices, true, driver);
}
Tensor linalg_svdvals(const Tensor& A, std::optional<std::string_view> driver) {
  return std::get<1>(ops::_linalg_svd(A, false, needs_vectors(A), driver));
}

std::tuple<Tensor, Tensor, Tensor> svd(const Tensor& self, bool some, bool compute_uv) {
  infer::expect_matrices("svd", "self", self);
  if (compute_uv) {
    const auto [U, S, Vh] = ops::_linalg_svd(self, !some, true, std::nullopt);
    return {U, S, ops::adjoint(Vh)};
  }
  const auto zeros = [&](int64_t n) {
    return ops::zeros(infer::with_tail(infer::batch_of(self), {n, n}), self.dtype(), stated_device(self));
  };
  return {zeros(self.size(-2)), linalg_svdvals(self, std::nullopt), zeros(self.size(-1))};
}

namespace {

/// The number of values above max(atol, rtol * largest), bounds of any shape that fits.
Tensor rank_of(const char* op, const Tensor& self, const Tensor& atol, const Tensor& rtol, bool hermitian) {
  if (hermitian) infer::expect_square(op, "self", self);
  else infer::expect_matrices(op, "self", self);
  for (const Tensor* bound : {&atol, &rtol})
    check(!bound->defined() || !is_complex(bound->dtype()), ErrorKind::Runtime, op,
          ": a bound has a complex dtype, expected real numbers");
  const Tensor sizes = sizes_of(self, hermitian);
  const Shape batch(infer::batch_of(self));
  const auto bound = [&](const Tensor& t) { return ops::unsqueeze(ops::to_dtype(t, sizes.dtype()), -1); };
  const Tensor absolute = atol.defined() ? bound(atol) : Tensor();
  if (self.numel() == 0) {
    Shape shape = batch;
    for (const Tensor* b : {&atol, &rtol})
      if (b->defined()) shape = broadcast_shapes(shape, b->sizes(), op);
    return ops::zeros(shape, DType::Int64, stated_device(self));
  }
  Tensor relative;
  if (rtol.defined()) {
    relative = bound(rtol);
  } else {
    const double epsilon = sizes.dtype() == DType::Float32 ? 0x1p-23 : 0x1p-52;
    relative = ops::full(Shape{1}, Scalar(epsilon * double(std::max(self.size(-1), self.size(-2)))), sizes.dtype(),
                         stated_device(self));
    if (absolute.defined()) relative = ops::where(ops::gt(absolute, Tensor(0)), Tensor(0.0), relative);
  }
  Tensor limit = relative * ops::amax(sizes, Shape{-1}, true);
  if (absolute.defined()) limit = ops::maximum(absolute, limit);
  return ops::sum(ops::gt(sizes, limit), Shape{-1});
}
Tensor number(double value, const Tensor& like) {
  return ops::full(Shape{}, Scalar(value), DType::Float64, stated_device(like));
}

}  // namespace

Tensor linalg_matrix_rank(const Tensor& self, std::optional<double> atol, std::optional<double> rtol, bool hermitian) {
  return rank_of("linalg_matrix_rank", self, atol ? number(*atol, self) : Tensor(),
                 rtol ? number(*rtol, self) : Tensor(), hermitian);
}
Tensor linalg_matrix_rank_tensors(const Tensor& input, const Tensor& atol, const Tensor& rtol, bool hermitian) {
  return rank_of("linalg_matrix_rank", input, atol, rtol, hermitian);
}
Tensor linalg_matrix_rank_tol(const Tensor& self, double tol, bool hermitian) {
  return rank_of("linalg_matrix_rank", self, number(tol, self), number(0, self), hermitian);
}
Tensor linalg_matrix_rank_tol_tensor(const Tensor& input, const Tensor& tol, bool hermitian) {
  return rank_of("linalg_matrix_rank", input, tol, number(0, input), hermitian);
}

namespace {

template <class Norm>
Tensor condition(const Tensor& self, const Norm& norm) {
  infer::expect_square("linalg_cond", "self", self);
  infer::expect_exact("linalg_cond", "self", self);
  const auto [inverse, info] = ops::linalg_inv_ex(self, false);
  const Tensor singular = ops::gt(info, Tensor(0));
  const Tensor finite = ops::where(ops::unsqueeze(ops::unsqueeze(singular, -1), -1), Tensor(0), inverse);
  return ops::where(singular, Tensor(std::numeric_limits<double>::infinity()), norm(self) * norm(finite));
}
Tensor no_conditions(const Tensor& self) {
  return ops::zeros(infer::batch_of(self), real_of(self.dtype()), stated_device(self));
}

}  // namespace

Tensor linalg_cond(const Tensor& self, const std::optional<Scalar>& p) {
  infer::expect_matrices("linalg_cond", "self", self);
  infer::expect_exact("linalg_cond", "self", self);
  const double order = p ? p->to_double() : 2;
  if (self.numel() == 0) return no_conditions(self);
  if (std::abs(order) == 2) {
    const Tensor values = ops::linalg_svdvals(self), first = ops::select(values, -1, 0),
                 last = ops::select(values, -1, values.size(-1) - 1);
    return order > 0 ? first / last : last / first;
  }
  check(std::abs(order) == 1 || std::isinf(order), ErrorKind::Runtime, "linalg_cond: argument 'p' is ", order,
        ", expected 2, -2, 1, -1, inf, -inf, 'fro' or 'nuc'");
  return condition(self, [&](const Tensor& t) { return ops::linalg_matrix_norm(t, Scalar(order), Shape{-2, -1}); });
}
Tensor linalg_cond_name(const Tensor& self, std::string_view p) {
  infer::expect_square("linalg_cond", "self", self);
  infer::expect_exact("linalg_cond", "self", self);
  check(p == "fro" || p == "nuc", ErrorKind::Runtime, "linalg_cond: argument 'p' is '", p,
        "', expected 2, -2, 1, -1, inf, -inf, 'fro' or 'nuc'");
  if (self.numel() == 0) return no_conditions(self);
  return condition(self, [&](const Tensor& t) { return ops::linalg_matrix_norm_name(t, p, Shape{-2, -1}); });
}

}  // namespace taeda::impl
