// Inference of the special family, where no shared function fits.
#include "taeda/ops/special.h"
#include "taeda/spec.h"

namespace taeda::infer {

Spec polygamma_method(const Tensor& self, int64_t n) {
  check(n >= 0, ErrorKind::Runtime, "polygamma: argument 'n' must not be negative, got ", n);
  return unary_float_ordered("polygamma", self);
}

}  // namespace taeda::infer
