// Embedding rows whose norms are held below a limit.
#include "taeda/ops/embedding.h"

#include "taeda/arithmetic.h"
#include "taeda/half.h"
#include "taeda/ops.h"

namespace taeda::impl {

void embedding_renorm_(const Tensor& self, const Tensor& indices, double max_norm, double norm_type) {
  check(self.dim() == 2, ErrorKind::Runtime, "embedding_renorm_: argument 'self' has shape ", shape_text(self.sizes()),
        ", expected (rows, features)");
  const Tensor used = ops::reshape(indices, Shape{-1});  // a row used twice is given the same values twice
  const Tensor rows = in_float32(ops::index_select(self, 0, used));
  // In float64, since float32 would round the margin away.
  const Tensor norms = ops::to_dtype(ops::vector_norm(rows, norm_type, Shape{-1}, true), DType::Float64);
  const Tensor scale = ops::to_dtype(Tensor(max_norm) / (norms + Tensor(1e-7)), rows.dtype());
  const Tensor scaled = ops::where(ops::gt(norms, Tensor(max_norm)), rows * scale, rows);
  const Tensor places[] = {used};
  ops::index_put_(self, places, ops::to_dtype(scaled, self.dtype()));
}

}  // namespace taeda::impl
