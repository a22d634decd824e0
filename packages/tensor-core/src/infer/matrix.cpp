// Inference of the matrix family.
#include "infer/matrices.h"
#include "taeda/ops/matrix.h"

namespace taeda::infer {

Spec linalg_matrix_exp(const Tensor& self) {
  expect_square("linalg_matrix_exp", "self", self);
  expect_exact("linalg_matrix_exp", "self", self);
  return spec(self.sizes(), self.dtype());
}

Spec linalg_cross(const Tensor& self, const Tensor& other, int64_t dim) {
  const char* const op = "linalg_cross";
  check(self.dim() == other.dim(), ErrorKind::Runtime, op, ": argument 'other' has shape ", shape_text(other.sizes()),
        ", expected as many dimensions as 'self' of shape ", shape_text(self.sizes()));
  const int64_t d = wrap_dim(dim, self.dim(), op);
  check(self.dim() > 0 && self.size(d) == 3 && other.size(d) == 3, ErrorKind::Runtime, op, ": argument 'dim' is ", dim,
        ", expected a dimension of size 3 in both shapes, ", shape_text(self.sizes()), " and ",
        shape_text(other.sizes()));
  const DType dtype = common_dtype(self, other);
  check(dtype != DType::Bool, ErrorKind::NotImplemented, op, ": not implemented for dtype bool");
  return spec(broadcast_shapes(self.sizes(), other.sizes(), op), dtype);
}

}  // namespace taeda::infer
