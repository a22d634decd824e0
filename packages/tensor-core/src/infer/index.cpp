// Inference of the index family.
#include "taeda/ops/index.h"

#include <algorithm>

#include "infer/index.h"

#include "taeda/spec.h"

namespace taeda::infer {
namespace {

void check_index_dtype(const char* op, const Tensor& index) {
  check(is_integral(index.dtype()) && index.dtype() != DType::Bool, ErrorKind::Index, op, ": argument 'index' must have an integer dtype, got ",
        name(index.dtype()));
}

Spec like(const Tensor& self) { return spec(self.sizes(), self.dtype()); }

}  // namespace

Spec gather(const Tensor& self, int64_t dim, const Tensor& index, bool) {
  check_index_dtype("gather", index);
  const int64_t d = wrap_dim(dim, self.dim(), "gather");
  check(index.dim() == self.dim() || (self.dim() == 0 && index.dim() <= 1) || (index.dim() == 0 && self.dim() <= 1), ErrorKind::Runtime,
        "gather: argument 'index' has shape ", shape_text(index.sizes()), ", expected as many dimensions as 'self' of shape ", shape_text(self.sizes()));
  for (int64_t k = 0; k < std::min(index.dim(), self.dim()); ++k)
    check(k == d || index.size(k) <= self.size(k), ErrorKind::Runtime, "gather: argument 'index' of shape ", shape_text(index.sizes()),
          " is larger than 'self' of shape ", shape_text(self.sizes()), " at dimension ", k);
  return spec(index.sizes(), self.dtype());
}

Spec index_into(const char* op, const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source) {
  check_index_dtype(op, index);
  const int64_t d = wrap_dim(dim, self.dim(), op);
  check(index.dim() <= 1, ErrorKind::Runtime, op, ": argument 'index' must be 1-dimensional, got shape ", shape_text(index.sizes()));
  check(source.dtype() == self.dtype(), ErrorKind::Runtime, op, ": argument 'source' has dtype ", name(source.dtype()), ", expected ", name(self.dtype()),
        " as 'self'");
  Shape expected(self.sizes());
  if (self.dim()) expected[d] = index.numel();
  check(std::ranges::equal(source.sizes(), IntSpan(expected)) || (self.dim() == 0 && source.numel() == 1), ErrorKind::Runtime, op,
        ": argument 'source' has shape ", shape_text(source.sizes()), ", expected ", shape_text(expected), " for 'index' of ", index.numel(), " elements");
  return like(self);
}

Spec index_fill(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& value) {
  check_index_dtype("index_fill", index);
  wrap_dim(dim, self.dim(), "index_fill");
  check(index.dim() <= 1, ErrorKind::Runtime, "index_fill: argument 'index' must be 1-dimensional, got shape ", shape_text(index.sizes()));
  check(value.dim() == 0, ErrorKind::Runtime, "index_fill: argument 'value' must be 0-dimensional, got shape ", shape_text(value.sizes()));
  check_number("index_fill", "value", value, self.dtype());
  return like(self);
}

Spec index_select(const Tensor& self, int64_t dim, const Tensor& index) {
  check_index_dtype("index_select", index);
  const int64_t d = wrap_dim(dim, self.dim(), "index_select");
  check(index.dim() <= 1, ErrorKind::Index, "index_select: argument 'index' must be 1-dimensional, got shape ", shape_text(index.sizes()));
  Spec out = like(self);
  if (self.dim()) out.sizes[d] = index.numel();
  return out;
}

Spec scatter_into(const char* op, const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src) {
  check(index.numel() == 0 || (is_integral(index.dtype()) && index.dtype() != DType::Bool), ErrorKind::Index, op,
        ": argument 'index' must have an integer dtype, got ", name(index.dtype()));
  const int64_t d = wrap_dim(dim, self.dim(), op);
  check(src.dtype() == self.dtype(), ErrorKind::Runtime, op, ": argument 'src' has dtype ", name(src.dtype()), ", expected ", name(self.dtype()), " as 'self'");
  if (index.numel() == 0) return like(self);
  const auto rank = [](const Tensor& t) { return std::max<int64_t>(t.dim(), 1); };
  check(rank(index) == rank(self) && rank(index) == rank(src), ErrorKind::Runtime, op, ": argument 'index' has shape ", shape_text(index.sizes()),
        ", expected as many dimensions as 'self' ", shape_text(self.sizes()), " and 'src' ", shape_text(src.sizes()));
  for (int64_t k = 0; k < index.dim(); ++k)
    check(((k == d || self.dim() == 0 || index.size(k) <= self.size(k)) && (src.dim() == 0 || src.same(self) || index.size(k) <= src.size(k))), ErrorKind::Runtime,
          op, ": argument 'index' of shape ", shape_text(index.sizes()), " is larger than 'self' ", shape_text(self.sizes()), " apart from dimension ", d,
          " or than 'src' ", shape_text(src.sizes()));
  return like(self);
}

Spec scatter_number(const Tensor& self, int64_t dim, const Tensor& index, const Scalar& value) {
  check_number("scatter", "value", value, self.dtype());
  return scatter_into("scatter", self, dim, index, self);
}

}  // namespace taeda::infer
