// Gradients of element-wise arithmetic.
#include "taeda/autograd/formulas.h"

namespace taeda::formulas {

Tensor clamp_grad(const Tensor& grad, const Tensor& self, const std::optional<Scalar>& min,
                  const std::optional<Scalar>& max) {
  Tensor inside;
  if (min) inside = ops::ge(self, *min);
  if (max) {
    const Tensor below = ops::le(self, *max);
    inside = inside.defined() ? ops::logical_and(inside, below) : below;
  }
  return inside.defined() ? masked(grad, inside) : grad;
}

Tensor copysign_grad(const Tensor& grad, const Tensor& self, const Tensor& result) {
  return grad * masked(result / self, ops::ne(self, 0));
}

Tensor winner_grad(const Tensor& grad, const Tensor& equal, const Tensor& loses) {
  return masked(ops::where(equal, grad / 2, grad), ops::logical_not(loses));
}

Tensor pow_grad_self(const Tensor& grad, const Tensor& self, const Tensor& exponent) {
  if (exponent.is_wrapped_number() && exponent.dtype() != DType::Complex128) {
    const double e = exponent.dtype() == DType::Float64 ? *exponent.data<double>()
                     : exponent.dtype() == DType::Int64 ? double(*exponent.data<int64_t>())
                                                        : 1.0;
    if (e == 0) return ops::zeros_like(grad);
    // While gradients are recorded a constant slope keeps its place in the graph: its derivatives are zeros, not
    // missing.
    if (e == 1 && !recording()) return grad;
    if (e == 2 && !recording()) return grad * (2 * conj_of(self));
    return grad * conj_of(e * ops::pow(self, Tensor(e - 1)));
  }
  const Tensor slope = conj_of(exponent * ops::pow(self, exponent - 1));
  return grad * ops::where(ops::eq(exponent, 0), Tensor(0), slope);
}

Tensor pow_grad_exponent(const Tensor& grad, const Tensor& self, const Tensor& exponent, const Tensor& result) {
  // 0 ** x has slope 0 for x >= 0, where log(0) would give NaN.
  Tensor flat = ops::eq(self, 0);
  if (!is_complex(exponent.dtype())) flat = ops::logical_and(flat, ops::ge(exponent, 0));
  // The one is a tensor of the result's dtype: were both numbers, the logarithm would be float32.
  const Tensor safe = ops::where(flat, ones_of(Shape{}, result), self);
  return grad * conj_of(ops::where(flat, Tensor(0), result * ops::log(safe)));
}

Tensor xlogy_grad_self(const Tensor& grad, const Tensor& self, const Tensor& other) {
  // At 0 the slope is the logarithm too, where there is one.
  return masked(ops::xlogy(grad, other), ops::logical_not(ops::logical_and(ops::eq(self, 0), ops::le(other, 0))));
}

Tensor sgn_grad(const Tensor& grad, const Tensor& self, const Tensor& result) {
  if (!is_complex(self.dtype())) return ops::zeros_like(grad);
  const Tensor size = ops::abs(self);
  const Tensor along = ops::real(grad * ops::conj(result)) * result;
  return ops::where(ops::eq(size, 0), Tensor(0), (grad - along) / size);
}

}  // namespace taeda::formulas
