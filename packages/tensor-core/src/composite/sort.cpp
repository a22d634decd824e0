// Sort-family operators in terms of others.
#include "taeda/ops/sort.h"

#include "taeda/ops/index.h"
#include "taeda/ops/shape.h"

namespace taeda::impl {

Tensor argsort(const Tensor& self, int64_t dim, bool descending, bool stable) { return std::get<1>(ops::sort(self, dim, descending, stable)); }
Tensor msort(const Tensor& self) { return std::get<0>(ops::sort(self, 0, false, true)); }
Tensor bucketize(const Tensor& self, const Tensor& boundaries, bool right) { return ops::searchsorted(boundaries, self, right); }

std::tuple<Tensor, Tensor> kthvalue(const Tensor& self, int64_t k, int64_t dim, bool keepdim) {
  const int64_t d = wrap_dim(dim, self.dim(), "kthvalue");
  const int64_t size = self.dim() ? self.size(d) : 1;
  check(k >= 1 && k <= size, ErrorKind::Runtime, "kthvalue: argument 'k' is ", k, ", expected 1 to ", size, ", the size of dimension ", d);
  const auto [values, indices] = ops::sort(self, d, false, true);
  if (self.dim() == 0) return {values, indices};
  const auto pick = [&](const Tensor& sorted) {
    const Tensor one = ops::select(sorted, d, k - 1);
    return keepdim ? ops::unsqueeze(one, d) : one;
  };
  // The value is gathered from `self`, so that its gradient goes to one place only.
  const Tensor places = ops::unsqueeze(ops::select(indices, d, k - 1), d);
  const Tensor value = ops::gather(self, d, places);
  return {keepdim ? value : ops::squeeze_dims(value, Shape{d}), pick(indices)};
}

std::tuple<Tensor, Tensor> median_dim(const Tensor& self, int64_t dim, bool keepdim) {
  const int64_t d = wrap_dim(dim, self.dim(), "median");
  const int64_t size = self.dim() ? self.size(d) : 1;
  check(size > 0, ErrorKind::Index, "median: dimension ", d, " of shape ", shape_text(self.sizes()), " is empty");
  return kthvalue(self, (size + 1) / 2, d, keepdim);
}

Tensor median(const Tensor& self) {
  check(self.numel() > 0, ErrorKind::Runtime, "median: argument 'self' is empty");
  return std::get<0>(median_dim(ops::reshape(self, Shape{-1}), 0, false));
}

}  // namespace taeda::impl
