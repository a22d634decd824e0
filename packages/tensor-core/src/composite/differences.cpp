// Differences of neighbours, and integrals from samples.
#include <algorithm>

#include "taeda/ops/arith.h"
#include "taeda/ops/cast.h"
#include "taeda/ops/compare.h"
#include "taeda/ops/reduce.h"
#include "taeda/ops/shape.h"

namespace taeda::impl {
namespace {

/// Elements along `dim` without the first, and without the last.
std::pair<Tensor, Tensor> neighbours(const Tensor& self, int64_t dim) {
  const int64_t rest = std::max<int64_t>(self.size(dim) - 1, 0), skipped = std::min<int64_t>(self.size(dim), 1);
  return {ops::narrow(self, dim, skipped, rest), ops::narrow(self, dim, 0, rest)};
}

/// Twice the areas between neighbours: the sum of both times their distance.
Tensor areas(const char* op, const Tensor& y, const Tensor& x, const std::optional<Scalar>& dx, int64_t dim) {
  check(!x.defined() || !dx, ErrorKind::Runtime, op, ": arguments 'x' and 'dx' exclude each other");
  const auto [later, earlier] = neighbours(y, dim);
  const Tensor heights = ops::add(later, earlier);
  if (!x.defined()) return dx ? ops::mul(heights, Tensor(*dx)) : heights;
  // One row stands along `dim`; what has more dimensions is aligned with `y` from the right, as operands are.
  Shape shape(size_t(std::max(x.dim(), y.dim())), 1);
  if (x.dim() == 1) shape[size_t(dim)] = x.numel();
  else std::copy(x.sizes().begin(), x.sizes().end(), shape.end() - x.dim());
  check(shape[size_t(dim)] == y.size(dim), ErrorKind::Runtime, op, ": argument 'x' has shape ", shape_text(x.sizes()),
        ", expected size ", y.size(dim), " along the dimension of 'y' ", shape_text(y.sizes()), " that is integrated");
  const auto [right, left] = neighbours(ops::reshape(x, shape), dim);
  return ops::mul(heights, ops::sub(right, left));
}

}  // namespace

Tensor diff(const Tensor& self, int64_t n, int64_t dim, const Tensor& prepend, const Tensor& append) {
  check(self.dim() > 0, ErrorKind::Runtime, "diff: argument 'input' has no dimension, expected at least one");
  check(n >= 0, ErrorKind::Runtime, "diff: argument 'n' must not be negative, found ", n);
  const int64_t d = wrap_dim(dim, self.dim(), "diff");
  if (n == 0) return ops::clone(self);
  std::vector<Tensor> parts;
  for (const Tensor& part : {prepend, self, append})
    if (part.defined()) parts.push_back(part);
  Tensor result = parts.size() > 1 ? ops::cat(parts, d) : self;
  for (; n > 0 && result.size(d) > 0; --n) {
    const auto [later, earlier] = neighbours(result, d);
    result = result.dtype() == DType::Bool ? ops::logical_xor(later, earlier) : ops::sub(later, earlier);
  }
  return result.same(self) ? ops::clone(self) : result;
}

Tensor trapezoid(const Tensor& y, const Tensor& x, const std::optional<Scalar>& dx, int64_t dim) {
  const int64_t d = wrap_dim(dim, y.dim(), "trapezoid");
  check(y.dim() > 0, ErrorKind::Runtime, "trapezoid: argument 'y' has no dimension, expected at least one");
  if (!x.defined() && is_differentiable(y.dtype()) && y.size(d) > 1) {
    // Everything once, but of the ends half.
    const int64_t n = y.size(d);
    const Tensor ends = ops::add(ops::select(y, d, 0), ops::select(y, d, n - 1));
    const Tensor area = ops::add(ops::sum(ops::narrow(y, d, 1, n - 2), Shape{d}, false), ops::div(ends, Tensor(2)));
    return dx ? ops::mul(area, Tensor(*dx)) : area;
  }
  return ops::div(ops::sum(areas("trapezoid", y, x, dx, d), Shape{d}, false), Tensor(2));
}

Tensor cumulative_trapezoid(const Tensor& y, const Tensor& x, const std::optional<Scalar>& dx, int64_t dim) {
  const int64_t d = wrap_dim(dim, y.dim(), "cumulative_trapezoid");
  check(y.dim() > 0, ErrorKind::Runtime, "cumulative_trapezoid: argument 'y' has no dimension, expected at least one");
  return ops::div(ops::cumsum(areas("cumulative_trapezoid", y, x, dx, d), d), Tensor(2));
}

}  // namespace taeda::impl
