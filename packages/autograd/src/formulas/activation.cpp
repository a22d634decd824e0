// Gradients of activation functions; see Note [Second derivatives].
#include <numbers>

#include "taeda/autograd/formulas.h"

namespace taeda::formulas {
namespace {

/// 1 inside (low, high), else 0, in the dtype of `x`.
Tensor between(const Tensor& x, const Scalar& low, const Scalar& high) { return ops::logical_and(ops::gt(x, low), ops::lt(x, high)); }

/// Slope of 0.5 x (1 + erf(x / sqrt 2)), or of its tanh approximation.
Tensor gelu_slope(const Tensor& x, std::string_view approximate) {
  if (approximate == "none") {
    const Tensor density = ops::exp(-0.5 * x * x) * (0.5 * std::numbers::inv_sqrtpi * std::numbers::sqrt2);
    return 0.5 * (1 + ops::erf(x * (0.5 * std::numbers::sqrt2))) + x * density;
  }
  const double a = std::numbers::sqrt2 * std::numbers::inv_sqrtpi * 1.0, b = 0.044715;
  const Tensor t = ops::tanh(a * (x + b * x * x * x));
  return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * a * (1 + 3 * b * x * x);
}

}  // namespace

Tensor relu_grad(const Tensor& grad, const Tensor& result) {
  return recording() ? masked(grad, ops::logical_not(ops::le(result, 0))) : ops::threshold_backward(grad, result, 0);
}

Tensor threshold_grad(const Tensor& grad, const Tensor& self, const Scalar& threshold) {
  return recording() ? masked(grad, ops::logical_not(ops::le(self, threshold))) : ops::threshold_backward(grad, self, threshold);
}

Tensor elu_grad(const Tensor& grad, const Tensor& self, const Scalar& alpha, const Scalar& scale, const Scalar& input_scale) {
  if (!recording()) return ops::elu_backward(grad, self, alpha, scale, input_scale);
  // 0 itself is a constant here: the second derivative is 0 there, not exp's.
  const Tensor negative = ops::where(ops::ge(self, 0), Tensor(0), self);
  return grad * ops::where(ops::gt(self, 0), Tensor(scale), ops::exp(negative * input_scale) * alpha * scale * input_scale);
}

Tensor gelu_grad(const Tensor& grad, const Tensor& self, std::string_view approximate) {
  return recording() ? grad * gelu_slope(self, approximate) : ops::gelu_backward(grad, self, approximate);
}

Tensor hardsigmoid_grad(const Tensor& grad, const Tensor& self) {
  return recording() ? masked(grad / 6, between(self, -3, 3)) : ops::hardsigmoid_backward(grad, self);
}

Tensor hardswish_grad(const Tensor& grad, const Tensor& self) {
  if (!recording()) return ops::hardswish_backward(grad, self);
  return grad * ops::where(ops::lt(self, -3), Tensor(0), ops::where(ops::le(self, 3), self / 3 + 0.5, Tensor(1)));
}

Tensor hardtanh_grad(const Tensor& grad, const Tensor& self, const Scalar& low, const Scalar& high) {
  return recording() ? masked(grad, between(self, low, high)) : ops::hardtanh_backward(grad, self, low, high);
}

Tensor leaky_relu_grad(const Tensor& grad, const Tensor& self, const Scalar& slope) {
  return recording() ? ops::where(ops::gt(self, 0), grad, grad * slope) : ops::leaky_relu_backward(grad, self, slope);
}

Tensor logsigmoid_grad(const Tensor& grad, const Tensor& self) {
  return recording() ? grad * ops::sigmoid(-self) : ops::logsigmoid_backward(grad, self);
}

Tensor mish_grad(const Tensor& grad, const Tensor& self) {
  if (!recording()) return ops::mish_backward(grad, self);
  const Tensor t = ops::tanh(ops::softplus(self));
  return grad * (t + self * (1 - t * t) * ops::sigmoid(self));
}

Tensor shrink_grad(const Tensor& grad, const Tensor& self, const Scalar& lambd) {
  return recording() ? masked(grad, ops::gt(ops::abs(self), lambd)) : ops::shrink_backward(grad, self, lambd);
}

Tensor silu_grad(const Tensor& grad, const Tensor& self) {
  if (!recording()) return ops::silu_backward(grad, self);
  const Tensor s = ops::sigmoid(self);
  return grad * (s * (1 + self * (1 - s)));
}

Tensor softplus_grad(const Tensor& grad, const Tensor& self, const Scalar& beta, const Scalar& threshold) {
  if (!recording()) return ops::softplus_backward(grad, self, beta, threshold);
  const Tensor scaled_self = self * beta;
  return ops::where(ops::gt(scaled_self, threshold), grad, grad * ops::sigmoid(scaled_self));
}

Tensor softmax_grad(const Tensor& grad, const Tensor& result, int64_t dim) {
  if (!recording()) return ops::softmax_backward(grad, result, dim);
  const Tensor weighted = grad * result;
  return weighted - result * ops::sum(weighted, IntSpan(&dim, 1), true);
}

Tensor log_softmax_grad(const Tensor& grad, const Tensor& result, int64_t dim) {
  if (!recording()) return ops::log_softmax_backward(grad, result, dim);
  return grad - ops::exp(result) * ops::sum(grad, IntSpan(&dim, 1), true);
}

Tensor dropout_grad(const Tensor& grad, const Tensor& mask, double p) {
  const double scale = p < 1 ? 1 / (1 - p) : 0;
  return recording() ? grad * mask * scale : ops::native_dropout_backward(grad, mask, scale);
}

}  // namespace taeda::formulas
