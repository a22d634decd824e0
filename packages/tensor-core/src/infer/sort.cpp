// Inference of the sort family.
#include "taeda/ops/sort.h"

namespace taeda::infer {
namespace {

void check_ordered(const char* op, const Tensor& self) {
  check(!is_complex(self.dtype()), ErrorKind::Type, op, ": argument 'self' has dtype ", name(self.dtype()), "; complex numbers have no order");
}

}  // namespace

std::array<Spec, 2> sort(const Tensor& self, int64_t dim, bool, bool) {
  check_ordered("sort", self);
  wrap_dim(dim, self.dim(), "sort");
  return {spec(self.sizes(), self.dtype()), spec(self.sizes(), DType::Int64)};
}

std::array<Spec, 2> topk(const Tensor& self, int64_t k, int64_t dim, bool, bool) {
  check_ordered("topk", self);
  const int64_t d = wrap_dim(dim, self.dim(), "topk");
  const int64_t size = self.dim() ? self.size(d) : 1;
  check(k >= 0 && k <= size, ErrorKind::Runtime, "topk: argument 'k' is ", k, ", expected 0 to ", size, ", the size of dimension ", d, " of shape ",
        shape_text(self.sizes()));
  Shape sizes(self.sizes());
  if (self.dim()) sizes[d] = k;
  return {spec(sizes, self.dtype()), spec(sizes, DType::Int64)};
}

}  // namespace taeda::infer
