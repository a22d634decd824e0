// Special functions written in terms of others.
#include "taeda/ops/special.h"

#include <cmath>
#include <numbers>

#include "taeda/arithmetic.h"
#include "taeda/ops/cast.h"
#include "taeda/ops/unary.h"

namespace taeda::impl {

Tensor polygamma(int64_t n, const Tensor& self) { return ops::polygamma_method(self, n); }

Tensor mvlgamma(const Tensor& self, int64_t p) {
  check(p <= 1'000'000, ErrorKind::Runtime, "mvlgamma: argument 'p' is ", p, ", expected at most 1000000");
  check(p >= 1, ErrorKind::Runtime, "mvlgamma: argument 'p' is ", p, ", expected at least 1");
  infer::unary_float_ordered("mvlgamma", self);
  const Tensor x = is_integral(self.dtype()) ? ops::cast(self, default_dtype()) : self;
  Tensor sum = ops::lgamma(x);
  for (int64_t k = 1; k < p; ++k) sum = sum + ops::lgamma(x - Tensor(double(k) / 2));
  return sum + Tensor(double(p) * double(p - 1) / 4 * std::log(std::numbers::pi));
}

}  // namespace taeda::impl
