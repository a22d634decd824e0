// Inference of the special family, where no shared function fits.
#include "taeda/ops/special.h"
#include "taeda/spec.h"

namespace taeda::infer {

Spec polygamma_method(const Tensor& self, int64_t n) {
  check(n >= 0, ErrorKind::Runtime, "polygamma: argument 'n' must not be negative, got ", n);
  check(n <= 1'000'000, ErrorKind::Runtime, "polygamma: argument 'n' is ", n, ", expected at most 1000000");
  return unary_float_ordered("polygamma", self);
}

}  // namespace taeda::infer
