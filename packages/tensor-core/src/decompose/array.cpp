// Products of matrices, reductions, placing by index, pooling, and random numbers.
#include <cmath>
#include <numbers>

#include "decompose/common.h"
#include "infer/pool.h"
#include "taeda/wrappers.h"

namespace taeda::decompose {
namespace {

// --- linalg ---

Tensor mm(const Tensor& a, const Tensor& b) {
  return ops::squeeze_dims(ops::bmm(ops::unsqueeze(a, 0), ops::unsqueeze(b, 0)), Shape{0});
}
Tensor mv(const Tensor& a, const Tensor& x) { return ops::squeeze_dims(ops::mm(a, ops::unsqueeze(x, 1)), Shape{1}); }
Tensor dot(const Tensor& a, const Tensor& b) {
  return ops::reshape(ops::mm(ops::unsqueeze(a, 0), ops::unsqueeze(b, 1)), Shape{});
}
/// beta * self + alpha * product; with beta 0 self is not read.
Tensor plus(const Tensor& self, const Tensor& product, const Scalar& beta, const Scalar& alpha) {
  const Tensor scaled = alpha.equal(1.0) ? product : product * Tensor(alpha);
  if (beta.equal(0.0)) return scaled;
  return (beta.equal(1.0) ? self : self * Tensor(beta)) + scaled;
}
Tensor addmm(const Tensor& self, const Tensor& a, const Tensor& b, const Scalar& beta, const Scalar& alpha) {
  return plus(self, ops::mm(a, b), beta, alpha);
}
Tensor addmv(const Tensor& self, const Tensor& a, const Tensor& x, const Scalar& beta, const Scalar& alpha) {
  return plus(self, ops::mv(a, x), beta, alpha);
}
Tensor baddbmm(const Tensor& self, const Tensor& a, const Tensor& b, const Scalar& beta, const Scalar& alpha) {
  return plus(self, ops::bmm(a, b), beta, alpha);
}
/// All dimensions but the last as rows, also when there are no elements.
Tensor as_rows(const Tensor& t) {
  if (t.dim() == 2) return t;
  int64_t rows = 1;
  for (int64_t d = 0; d + 1 < t.dim(); ++d) rows *= t.size(d);
  return ops::reshape(t, Shape{rows, t.size(-1)});
}
/// In other sizes, where they are others.
Tensor in_sizes(const Tensor& t, IntSpan sizes) {
  return std::ranges::equal(t.sizes(), sizes) ? t : ops::reshape(t, sizes);
}
/// A weight (in) is a layer of one output that has no dimension.
Tensor as_matrix(const Tensor& weight) { return weight.dim() == 1 ? ops::unsqueeze(weight, 0) : weight; }
Tensor linear(const Tensor& input, const Tensor& weight, const Tensor& bias) {
  Shape sizes(input.sizes());
  sizes.pop_back();
  if (weight.dim() == 2) sizes.push_back(weight.size(0));
  const Tensor product = ops::reshape(ops::mm(as_rows(input), ops::t(as_matrix(weight))), sizes);
  return bias.defined() ? product + bias : product;
}
Three linear_backward(const Tensor& grad, const Tensor& input, const Tensor& weight, int64_t mask) {
  const Tensor rows = as_rows(weight.dim() == 1 ? ops::unsqueeze(grad, -1) : grad);
  Three out;
  if (mask & 1) std::get<0>(out) = in_sizes(ops::mm(rows, as_matrix(weight)), input.sizes());
  if (mask & 2) std::get<1>(out) = in_sizes(ops::mm(ops::t(rows), as_rows(input)), weight.sizes());
  if (mask & 4) std::get<2>(out) = in_sizes(ops::sum(rows, Shape{0}), weight.sizes().first(size_t(weight.dim() - 1)));
  return out;
}

// --- reduce ---

using Dims = std::optional<IntSpan>;
double count_over(const Tensor& self, Dims dim) {
  if (!dim || dim->empty()) return double(self.numel());
  double count = 1;
  for (int64_t d : *dim) count *= self.dim() ? double(self.size(d)) : 1;
  return count;
}
Tensor all(const Tensor& self, Dims dim, bool keepdim) {
  return ops::logical_not(ops::any(ops::logical_not(self), dim, keepdim));
}
Tensor mean(const Tensor& self, Dims dim, bool keepdim, std::optional<DType> dtype) {
  return ops::sum(self, dim, keepdim, dtype) / Tensor(count_over(self, dim));
}
Tensor var(const Tensor& self, Dims dim, bool unbiased, bool keepdim, const std::optional<Scalar>& correction) {
  const Tensor off = ops::abs(self - ops::mean(self, dim, true));
  const double less = correction ? correction->to_double() : unbiased ? 1 : 0;
  return ops::sum(off * off, dim, keepdim) / Tensor(std::max(count_over(self, dim) - less, 0.0));
}
Two best(const Tensor& self, int64_t dim, bool keepdim, bool largest) {
  const Tensor at = largest ? ops::argmax(self, dim, true) : ops::argmin(self, dim, true);
  const Tensor values = self.dim() ? ops::gather(self, dim, at) : self;
  return keepdim || !self.dim() ? Two{values, at}
                                : Two{ops::squeeze_dims(values, Shape{dim}), ops::squeeze_dims(at, Shape{dim})};
}
Two max_dim(const Tensor& self, int64_t dim, bool keepdim) { return best(self, dim, keepdim, true); }
Two min_dim(const Tensor& self, int64_t dim, bool keepdim) { return best(self, dim, keepdim, false); }
Tensor vector_norm(const Tensor& self, const Scalar& ord, Dims dim, bool keepdim, std::optional<DType> dtype) {
  const Tensor x = ops::abs(dtype ? ops::to_dtype(self, *dtype) : self);
  const double order = ord.to_double();
  if (std::isinf(order)) return order > 0 ? ops::amax(x, dim, keepdim) : ops::amin(x, dim, keepdim);
  if (order == 0) return ops::sum(ops::to_dtype(ops::ne(x, Tensor(0)), x.dtype()), dim, keepdim);
  if (order == 1) return ops::sum(x, dim, keepdim);
  if (order == 2) return ops::sqrt(ops::sum(x * x, dim, keepdim));
  return ops::pow(ops::sum(ops::pow(x, Tensor(order)), dim, keepdim), Tensor(1 / order));
}
Two topk(const Tensor& self, int64_t k, int64_t dim, bool largest, bool) {
  const auto [values, at] = ops::sort(self, dim, largest, true);
  return self.dim() ? Two{ops::narrow(values, dim, 0, k), ops::narrow(at, dim, 0, k)} : Two{values, at};
}

Tensor rank_indices(const Tensor& self, const Tensor& rank, int64_t dim) {
  return ops::gather(std::get<1>(ops::sort(self, dim, false, true)), dim, rank);
}

// --- index ---

/// A row of places as an index for gather and scatter: the same for every line along `dim`.
Tensor for_all_lines(const Tensor& self, int64_t dim, const Tensor& places) {
  if (self.dim() == 0) return ops::reshape(places, Shape{});
  Shape ones(size_t(self.dim()), 1), sizes(self.sizes());
  const size_t d = size_t(dim < 0 ? dim + self.dim() : dim);
  ones[d] = sizes[d] = places.numel();
  return ops::expand(ops::reshape(places, ones), sizes);
}
Tensor index_select(const Tensor& self, int64_t dim, const Tensor& places) {
  const Tensor found = ops::gather(self, dim, for_all_lines(self, dim, places));
  return found;
}
Tensor index_add(const Tensor& self, int64_t dim, const Tensor& places, const Tensor& source, const Scalar& alpha) {
  const Tensor at = for_all_lines(self, dim, places);
  return ops::scatter_add(self, dim, at, ops::reshape(ops::to_dtype(source * Tensor(alpha), self.dtype()), at.sizes()));
}
Tensor index_copy(const Tensor& self, int64_t dim, const Tensor& places, const Tensor& source) {
  const Tensor at = for_all_lines(self, dim, places);
  return ops::scatter(self, dim, at, ops::reshape(source, at.sizes()));
}
Tensor index_fill(const Tensor& self, int64_t dim, const Tensor& places, const Tensor& value) {
  const Tensor at = for_all_lines(self, dim, places), filled = empty(at.sizes(), self.dtype(), stated_device(self));
  ops::fill_(filled, value);
  return ops::scatter(self, dim, at, filled);
}
Tensor scatter_value(const Tensor& self, int64_t dim, const Tensor& index, const Scalar& value) {
  const Tensor filled = empty(index.sizes(), self.dtype(), stated_device(self));
  ops::fill_(filled, Tensor(value));
  return ops::scatter(self, dim, index, filled);
}
/// Column minus row, of shape (rows, columns).
Tensor off_diagonal(const Tensor& self) {
  const Device device = stated_device(self);
  return ops::arange(0, self.size(-1), 1, DType::Int64, device) -
         ops::unsqueeze(ops::arange(0, self.size(-2), 1, DType::Int64, device), 1);
}
Tensor tril(const Tensor& self, int64_t diagonal) {
  return masked(self, ops::le(off_diagonal(self), Tensor(diagonal)));
}
Tensor triu(const Tensor& self, int64_t diagonal) {
  return masked(self, ops::ge(off_diagonal(self), Tensor(diagonal)));
}

// --- pool ---

/// Planes as rows, so that a position in a plane is a place in a row.
Tensor planes(const Tensor& t) {
  int64_t rows = 1;
  for (int64_t d = 0; d + 2 < t.dim(); ++d) rows *= t.size(d);
  return ops::reshape(t, Shape{rows, t.size(-2) * t.size(-1)});
}
using infer::Window;
/// First place of every window in dimension i, so that it broadcasts against (..., H, W).
Tensor first_places(const Window& w, const Tensor& result, size_t i) {
  const Tensor n =
      ops::arange(0, result.size(i ? -1 : -2), 1, DType::Int64, stated_device(result)) * Tensor(w.stride[i]) -
      Tensor(w.padding[i]);
  return i ? n : ops::unsqueeze(n, 1);
}
Tensor trunc_div(const Tensor& a, int64_t b) { return ops::trunc_divide(a, Tensor(b)); }
/// Positions in the plane that offsets within the windows name.
Tensor positions(const Tensor& offsets, const Tensor& input, const Window& w) {
  const Tensor at = ops::to_dtype(offsets, DType::Int64), row = trunc_div(at, w.kernel[1]),
               column = at - row * Tensor(w.kernel[1]);
  const Tensor h = first_places(w, offsets, 0) + row * Tensor(w.dilation[0]),
               v = first_places(w, offsets, 1) + column * Tensor(w.dilation[1]);
  return h * Tensor(input.size(-1)) + v;
}
Two max_pool2d_with_offsets(const Tensor& input, IntSpan kernel, IntSpan stride, IntSpan padding, IntSpan dilation,
                            bool ceil_mode) {
  const auto [result, at] = ops::max_pool2d_with_indices(input, kernel, stride, padding, dilation, ceil_mode);
  const Window w(kernel, stride, padding, dilation);
  const Tensor h = trunc_div(at, input.size(-1)), v = at - h * Tensor(input.size(-1));
  const Tensor row = trunc_div(h - first_places(w, at, 0), w.dilation[0]),
               column = trunc_div(v - first_places(w, at, 1), w.dilation[1]);
  return {result, row * Tensor(w.kernel[1]) + column};
}
Tensor add_at(const Tensor& grad, const Tensor& input, const Tensor& at) {
  const Tensor zero = ops::zeros_like(planes(input));
  return ops::reshape(ops::scatter_add(zero, 1, planes(at), planes(grad)), input.sizes());
}
Tensor max_pool2d_backward(const Tensor& grad, const Tensor& input, IntSpan kernel, IntSpan stride, IntSpan padding,
                           IntSpan dilation, bool, const Tensor& offsets) {
  return add_at(grad, input, positions(offsets, input, Window(kernel, stride, padding, dilation)));
}
Tensor max_pool2d_pick(const Tensor& input, IntSpan kernel, IntSpan stride, IntSpan padding, IntSpan dilation, bool,
                       const Tensor& offsets) {
  const Tensor at = positions(offsets, input, Window(kernel, stride, padding, dilation));
  return ops::reshape(ops::gather(planes(input), 1, planes(at)), offsets.sizes());
}
Tensor max_pool2d_with_indices_backward(const Tensor& grad, const Tensor& input, IntSpan, IntSpan, IntSpan, IntSpan,
                                        bool, const Tensor& indices) {
  return add_at(grad, input, indices);
}
Tensor adaptive_max_pool2d_backward(const Tensor& grad, const Tensor& input, const Tensor& indices) {
  return add_at(grad, input, indices);
}

// --- random ---

Tensor uniform_like(const Tensor& self, const Generator& generator) {
  const Tensor draws =
      empty(self.sizes(), self.dtype() == DType::Float64 ? DType::Float64 : DType::Float32, self.device());
  ops::uniform_(draws, 0, 1, generator);
  return draws;
}
void normal_(const Tensor& self, double mean, double std, const Generator& generator) {
  const Tensor radius = ops::sqrt(ops::log1p(-uniform_like(self, generator)) * Tensor(-2.0));
  const Tensor angle = uniform_like(self, generator) * Tensor(2 * std::numbers::pi);
  ops::copy_(self, radius * ops::cos(angle) * Tensor(std) + Tensor(mean));
}
void bernoulli_(const Tensor& self, double p, const Generator& generator) {
  ops::copy_(self, ops::lt(uniform_like(self, generator), Tensor(p)));
}
void exponential_(const Tensor& self, double lambd, const Generator& generator) {
  ops::copy_(self, ops::log1p(-uniform_like(self, generator)) / Tensor(-lambd));
}
void geometric_(const Tensor& self, double p, const Generator& generator) {
  const Tensor draws = ops::ceil(ops::log1p(-uniform_like(self, generator)) / Tensor(std::log1p(-p)));
  ops::copy_(self, ops::maximum(draws, Tensor(1.0)));
}
void cauchy_(const Tensor& self, double median, double sigma, const Generator& generator) {
  ops::copy_(self, ops::tan((uniform_like(self, generator) - Tensor(0.5)) * Tensor(std::numbers::pi)) * Tensor(sigma) +
                       Tensor(median));
}

DECOMPOSE(mm)
DECOMPOSE(mv)
DECOMPOSE(dot)
DECOMPOSE(addmm)
DECOMPOSE(addmv)
DECOMPOSE(baddbmm)
DECOMPOSE(linear)
DECOMPOSE(linear_backward)
DECOMPOSE(all)
DECOMPOSE(mean)
DECOMPOSE(var)
TAEDA_DECOMPOSE(max_dim, "max.dim", max_dim)
TAEDA_DECOMPOSE(min_dim, "min.dim", min_dim)
DECOMPOSE(vector_norm)
DECOMPOSE(topk)
DECOMPOSE(rank_indices)
DECOMPOSE(index_select)
DECOMPOSE(index_add)
DECOMPOSE(index_copy)
DECOMPOSE(index_fill)
TAEDA_DECOMPOSE(scatter_value, "scatter.value", scatter_value)
DECOMPOSE(tril)
DECOMPOSE(triu)
DECOMPOSE(max_pool2d_with_offsets)
DECOMPOSE(max_pool2d_backward)
DECOMPOSE(max_pool2d_pick)
DECOMPOSE(max_pool2d_with_indices_backward)
DECOMPOSE(adaptive_max_pool2d_backward)
DECOMPOSE(normal_)
DECOMPOSE(bernoulli_)
DECOMPOSE(exponential_)
DECOMPOSE(geometric_)
DECOMPOSE(cauchy_)

}  // namespace
}  // namespace taeda::decompose
