// Reductions written in terms of others.
#include "taeda/ops/reduce.h"

#include <cmath>
#include <limits>

#include "taeda/arithmetic.h"
#include "taeda/levels.h"
#include "taeda/ops/arith.h"
#include "taeda/ops/cast.h"
#include "taeda/ops/compare.h"
#include "taeda/ops/matrix.h"
#include "taeda/ops/shape.h"
#include "taeda/ops/unary.h"

namespace taeda::impl {

using Dims = std::optional<IntSpan>;

Tensor max(const Tensor& self) { return ops::amax(self); }
Tensor min(const Tensor& self) { return ops::amin(self); }
Tensor max_other(const Tensor& self, const Tensor& other) { return ops::maximum(self, other); }
Tensor min_other(const Tensor& self, const Tensor& other) { return ops::minimum(self, other); }
std::tuple<Tensor, Tensor> aminmax(const Tensor& self, Dims dim, bool keepdim) {
  infer::extremum("aminmax", self, dim, keepdim);
  return {ops::amin(self, dim, keepdim), ops::amax(self, dim, keepdim)};
}

Tensor nansum(const Tensor& self, Dims dim, bool keepdim, std::optional<DType> dtype) {
  if (is_integral(self.dtype())) return ops::sum(self, dim, keepdim, dtype);
  // One pass instead of two where no gradient is asked for, which infinities have too.
  const bool plain = is_floating(self.dtype()) && !self.requires_grad() && !is_carrier(self);
  if (plain && self.device() == Device{}) {
    // The sum itself, unless there is a NaN in it.
    const Tensor sum = ops::sum(self, dim, keepdim, dtype);
    if (!*ops::any(ops::isnan(sum)).data<bool>()) return sum;
  }
  const double inf = std::numeric_limits<double>::infinity();
  const Tensor numbers = plain ? ops::nan_to_num(self, 0.0, inf, -inf) : ops::where(ops::isnan(self), Tensor(0), self);
  return ops::sum(numbers, dim, keepdim, dtype);
}
Tensor nanmean(const Tensor& self, Dims dim, bool keepdim, std::optional<DType> dtype) {
  const Tensor count = ops::sum(ops::logical_not(ops::isnan(self)), dim, keepdim);
  return ops::div(ops::nansum(self, dim, keepdim, dtype), count);
}
Tensor count_nonzero(const Tensor& self, Dims dim) { return ops::sum(ops::ne(self, Tensor(0)), dim); }

namespace {
void check_spread(const char* op, const Tensor& self, Dims dim) {
  check(is_differentiable(self.dtype()), ErrorKind::Runtime, op, ": argument 'self' has dtype ", name(self.dtype()),
        ", expected a floating-point or complex dtype");
  infer::reduced_dims(op, self, dim);
}
/// Square root whose gradient at 0 is 0: equal numbers do not move apart in any direction rather than another.
Tensor root(const Tensor& variance) {
  if (!variance.requires_grad()) return ops::sqrt(variance);
  const Tensor none = ops::eq(variance, Tensor(0.0));
  return ops::where(none, Tensor(0.0), ops::sqrt(ops::where(none, Tensor(1.0), variance)));
}
}  // namespace

Tensor std_op(const Tensor& self, Dims dim, bool unbiased, bool keepdim, const std::optional<Scalar>& correction) {
  check_spread("std", self, dim);
  return root(ops::var(self, dim, unbiased, keepdim, correction));
}
Tensor var_unbiased(const Tensor& self, bool unbiased) { return ops::var(self, std::nullopt, unbiased); }
Tensor std_unbiased(const Tensor& self, bool unbiased) {
  return std_op(self, std::nullopt, unbiased, false, std::nullopt);
}
std::tuple<Tensor, Tensor> var_mean(const Tensor& self, Dims dim, bool unbiased, bool keepdim,
                                    const std::optional<Scalar>& correction) {
  check_spread("var_mean", self, dim);
  return {ops::var(self, dim, unbiased, keepdim, correction), ops::mean(self, dim, keepdim)};
}
std::tuple<Tensor, Tensor> var_mean_unbiased(const Tensor& self, bool unbiased) {
  return ops::var_mean(self, std::nullopt, unbiased);
}
std::tuple<Tensor, Tensor> std_mean_unbiased(const Tensor& self, bool unbiased) {
  return ops::std_mean(self, std::nullopt, unbiased);
}
std::tuple<Tensor, Tensor> std_mean(const Tensor& self, Dims dim, bool unbiased, bool keepdim,
                                    const std::optional<Scalar>& correction) {
  check_spread("std_mean", self, dim);
  return {std_op(self, dim, unbiased, keepdim, correction), ops::mean(self, dim, keepdim)};
}

Tensor logsumexp(const Tensor& self, IntSpan dim, bool keepdim) {
  for (int64_t d : dim) wrap_dim(d, self.dim(), "logsumexp");
  const Tensor x = is_integral(self.dtype()) ? ops::cast(self, default_dtype()) : self;
  if (x.numel() == 0) return ops::log(ops::sum(ops::exp(x), dim, keepdim));
  const Tensor top = ops::amax(ops::real(ops::detach(x)), dim, true);
  // Infinite maxima are not subtracted: inf - inf would be NaN.
  const Tensor shift = ops::where(ops::isinf(top), Tensor(0.0), top);
  const Tensor sums = ops::sum(ops::exp(ops::sub(x, shift)), dim, keepdim);
  return ops::add(ops::log(sums), keepdim ? shift : ops::reshape(shift, sums.sizes()));
}

Tensor norm(const Tensor& self, const std::optional<Scalar>& p, Dims dim, bool keepdim, std::optional<DType> dtype) {
  return ops::vector_norm(self, p.value_or(Scalar(2)), dim, keepdim, dtype);
}
Tensor norm_name(const Tensor& self, std::string_view p, Dims dim, bool keepdim, std::optional<DType> dtype) {
  if (p == "nuc") {
    check(self.dim() == 2 || (dim && dim->size() == 2), ErrorKind::Runtime,
          "norm: argument 'p' is 'nuc', expected 2 "
          "dimensions in 'dim' for 'self' of shape ",
          shape_text(self.sizes()));
    return ops::linalg_matrix_norm_name(self, p, dim ? Shape(*dim) : Shape{0, 1}, keepdim, dtype);
  }
  check(p == "fro", ErrorKind::Runtime, "norm: argument 'p' is '", p, "', expected a number, 'fro' or 'nuc'");
  return ops::vector_norm(self, 2, dim, keepdim, dtype);
}
Tensor dist(const Tensor& self, const Tensor& other, const Scalar& p) {
  return ops::vector_norm(ops::sub(self, other), p);
}

Tensor cosine_similarity(const Tensor& x1, const Tensor& x2, int64_t dim, double eps) {
  const Tensor product = x1 * x2;
  check(is_floating(product.dtype()), ErrorKind::Runtime, "cosine_similarity: arguments 'x1' and 'x2' have dtypes ",
        name(x1.dtype()), " and ", name(x2.dtype()), ", expected a floating-point dtype");
  const auto norm = [&](const Tensor& x) {
    const Tensor wide = ops::to_dtype(ops::expand(x, product.sizes()), product.dtype());
    return ops::clamp_min(ops::vector_norm(wide, 2, Shape{dim}), Tensor(eps));
  };
  return ops::sum(product, Shape{dim}) / (norm(x1) * norm(x2));
}
Tensor pairwise_distance(const Tensor& x1, const Tensor& x2, double p, double eps, bool keepdim) {
  return ops::vector_norm(x1 - x2 + Tensor(eps), p, Shape{-1}, keepdim);
}

}  // namespace taeda::impl
