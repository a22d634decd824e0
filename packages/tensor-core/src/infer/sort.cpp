// Inference of the sort family.
#include "taeda/ops/sort.h"

#include <algorithm>
#include <cmath>

#include "infer/sort.h"
#include "taeda/checked.h"

namespace taeda::infer {
namespace {

void check_ordered(const char* op, const Tensor& tensor, const char* argument = "self") {
  check(!is_complex(tensor.dtype()), ErrorKind::NotImplemented, op, ": argument '", argument, "' has dtype ",
        name(tensor.dtype()), "; complex numbers have no order");
}

}  // namespace

void bincount(const Tensor& self, const Tensor& weights, int64_t minlength) {
  if (self.dim() != 1 || !is_integral(self.dtype())) [[unlikely]]
    fail(ErrorKind::Runtime, "bincount: argument 'self' must be 1-d and of integer dtype, got ", describe(self));
  check(minlength >= 0, ErrorKind::Runtime, "bincount: argument 'minlength' must not be negative, got ", minlength);
  if (!weights.defined()) return;
  check(std::ranges::equal(weights.sizes(), self.sizes()), ErrorKind::Runtime,
        "bincount: argument 'weights' has shape ", shape_text(weights.sizes()), ", expected that of 'self', ",
        shape_text(self.sizes()));
}
DType bincount_dtype(const Tensor& self, const Tensor& weights) {
  if (!weights.defined() || self.numel() == 0) return DType::Int64;
  return weights.dtype() == DType::Float32 ? DType::Float32 : DType::Float64;
}
int64_t bincount_size(int64_t least, int64_t most, int64_t bins) {
  check(least >= 0, ErrorKind::Runtime, "bincount: argument 'self' must hold non-negative integers, found ", least);
  return std::max(bins, (Count(most) + 1).of("bincount", "the number of bins up to ", most));
}
void unique_all(const Tensor& self) { check_ordered("unique_all", self); }
void histc(const Tensor& self, int64_t bins, const Scalar& min, const Scalar& max) {
  check(!is_complex(self.dtype()), ErrorKind::NotImplemented, "histc: not implemented for dtype ", name(self.dtype()));
  check(bins > 0, ErrorKind::Runtime, "histc: argument 'bins' must be positive, got ", bins);
  double low = min.to_double(), high = max.to_double();
  histogram_range(low, high);
}
void histogram_range(double& low, double& high) {
  if (low == high) {
    low -= 1;
    high += 1;
  }
  check(
      low < high && std::isfinite(low) && std::isfinite(high) && std::isfinite(high - low), ErrorKind::Runtime,
      "histc: arguments 'min' and 'max', or the elements where they are equal, must be finite, ordered and no further "
      "apart than the largest number, got ",
      low, " and ", high);
}

void searchsorted(const Tensor& sorted_sequence, const Tensor& self) {
  check_ordered("searchsorted", sorted_sequence, "sorted_sequence");
  check_ordered("searchsorted", self);
  const int64_t last = sorted_sequence.dim() - 1;
  check(last >= 0, ErrorKind::Runtime, "searchsorted: argument 'sorted_sequence' must have a dimension");
  check(last == 0 || (self.dim() == last + 1 && std::ranges::equal(self.sizes().first(size_t(last)),
                                                                   sorted_sequence.sizes().first(size_t(last)))),
        ErrorKind::Runtime, "searchsorted: argument 'self' of shape ", shape_text(self.sizes()),
        " must agree with 'sorted_sequence' of shape ", shape_text(sorted_sequence.sizes()),
        " in all but the last dimension");
}

std::array<Spec, 2> sort(const Tensor& self, int64_t dim, bool, bool) {
  check_ordered("sort", self);
  wrap_dim(dim, self.dim(), "sort");
  return {spec(self.sizes(), self.dtype()), spec(self.sizes(), DType::Int64)};
}

std::array<Spec, 2> topk(const Tensor& self, int64_t k, int64_t dim, bool, bool) {
  check_ordered("topk", self);
  const int64_t d = wrap_dim(dim, self.dim(), "topk");
  const int64_t size = self.dim() ? self.size(d) : 1;
  check(k >= 0 && k <= size, ErrorKind::Runtime, "topk: argument 'k' is ", k, ", expected 0 to ", size,
        ", the size of dimension ", d, " of shape ", shape_text(self.sizes()), ": selected index k out of range");
  Shape sizes(self.sizes());
  if (self.dim()) sizes[d] = k;
  return {spec(sizes, self.dtype()), spec(sizes, DType::Int64)};
}

Spec rank_indices(const Tensor& self, const Tensor& rank, int64_t dim) {
  check_ordered("rank_indices", self);
  const int64_t d = wrap_dim(dim, self.dim(), "rank_indices");
  Shape sizes(self.sizes());
  if (self.dim()) sizes[size_t(d)] = 1;
  check(rank.dtype() == DType::Int64, ErrorKind::Type, "rank_indices: argument 'rank' has dtype ", name(rank.dtype()),
        ", expected int64");
  check(std::ranges::equal(rank.sizes(), sizes), ErrorKind::Runtime, "rank_indices: argument 'rank' has shape ",
        shape_text(rank.sizes()), ", expected ", shape_text(sizes), ", that of argument 'self' with 1 along dimension ",
        d);
  return spec(sizes, DType::Int64);
}

namespace {

Tensor histc_meta(const Tensor& self, int64_t bins, const Scalar&, const Scalar&) {
  return empty(Shape{bins}, self.dtype(), self.device());
}
Tensor searchsorted_meta(const Tensor& sorted_sequence, const Tensor& self, bool) {
  return empty(self.sizes(), DType::Int64, sorted_sequence.device());
}
const bool registered = [] {
  kernel<op::histc>(kMeta, histc_meta);
  kernel<op::searchsorted>(kMeta, searchsorted_meta);
  return true;
}();

}  // namespace

}  // namespace taeda::infer
