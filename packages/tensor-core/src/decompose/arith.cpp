// Arithmetic, comparisons and functions of one number.
#include <cmath>
#include <limits>
#include <numbers>

#include "decompose/common.h"

namespace taeda::decompose {
namespace {

constexpr double kPi = std::numbers::pi;

Tensor addcdiv(const Tensor& self, const Tensor& a, const Tensor& b, const Scalar& value) {
  return self + Tensor(value) * (a / b);
}
Tensor addcmul(const Tensor& self, const Tensor& a, const Tensor& b, const Scalar& value) {
  return self + Tensor(value) * a * b;
}
Tensor clamp(const Tensor& self, const std::optional<Scalar>& min, const std::optional<Scalar>& max) {
  const Tensor raised = min ? ops::maximum(self, Tensor(*min)) : self;
  return max ? ops::minimum(raised, Tensor(*max)) : raised;
}
Tensor clamp_min(const Tensor& self, const Tensor& min) { return ops::maximum(self, min); }
Tensor clamp_max(const Tensor& self, const Tensor& max) { return ops::minimum(self, max); }
Tensor fmax(const Tensor& a, const Tensor& b) {
  return ops::where(ops::ne(a, a), b, ops::where(ops::ne(b, b), a, ops::maximum(a, b)));
}
Tensor fmin(const Tensor& a, const Tensor& b) {
  return ops::where(ops::ne(a, a), b, ops::where(ops::ne(b, b), a, ops::minimum(a, b)));
}
Tensor heaviside(const Tensor& self, const Tensor& values) {
  const Tensor step = ops::where(ops::lt(self, Tensor(0)), ops::zeros_like(self), ops::ones_like(self));
  return ops::where(ops::ne(self, self), self, ops::where(ops::eq(self, Tensor(0)), values, step));
}
Tensor lcm(const Tensor& a, const Tensor& b) {
  const Tensor shared = ops::gcd(a, b), safe = ops::where(ops::eq(shared, Tensor(0)), ops::ones_like(shared), shared);
  return ops::abs(ops::trunc_divide(a, safe) * b);
}
Tensor lerp(const Tensor& self, const Tensor& end, const Tensor& weight) {
  return ops::where(ops::lt(ops::abs(weight), Tensor(0.5)), self + weight * (end - self),
                    end - (end - self) * (Tensor(1) - weight));
}
/// In terms of the one with the larger real part; of two that are infinite there, the sum of their directions.
Tensor complex_logaddexp(const Tensor& a, const Tensor& b) {
  const Tensor first = ops::gt(ops::real(a), ops::real(b));
  const Tensor high = ops::where(first, a, b), low = ops::where(first, b, a);
  const Tensor re = ops::real(high), x = ops::imag(a), y = ops::imag(b);
  const Tensor turn = ops::atan2(ops::sin(x) + ops::sin(y), ops::cos(x) + ops::cos(y));
  const Tensor infinite = ops::where(ops::gt(re, Tensor(0.0)), ops::complex(re, turn), low);
  return ops::where(ops::logical_and(ops::isinf(re), ops::eq(re, ops::real(low))), infinite,
                    high + ops::log1p(ops::exp(low - high)));
}
/// In the larger one's terms, so that nothing overflows; equal infinities stay what they are.
Tensor logaddexp(const Tensor& a, const Tensor& b) {
  if (is_complex(a.dtype())) return complex_logaddexp(a, b);
  const Tensor top = ops::maximum(a, b), gap = ops::abs(a - b);
  return ops::where(ops::isinf(top), top, top + ops::log1p(ops::exp(-gap)));
}
Tensor logaddexp2(const Tensor& a, const Tensor& b) {
  const Tensor top = ops::maximum(a, b), gap = ops::abs(a - b);
  return ops::where(ops::isinf(top), top,
                    top + ops::log1p(ops::exp(gap * Tensor(-std::numbers::ln2))) / Tensor(std::numbers::ln2));
}
Tensor reciprocal(const Tensor& self) { return Tensor(1) / self; }
Tensor rsqrt(const Tensor& self) { return Tensor(1) / ops::sqrt(self); }
Tensor square(const Tensor& self) { return self * self; }
Tensor sgn(const Tensor& self) {
  if (!is_complex(self.dtype())) return ops::sign(self);
  return masked(self / ops::abs(self), ops::ne(self, Tensor(0)));
}
Tensor xlogy(const Tensor& self, const Tensor& other) {
  const Tensor value = ops::where(ops::eq(self, Tensor(0)), Tensor(0.0), self * ops::log(other));
  return ops::where(ops::ne(other, other), other, value);
}

Tensor ge(const Tensor& a, const Tensor& b) { return ops::le(b, a); }
Tensor gt(const Tensor& a, const Tensor& b) { return ops::lt(b, a); }
Tensor ne(const Tensor& a, const Tensor& b) { return ops::logical_not(ops::eq(a, b)); }
Tensor isnan(const Tensor& self) { return ops::ne(self, self); }
Tensor isinf(const Tensor& self) {
  if (is_complex(self.dtype())) return ops::logical_or(ops::isinf(ops::real(self)), ops::isinf(ops::imag(self)));
  return is_floating(self.dtype()) ? ops::eq(ops::abs(self), Tensor(INFINITY)) : ops::zeros_like(self, DType::Bool);
}
Tensor isfinite(const Tensor& self) { return ops::logical_not(ops::logical_or(ops::isnan(self), ops::isinf(self))); }
Tensor isposinf(const Tensor& self) {
  return is_floating(self.dtype()) ? ops::eq(self, Tensor(INFINITY)) : ops::zeros_like(self, DType::Bool);
}
Tensor isneginf(const Tensor& self) {
  return is_floating(self.dtype()) ? ops::eq(self, Tensor(-INFINITY)) : ops::zeros_like(self, DType::Bool);
}
Tensor isclose(const Tensor& self, const Tensor& other, double rtol, double atol, bool equal_nan) {
  const auto real_part = [](const Tensor& t) { return is_integral(t.dtype()) ? ops::to_dtype(t, DType::Float64) : t; };
  const Tensor a = real_part(self), b = real_part(other);
  const Tensor near = ops::le(ops::abs(a - b), Tensor(atol) + Tensor(rtol) * ops::abs(b));
  const Tensor close = ops::logical_or(ops::eq(a, b), ops::logical_and(near, ops::isfinite(b)));
  return equal_nan ? ops::logical_or(close, ops::logical_and(ops::isnan(a), ops::isnan(b))) : close;
}
Tensor logical_not(const Tensor& self) { return ops::eq(self, Tensor(0)); }
Tensor logical_and(const Tensor& a, const Tensor& b) {
  return ops::bitwise_and(ops::ne(a, Tensor(0)), ops::ne(b, Tensor(0)));
}
Tensor logical_or(const Tensor& a, const Tensor& b) {
  return ops::bitwise_or(ops::ne(a, Tensor(0)), ops::ne(b, Tensor(0)));
}
Tensor logical_xor(const Tensor& a, const Tensor& b) { return ops::ne(ops::ne(a, Tensor(0)), ops::ne(b, Tensor(0))); }
Tensor masked_fill(const Tensor& self, const Tensor& mask, const Tensor& value) {
  return ops::where(mask, ops::to_dtype(value, self.dtype()), self);
}

Tensor deg2rad(const Tensor& self) { return self * Tensor(kPi / 180); }
Tensor rad2deg(const Tensor& self) { return self * Tensor(180 / kPi); }
/// Only products with powers of two, which are exact whatever the device's logarithm is: each step halves what the
/// exponent may still be.
Two frexp(const Tensor& self) {
  const Tensor usual = ops::logical_and(ops::isfinite(self), ops::ne(self, Tensor(0)));
  const int widest = self.dtype() == DType::Float64 ? 9 : 6;
  Tensor mantissa = ops::where(usual, self, Tensor(0.5)), exponent = ops::zeros_like(mantissa);
  const auto scale = [&](const Tensor& where, int power) {
    mantissa = ops::where(where, mantissa * Tensor(std::ldexp(1.0, -power)), mantissa);
    exponent = exponent + ops::where(where, Tensor(double(power)), Tensor(0.0));
  };
  for (int k = widest; k >= 0; --k) scale(ops::ge(ops::abs(mantissa), Tensor(std::ldexp(1.0, 1 << k))), 1 << k);
  scale(ops::ge(ops::abs(mantissa), Tensor(1.0)), 1);
  // Numbers below the normal ones take the widest step twice.
  for (int k = widest; k >= 0; --k)
    for (int again = 0; again < (k == widest ? 2 : 1); ++again)
      scale(ops::lt(ops::abs(mantissa), Tensor(std::ldexp(1.0, -(1 << k)))), -(1 << k));
  return {ops::where(usual, mantissa, self), ops::to_dtype(ops::where(usual, exponent, Tensor(0.0)), DType::Int32)};
}
Tensor frac(const Tensor& self) { return self - ops::trunc(self); }
Tensor logit(const Tensor& self, std::optional<double> eps) {
  const Tensor x = eps ? ops::clamp(self, Scalar(*eps), Scalar(1 - *eps)) : self;
  return ops::log(x / (Tensor(1) - x));
}
Tensor nan_to_num(const Tensor& self, std::optional<double> nan, std::optional<double> posinf,
                  std::optional<double> neginf) {
  if (is_integral(self.dtype())) return ops::clone(self);
  const double most =
      self.dtype() == DType::Float64 ? std::numeric_limits<double>::max() : double(std::numeric_limits<float>::max());
  const Tensor finite = ops::where(ops::isnan(self), Tensor(nan.value_or(0.0)), self);
  const Tensor below = ops::where(ops::eq(finite, Tensor(INFINITY)), Tensor(posinf.value_or(most)), finite);
  return ops::where(ops::eq(below, Tensor(-INFINITY)), Tensor(neginf.value_or(-most)), below);
}
Tensor sigmoid(const Tensor& self) {
  const Tensor x = is_integral(self.dtype()) ? ops::to_dtype(self, default_dtype()) : self;
  return Tensor(1) / (Tensor(1) + ops::exp(-x));
}
Tensor sinc(const Tensor& self) {
  const Tensor x = self * Tensor(kPi);
  return ops::where(ops::eq(self, Tensor(0)), Tensor(1.0), ops::sin(x) / x);
}

DECOMPOSE(addcdiv)
DECOMPOSE(addcmul)
DECOMPOSE(clamp)
DECOMPOSE(clamp_min)
DECOMPOSE(clamp_max)
DECOMPOSE(fmax)
DECOMPOSE(fmin)
DECOMPOSE(heaviside)
DECOMPOSE(lcm)
DECOMPOSE(lerp)
DECOMPOSE(logaddexp)
DECOMPOSE(logaddexp2)
DECOMPOSE(reciprocal)
DECOMPOSE(rsqrt)
DECOMPOSE(square)
DECOMPOSE(sgn)
DECOMPOSE(xlogy)
DECOMPOSE(ge)
DECOMPOSE(gt)
DECOMPOSE(ne)
DECOMPOSE(isnan)
DECOMPOSE(isinf)
DECOMPOSE(isfinite)
DECOMPOSE(isposinf)
DECOMPOSE(isneginf)
DECOMPOSE(isclose)
DECOMPOSE(logical_not)
DECOMPOSE(logical_and)
DECOMPOSE(logical_or)
DECOMPOSE(logical_xor)
DECOMPOSE(masked_fill)
DECOMPOSE(deg2rad)
DECOMPOSE(rad2deg)
DECOMPOSE(frac)
DECOMPOSE(frexp)
DECOMPOSE(logit)
DECOMPOSE(nan_to_num)
DECOMPOSE(sigmoid)
DECOMPOSE(sinc)

}  // namespace
}  // namespace taeda::decompose
