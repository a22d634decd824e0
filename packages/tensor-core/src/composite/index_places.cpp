// Places of elements: writing to numbered places, combining slices, membership, coordinates.
#include <algorithm>
#include <cmath>

#include "infer/index.h"
#include "taeda/ops/arith.h"
#include "taeda/ops/cast.h"
#include "taeda/ops/compare.h"
#include "taeda/ops/creation.h"
#include "taeda/ops/index.h"
#include "taeda/ops/shape.h"
#include "taeda/ops/sort.h"
#include "taeda/wrappers.h"

namespace taeda::impl {
namespace {

void check_source(const char* op, const Tensor& self, const Tensor& index, const Tensor& source) {
  infer::check_places(op, index);
  check(source.dtype() == self.dtype() && source.numel() == index.numel(), ErrorKind::Runtime, op,
        ": argument 'source' must have dtype ", name(self.dtype()), " and ", index.numel(),
        " elements as 'index', found ", name(source.dtype()), " and ", source.numel());
}
/// Writes to numbered places of a vector.
void put_flat(const Tensor& flat, const Tensor& index, const Tensor& source, bool accumulate) {
  const Tensor indices[] = {ops::reshape(index, Shape{-1})};
  ops::index_put_(flat, indices, ops::reshape(source, Shape{-1}), accumulate);
}

/// A 1-d index as one of the shape of `source`.
Tensor spread(const char* op, const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source) {
  const int64_t ndim = std::max<int64_t>(self.dim(), 1);
  check(index.dim() <= 1 && dim >= -ndim && dim < ndim, ErrorKind::Index, op,
        ": expected a 1-dimensional 'index' and a dimension of shape ", shape_text(self.sizes()),
        ", found an index of shape ", shape_text(index.sizes()), " and dim=", dim);
  Shape expected(self.sizes()), shape(self.sizes().size(), 1);
  if (self.dim()) {
    const size_t d = size_t(dim < 0 ? dim + self.dim() : dim);
    expected[d] = shape[d] = index.numel();
  }
  check(std::ranges::equal(source.sizes(), IntSpan(expected)), ErrorKind::Runtime, op, ": argument 'source' has shape ",
        shape_text(source.sizes()), ", expected ", shape_text(expected), " for an index of ", index.numel(),
        " elements");
  return ops::expand(ops::reshape(index, shape), expected);
}

}  // namespace

Tensor put(const Tensor& self, const Tensor& index, const Tensor& source, bool accumulate) {
  check_source("put", self, index, source);
  const Tensor made = ops::clone(ops::reshape(self, Shape{-1}));
  put_flat(made, index, source, accumulate);
  return ops::reshape(made, self.sizes());
}
void put_(const Tensor& self, const Tensor& index, const Tensor& source, bool accumulate) {
  check_source("put_", self, index, source);
  if (self.contiguous()) return put_flat(ops::view(self, Shape{-1}), index, source, accumulate);
  ops::copy_(self, put(self, index, source, accumulate), false);
}

Tensor index_reduce(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source, std::string_view reduce,
                    bool include_self) {
  constexpr std::string_view known[] = {"prod", "mean", "amax", "amin"};
  check(std::ranges::find(known, reduce) != std::end(known), ErrorKind::Runtime,
        "index_reduce: argument 'reduce' must be 'prod', 'mean', 'amax' or 'amin', found '", reduce, "'");
  const Tensor places = spread("index_reduce", self, dim, index, source);
  return ops::scatter_reduce(self, dim, places, source, reduce, include_self);
}

Tensor isin(const Tensor& elements, const Tensor& test_elements, bool assume_unique, bool invert) {
  const Tensor both[] = {elements, test_elements};
  const DType common = result_type(both), dtype = common == DType::Bool ? DType::UInt8 : common;
  const Device device = elements.is_wrapped_number() ? stated_device(test_elements) : stated_device(elements);
  const Tensor sought = ops::contiguous(ops::to_device(ops::to_dtype(elements, dtype), device));
  const Tensor tests = ops::reshape(ops::to_device(ops::to_dtype(test_elements, dtype), device), Shape{-1});
  Tensor found;
  // A comparison with each takes no memory beside the result's; a search takes eight bytes for each of `elements`.
  if (double(tests.numel()) < 10 * std::pow(double(sought.numel()), 0.145)) {
    for (int64_t i = 0; i < tests.numel(); ++i) {
      const Tensor equal = ops::eq(sought, ops::select(tests, 0, i));
      if (i) ops::logical_or_(found, equal);
      else found = equal;
    }
  } else if (tests.numel()) {
    const Tensor ordered = std::get<0>(ops::sort(tests, 0, false, false));
    const Tensor places = ops::clamp_max(ops::searchsorted(ordered, sought, false), Tensor(tests.numel() - 1));
    const Tensor indices[] = {places};
    found = ops::eq(ops::index(ordered, indices), sought);
  }
  if (!found.defined()) found = ops::zeros(sought.sizes(), DType::Bool, device);
  return invert ? ops::logical_not(found) : found;
}

std::vector<Tensor> unravel_index(const Tensor& indices, IntSpan shape) {
  check(is_integral(indices.dtype()) && indices.dtype() != DType::Bool, ErrorKind::Type,
        "unravel_index: argument 'indices' must be of an integer dtype, found ", name(indices.dtype()));
  check(std::ranges::none_of(shape, [](int64_t size) { return size < 0; }), ErrorKind::Value,
        "unravel_index: argument 'shape' must have no negative size, found ", shape_text(shape));
  Tensor rest = ops::to_dtype(indices, DType::Int64);
  std::vector<Tensor> found(shape.size());
  for (size_t d = shape.size(); d-- > 0;) {
    const Tensor size(shape[d]);
    found[d] = shape[d] ? ops::remainder(rest, size) : rest;
    if (shape[d]) rest = ops::floor_divide(rest, size);
  }
  return found;
}

void fill_diagonal_(const Tensor& self, const Scalar& fill_value, bool wrap) {
  check(self.dim() >= 2, ErrorKind::Runtime, "fill_diagonal_: expected at least 2 dimensions, found shape ",
        shape_text(self.sizes()));
  const bool even = std::ranges::all_of(self.sizes(), [&](int64_t size) { return size == self.size(0); });
  check(self.dim() == 2 || even, ErrorKind::Runtime,
        "fill_diagonal_: all sizes must be equal beyond 2 dimensions, found shape ", shape_text(self.sizes()));
  int64_t step = 0;
  for (const int64_t stride : self.strides()) step += stride;
  const int64_t rows = self.size(0), width = self.size(1);
  // Behind the diagonal of a tall matrix one row stays free before it starts again.
  for (int64_t start = 0; start < rows; start += width + 1) {
    const int64_t length = std::min(rows - start, width);
    const int64_t offset = self.storage_offset() + start * self.stride(0);
    ops::fill_(ops::as_strided(self, Shape{length}, Shape{step}, offset), fill_value);
    if (!wrap || self.dim() > 2) break;
  }
}

}  // namespace taeda::impl
