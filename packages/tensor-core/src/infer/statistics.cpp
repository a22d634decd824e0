// Inference of the statistics family.
#include "taeda/ops/statistics.h"

namespace taeda::infer {

std::array<Spec, 2> frexp(const Tensor& self) {
  check(is_floating(self.dtype()), ErrorKind::Runtime, "frexp: argument 'self' has dtype ", name(self.dtype()),
        ", expected a floating-point dtype");
  return {spec_like(self.sizes(), self.dtype(), self), spec_like(self.sizes(), DType::Int32, self)};
}

}  // namespace taeda::infer
