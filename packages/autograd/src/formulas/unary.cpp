// Gradients of mathematical functions.
#include <limits>
#include <numbers>

#include "taeda/autograd/formulas.h"

namespace taeda::formulas {

Tensor acosh_grad(const Tensor& grad, const Tensor& self) {
  // One root for two only where both are of one sign, or there are none.
  return is_complex(self.dtype()) ? grad * conj_of(ops::rsqrt(self - 1) * ops::rsqrt(self + 1))
                                  : grad * ops::rsqrt(self * self - 1);
}

Tensor angle_grad(const Tensor& grad, const Tensor& self) {
  if (!is_complex(self.dtype())) return ops::zeros_like(grad);
  // d angle = (x dy - y dx) / |z|^2
  const Tensor x = ops::real(self), y = ops::imag(self), square = x * x + y * y;
  const Tensor scale = masked(grad / square, ops::ne(square, 0));
  return ops::complex(-y * scale, x * scale);
}

Tensor atan2_grad(const Tensor& grad, const Tensor& factor, const Tensor& a, const Tensor& b) {
  const Tensor square = a * a + b * b;
  return grad * masked(factor / square, ops::ne(square, 0));
}

Tensor i1_grad(const Tensor& grad, const Tensor& self, const Tensor& result) {
  const Tensor zero = ops::eq(self, 0), safe = ops::where(zero, Tensor(1), self);
  return grad * ops::where(zero, Tensor(0.5), ops::i0(self) - result / safe);
}

Tensor i1e_grad(const Tensor& grad, const Tensor& self, const Tensor& result) {
  const Tensor zero = ops::eq(self, 0), safe = ops::where(zero, Tensor(1), self);
  return grad * ops::where(zero, Tensor(0.5), ops::i0e(self) - result * (ops::sgn(self) + ops::reciprocal(safe)));
}

Tensor logit_grad(const Tensor& grad, const Tensor& self, std::optional<double> eps) {
  const Tensor spread = self * (1 - self), slope = grad / spread;  // negative outside of 0 to 1
  if (!eps) return ops::where(ops::lt(spread, 0), Tensor(std::numeric_limits<double>::quiet_NaN()), slope);
  return masked(slope, ops::logical_and(ops::ge(self, *eps), ops::le(self, 1.0 - *eps)));
}

Tensor sinc_grad(const Tensor& grad, const Tensor& self) {
  const double pi = std::numbers::pi;
  // Near zero the difference cancels and the square vanishes; there the series of sin t / t, t = pi x, is exact enough.
  const Tensor near = ops::lt(ops::abs(self), 0.03), x = ops::where(near, Tensor(1), self);
  const Tensor slope = (ops::cos(pi * x) * pi * x - ops::sin(pi * x)) / (pi * x * x);
  const Tensor t = pi * ops::where(near, self, Tensor(0)), w = t * t;
  const Tensor series = pi * t * (((w / 45360 - 1.0 / 840) * w + 1.0 / 30) * w - 1.0 / 3);
  return grad * conj_of(ops::where(near, series, slope));
}

Tensor trigamma(const Tensor& x) {
  const double pi = std::numbers::pi;
  const Tensor low = ops::lt(x, 0.5);
  // Up by recurrence to where the asymptotic series holds; below one half by reflection.
  Tensor y = ops::where(low, 1 - x, x), sum;
  for (int k = 0; k < 8; ++k, y = y + 1) sum = plus(sum, ops::reciprocal(y * y));
  const Tensor v = ops::reciprocal(y), w = v * v;
  Tensor series = 7.0 / 6 * w - 691.0 / 2730;
  for (const double coefficient : {5.0 / 66, -1.0 / 30, 1.0 / 42, -1.0 / 30, 1.0 / 6})
    series = series * w + coefficient;
  const Tensor upper = sum + v + 0.5 * w + v * w * series;
  const Tensor s = ops::sin(pi * ops::where(low, x, Tensor(0.5)));
  return ops::where(low, pi * pi / (s * s) - upper, upper);
}

}  // namespace taeda::formulas
