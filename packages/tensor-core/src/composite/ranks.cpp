// Elements by their rank: the k-th, medians, the most frequent.
#include <limits>

#include "taeda/arithmetic.h"
#include "taeda/dims.h"
#include "taeda/ops/cast.h"
#include "taeda/ops/compare.h"
#include "taeda/ops/creation.h"
#include "taeda/ops/index.h"
#include "taeda/ops/reduce.h"
#include "taeda/ops/shape.h"
#include "taeda/ops/sort.h"
#include "taeda/ops/statistics.h"
#include "taeda/ops/unary.h"
#include "taeda/wrappers.h"

namespace taeda::impl {
namespace {

/// A dimension and its size, where a number has one of a single element.
struct Line {
  int64_t dim, size;
  Line(const char* op, const Tensor& self, int64_t d)
      : dim(wrap_dim(d, self.dim(), op)), size(self.dim() ? self.size(dim) : 1) {}
  Line(const char* op, const Tensor& self, int64_t d, const char* need) : Line(op, self, d) {
    check(size > 0, ErrorKind::Index, op, ": dimension ", dim, " of shape ", shape_text(self.sizes()), need);
  }
};

/// The elements at one place along the dimension, with that place. They are gathered from `self`, so that a gradient
/// goes to one place only.
std::tuple<Tensor, Tensor> picked(const Tensor& self, const Tensor& places, int64_t dim, bool keepdim) {
  const auto settled = [&](const Tensor& kept) {
    return keepdim || self.dim() == 0 ? kept : ops::squeeze_dims(kept, Shape{dim});
  };
  return {settled(ops::gather(self, dim, places)), settled(places)};
}
std::tuple<Tensor, Tensor> at_rank(const Tensor& self, const Tensor& rank, int64_t dim, bool keepdim) {
  return picked(self, ops::rank_indices(ops::detach(self), rank, dim), dim, keepdim);
}
std::tuple<Tensor, Tensor> at_rank(const Tensor& self, int64_t rank, int64_t dim, bool keepdim) {
  Shape sizes(self.sizes());
  if (self.dim()) sizes[size_t(dim)] = 1;
  return at_rank(self, ops::expand(ops::full(Shape{}, rank, DType::Int64, stated_device(self)), sizes), dim, keepdim);
}

/// How many elements along the dimension are no NaN.
Tensor numbers_along(const Tensor& self, const Line& line) {
  return ops::rsub(ops::sum(ops::isnan(self), Shape{line.dim}, true), Tensor(line.size));
}

/// The median along the only dimension of all elements; NaN where there are none.
template <class Along>
Tensor of_all(const char* op, const Tensor& self, const Along& along) {
  check(self.numel() > 0 || is_floating(self.dtype()), ErrorKind::Runtime, op, ": argument 'self' is empty, and ",
        name(self.dtype()), " has no NaN to give");
  if (self.numel() == 0)
    return ops::full(Shape{}, std::numeric_limits<double>::quiet_NaN(), self.dtype(), stated_device(self));
  return std::get<0>(along(ops::reshape(self, Shape{-1}), 0, false));
}

}  // namespace

std::tuple<Tensor, Tensor> kthvalue(const Tensor& self, int64_t k, int64_t dim, bool keepdim) {
  const Line line("kthvalue", self, dim);
  check(line.size > 0, ErrorKind::Index, "kthvalue: dimension ", line.dim, " of shape ", shape_text(self.sizes()),
        " is empty");
  check(k >= 1 && k <= line.size, ErrorKind::Runtime, "kthvalue: argument 'k' is ", k, ", expected 1 to ", line.size,
        ", the size of dimension ", line.dim);
  return at_rank(self, k - 1, line.dim, keepdim);
}

std::tuple<Tensor, Tensor> median_dim(const Tensor& self, int64_t dim, bool keepdim) {
  const Line line("median", self, dim, " is empty");
  if (!is_floating(self.dtype())) return at_rank(self, (line.size - 1) / 2, line.dim, keepdim);
  // NaN has the highest ranks, the first of a row before its others.
  const Tensor numbers = numbers_along(self, line);
  const Tensor rank = ops::where(ops::lt(numbers, Tensor(line.size)), numbers, Tensor((line.size - 1) / 2));
  return at_rank(self, rank, line.dim, keepdim);
}
Tensor median(const Tensor& self) { return of_all("median", self, median_dim); }

std::tuple<Tensor, Tensor> nanmedian_dim(const Tensor& self, int64_t dim, bool keepdim) {
  const Line line("nanmedian", self, dim, " is empty");
  if (!is_floating(self.dtype())) return at_rank(self, (line.size - 1) / 2, line.dim, keepdim);
  const Tensor numbers = numbers_along(self, line);
  return at_rank(self, ops::floor_divide(ops::clamp_min(numbers, Tensor(1)) - Tensor(1), Tensor(2)), line.dim, keepdim);
}
Tensor nanmedian(const Tensor& self) { return of_all("nanmedian", self, nanmedian_dim); }

std::tuple<Tensor, Tensor> mode(const Tensor& self, int64_t dim, bool keepdim) {
  const auto [d, size] = Line("mode", self, dim, " is empty");
  if (self.dim() == 0) return {ops::clone(self), ops::zeros(Shape{}, DType::Int64, self.device())};
  const auto [sorted, order] = ops::sort(ops::detach(self), d, false, true);
  const Tensor places =
      ops::arange(Scalar(int64_t(0)), Scalar(size), Scalar(int64_t(1)), DType::Int64, stated_device(self));
  Shape along(size_t(self.dim()), 1);
  along[size_t(d)] = size;
  const Tensor place = ops::expand(ops::reshape(places, along), self.sizes());
  // How far each element lies behind the start of its run of equal ones: furthest at the end of the longest run, which
  // of several is met first where the value is least.
  const Tensor goes_on = ops::eq(ops::narrow(sorted, d, 1, size - 1), ops::narrow(sorted, d, 0, size - 1));
  const Tensor later = ops::narrow(place, d, 1, size - 1), first = ops::narrow(place, d, 0, 1);
  const Tensor parts[] = {first, ops::where(goes_on, Tensor(0), later)};
  const Tensor start = std::get<0>(ops::cummax(ops::cat(parts, d), d));
  const Tensor end = ops::argmax(place - start, d, true);
  return picked(self, ops::gather(order, d, end), d, keepdim);
}

}  // namespace taeda::impl
