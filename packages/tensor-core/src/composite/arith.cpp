// Arithmetic written in terms of other operators.
#include "taeda/ops/arith.h"

#include "taeda/ops/cast.h"
#include "taeda/ops/unary.h"

namespace taeda::impl {

Tensor rsub(const Tensor& self, const Tensor& other, const Scalar& alpha) { return ops::sub(other, self, alpha); }

Tensor div_mode(const Tensor& self, const Tensor& other, std::optional<std::string_view> rounding_mode) {
  if (!rounding_mode) return ops::div(self, other);
  if (*rounding_mode == "floor") return ops::floor_divide(self, other);
  check(*rounding_mode == "trunc", ErrorKind::Runtime, "div: argument 'rounding_mode' is '", *rounding_mode,
        "', expected None, 'trunc' or 'floor'");
  return ops::trunc_divide(self, other);
}

Tensor float_power(const Tensor& self, const Tensor& exponent) {
  const bool complex = is_complex(self.dtype()) || is_complex(exponent.dtype());
  const DType wide = complex ? DType::Complex128 : DType::Float64;
  return ops::pow(ops::to_dtype(self, wide), ops::to_dtype(exponent, wide));
}

Tensor positive(const Tensor& self) {
  check(self.dtype() != DType::Bool, ErrorKind::Runtime, "positive: argument 'self' is bool, expected a number type");
  return self;
}

Tensor clamp_Tensor(const Tensor& self, const Tensor& min, const Tensor& max) {
  check(min.defined() || max.defined(), ErrorKind::Runtime,
        "clamp: at least one of the arguments 'min' and 'max' must not be None");
  if (!min.defined() || !max.defined()) return min.defined() ? ops::clamp_min(self, min) : ops::clamp_max(self, max);
  // All three tell the dtype at once: one after the other, a number would count like an array.
  const Tensor all[] = {self, min, max};
  const DType dtype = min.dtype() == max.dtype() ? self.dtype() : result_type(all);
  return ops::clamp_max(ops::clamp_min(ops::to_dtype(self, dtype), min), max);
}

Tensor ldexp(const Tensor& self, const Tensor& other) {
  const bool exact = is_floating(self.dtype()) && !self.is_wrapped_number() && is_integral(other.dtype());
  return ops::mul(self, ops::pow(Tensor(2.0), exact ? ops::to_dtype(other, self.dtype()) : other));
}

}  // namespace taeda::impl
