// Special functions written in terms of others.
#include "taeda/ops/special.h"

#include <cmath>
#include <numbers>

#include "infer/dtypes.h"
#include "taeda/arithmetic.h"
#include "taeda/ops/cast.h"
#include "taeda/ops/creation.h"
#include "taeda/ops/reduce.h"
#include "taeda/ops/shape.h"
#include "taeda/ops/unary.h"

namespace taeda::impl {

Tensor polygamma(int64_t n, const Tensor& self) { return ops::polygamma_method(self, n); }

Tensor mvlgamma(const Tensor& self, int64_t p) {
  check(p >= 1, ErrorKind::Runtime, "mvlgamma: argument 'p' is ", p, ", expected at least 1");
  infer::unary_float_ordered("mvlgamma", self);
  const Tensor x = is_integral(self.dtype()) ? ops::cast(self, default_dtype()) : self;
  const Tensor halves = ops::arange(-0.5 * double(p - 1), Scalar(0.25), 0.5, x.dtype(), x.device());
  const Tensor sum = ops::sum(ops::lgamma(ops::unsqueeze(x, -1) + halves), Shape{-1});
  return sum + Tensor(double(p) * double(p - 1) / 4 * std::log(std::numbers::pi));
}

}  // namespace taeda::impl
