// Sort-family operators in terms of others.
#include "taeda/ops/sort.h"

#include <limits>

#include "composite/host.h"
#include "taeda/arithmetic.h"
#include "taeda/ops/cast.h"
#include "taeda/ops/compare.h"
#include "taeda/ops/creation.h"
#include "taeda/ops/index.h"
#include "taeda/ops/reduce.h"
#include "taeda/ops/shape.h"
#include "taeda/ops/unary.h"
#include "taeda/wrappers.h"

namespace taeda::impl {
namespace {

/// The results of a search in int32, where `limit`, the largest of them, fits.
Tensor as_int32(const char* op, const Tensor& found, int64_t limit) {
  check(limit <= std::numeric_limits<int32_t>::max(), ErrorKind::Runtime, op, ": argument 'out_int32' is True, but ",
        limit, " elements can't be numbered in int32");
  return ops::to_dtype(found, DType::Int32);
}

/// Only where the values are at hand; elsewhere the backend's gather complains.
void check_sorter(const Tensor& sorter) {
  if (!at_hand(sorter)) return;
  const int64_t size = sorter.size(-1);
  for (const Tensor& extreme : {ops::amin(sorter), ops::amax(sorter)}) {
    const int64_t place = *extreme.data<int64_t>();
    check(place >= 0 && place < size, ErrorKind::Index, "searchsorted: argument 'sorter' holds ", place,
          ", expected 0 to ", size - 1);
  }
}

}  // namespace

Tensor bucketize(const Tensor& self, const Tensor& boundaries, bool out_int32, bool right) {
  check(boundaries.dim() == 1, ErrorKind::Runtime, "bucketize: argument 'boundaries' has shape ",
        shape_text(boundaries.sizes()), ", expected 1 dimension");
  const Tensor found = ops::searchsorted(boundaries, self, right);
  return out_int32 ? as_int32("bucketize", found, boundaries.numel()) : found;
}

Tensor searchsorted_options(const Tensor& sorted_sequence, const Tensor& self, bool out_int32, bool right,
                            std::optional<std::string_view> side, const Tensor& sorter) {
  const std::string_view named = side.value_or(right ? "right" : "left");
  check(named == "left" || named == "right", ErrorKind::Runtime, "searchsorted: argument 'side' is '", named,
        "', expected 'left' or 'right'");
  check(!right || named == "right", ErrorKind::Runtime,
        "searchsorted: arguments 'side' ('left') and 'right' (True) contradict each other");
  Tensor ascending = sorted_sequence;
  if (sorter.defined()) {
    check(sorter.dtype() == DType::Int64, ErrorKind::Runtime, "searchsorted: argument 'sorter' has dtype ",
          name(sorter.dtype()), ", expected int64");
    check(std::ranges::equal(sorter.sizes(), sorted_sequence.sizes()), ErrorKind::Runtime,
          "searchsorted: argument 'sorter' of shape ", shape_text(sorter.sizes()),
          " must have the shape of 'sorted_sequence', ", shape_text(sorted_sequence.sizes()));
    check_sorter(sorter);
    if (sorter.dim() > 0) ascending = ops::gather(sorted_sequence, -1, sorter);
  }
  const Tensor found = ops::searchsorted(ascending, self, named == "right");
  return out_int32 ? as_int32("searchsorted", found, ascending.size(-1)) : found;
}

Tensor argsort(const Tensor& self, int64_t dim, bool descending, bool stable) {
  wrap_dim(dim, self.dim(), "argsort");
  return std::get<1>(ops::sort(self, dim, descending, stable));
}
Tensor msort(const Tensor& self) { return std::get<0>(ops::sort(self, 0, false, true)); }

namespace {

/// A matrix with one row for each index along `dim`.
Tensor slices(const char* op, const Tensor& self, int64_t dim) {
  const int64_t at = wrap_dim(dim, self.dim(), op);
  if (self.dim() == 0) return ops::reshape(self, Shape{1, 1});
  return ops::reshape(ops::movedim(self, Shape{at}, Shape{0}),
                      Shape{self.size(at), self.size(at) ? self.numel() / self.size(at) : 0});
}
/// Order that sorts rows lexicographically.
Tensor row_order(const Tensor& rows) {
  Tensor order =
      ops::arange(Scalar(int64_t(0)), Scalar(rows.size(0)), Scalar(int64_t(1)), DType::Int64, stated_device(rows));
  for (int64_t column = rows.size(1) - 1; column >= 0; --column) {
    const Tensor keys = ops::index_select(ops::select(rows, 1, column), 0, order);
    order = ops::index_select(order, 0, ops::argsort(keys, -1, false, true));
  }
  return order;
}
/// First row of every run of equal rows, number of the run for each row, lengths of the runs.
std::tuple<Tensor, Tensor, Tensor> runs(const Tensor& rows) {
  const int64_t n = rows.size(0);
  if (n == 0) {
    const Tensor none = ops::zeros(Shape{0}, DType::Int64, stated_device(rows));
    return {none, ops::clone(none), ops::clone(none)};
  }
  const Tensor first = ops::ones(Shape{1}, DType::Bool, stated_device(rows));
  const Tensor differs = ops::any(ops::ne(ops::narrow(rows, 0, 1, n - 1), ops::narrow(rows, 0, 0, n - 1)), Shape{1});
  const Tensor parts[] = {first, differs};
  const Tensor starts = ops::cat(parts, 0);
  const Tensor firsts = ops::select(ops::nonzero(starts), 1, 0);
  const Tensor end = ops::full(Shape{1}, Scalar(n), DType::Int64, stated_device(rows));
  const Tensor bounds[] = {ops::narrow(firsts, 0, 1, firsts.size(0) - 1), end};
  return {firsts, ops::cumsum(starts, 0) - Tensor(1), ops::cat(bounds, 0) - firsts};
}

}  // namespace

std::tuple<Tensor, Tensor, Tensor> unique_dim(const Tensor& self, int64_t dim) {
  const Tensor rows = slices("unique_dim", self, dim), order = row_order(rows);
  const auto [firsts, numbers, counts] = runs(ops::index_select(rows, 0, order));
  const Tensor inverse = ops::scatter(ops::zeros_like(numbers), 0, order, numbers);
  return {ops::index_select(self, dim, ops::index_select(order, 0, firsts)), inverse, counts};
}
std::tuple<Tensor, Tensor, Tensor> unique_dim_consecutive(const Tensor& self, int64_t dim) {
  const auto [firsts, numbers, counts] = runs(slices("unique_dim_consecutive", self, dim));
  return {ops::index_select(self, dim, firsts), numbers, counts};
}

}  // namespace taeda::impl
