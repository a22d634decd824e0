// Activations, softmax and dropout, with their gradients.
#include <array>
#include <cmath>
#include <numbers>

#include "decompose/common.h"
#include "taeda/wrappers.h"

namespace taeda::decompose {
namespace {

Tensor softplus_of(const Tensor& x) { return ops::clamp_min(x, Tensor(0)) + ops::log1p(ops::exp(-ops::abs(x))); }
/// The same where it is to be differentiated: smooth at 0 too.
Tensor smooth_softplus(const Tensor& x) { return ops::softplus(x, 1, 50); }
Tensor within(const Tensor& x, double bound) { return ops::le(ops::abs(x), Tensor(bound)); }
constexpr double kCubic = 0.044715;
const double kScale = std::sqrt(2 / std::numbers::pi);

Tensor elu(const Tensor& x, const Scalar& alpha, const Scalar& scale, const Scalar& input_scale) {
  return ops::where(ops::gt(x, Tensor(0)), x * scale, ops::expm1(x * input_scale) * alpha * scale);
}
Tensor elu_backward(const Tensor& grad, const Tensor& x, const Scalar& alpha, const Scalar& scale,
                    const Scalar& input_scale) {
  // Other elements are kept out of the exponential; 0 itself is a constant in it, as the second derivative is 0 there.
  const Tensor negative = ops::where(ops::ge(x, Tensor(0)), Tensor(0), x);
  const Tensor slope = ops::exp(negative * input_scale) * alpha * scale * input_scale;
  return grad * ops::where(ops::gt(x, Tensor(0)), Tensor(scale), slope);
}
Tensor gelu(const Tensor& x, std::string_view approximate) {
  if (approximate == "tanh")
    return x * Tensor(0.5) * (Tensor(1) + ops::tanh((x + x * x * x * Tensor(kCubic)) * Tensor(kScale)));
  return x * Tensor(0.5) * ops::erfc(x * Tensor(-1 / std::numbers::sqrt2));
}
Tensor gelu_backward(const Tensor& grad, const Tensor& x, std::string_view approximate) {
  if (approximate == "tanh") {
    const Tensor t = ops::tanh((x + x * x * x * Tensor(kCubic)) * Tensor(kScale));
    const Tensor inner = (Tensor(1) + x * x * Tensor(3 * kCubic)) * Tensor(kScale);
    return grad * Tensor(0.5) * (Tensor(1) + t + x * (Tensor(1) - t * t) * inner);
  }
  const Tensor density = ops::exp(x * x * Tensor(-0.5)) * Tensor(1 / std::sqrt(2 * std::numbers::pi));
  return grad * (ops::erfc(x * Tensor(-1 / std::numbers::sqrt2)) * Tensor(0.5) + x * density);
}
Tensor glu(const Tensor& x, int64_t dim) {
  const int64_t half = x.size(dim) / 2;
  return ops::narrow(x, dim, 0, half) * ops::sigmoid(ops::narrow(x, dim, half, half));
}
Tensor glu_backward(const Tensor& grad, const Tensor& x, int64_t dim) {
  dim = wrap_dim(dim, infer::glu_backward(grad, x, dim).sizes.size(), "glu_backward");  // is run above inference too
  const int64_t half = x.size(dim) / 2;
  const Tensor value = ops::narrow(x, dim, 0, half), gate = ops::narrow(x, dim, half, half), s = ops::sigmoid(gate);
  const Tensor slope = value * s * ops::sigmoid(-gate);
  return ops::cat(std::array{grad * conj_of(s), grad * conj_of(slope)}, dim);
}
Tensor hardshrink(const Tensor& x, const Scalar& lambd) {
  return ops::where(within(x, lambd.to_double()), Tensor(0), x);
}
Tensor softshrink(const Tensor& x, const Scalar& lambd) {
  return ops::where(within(x, lambd.to_double()), Tensor(0), x - ops::sign(x) * lambd);
}
Tensor shrink_backward(const Tensor& grad, const Tensor& x, const Scalar& lambd) {
  return masked(grad, ops::gt(ops::abs(x), Tensor(lambd)));
}
Tensor hardsigmoid(const Tensor& x) { return ops::clamp(x / Tensor(6) + Tensor(0.5), Scalar(0), Scalar(1)); }
Tensor hardsigmoid_backward(const Tensor& grad, const Tensor& x) {
  return masked(grad / Tensor(6), ops::lt(ops::abs(x), Tensor(3)));
}
Tensor hardswish(const Tensor& x) { return x * ops::clamp(x + Tensor(3), Scalar(0), Scalar(6)) / Tensor(6); }
Tensor hardswish_backward(const Tensor& grad, const Tensor& x) {
  const Tensor slope = ops::where(ops::ge(x, Tensor(3)), Tensor(1.0), x / Tensor(3) + Tensor(0.5));
  return grad * ops::where(ops::le(x, Tensor(-3)), Tensor(0.0), slope);
}
Tensor hardtanh(const Tensor& x, const Scalar& low, const Scalar& high) { return ops::clamp(x, low, high); }
Tensor hardtanh_backward(const Tensor& grad, const Tensor& x, const Scalar& low, const Scalar& high) {
  return masked(grad, ops::logical_and(ops::gt(x, Tensor(low)), ops::lt(x, Tensor(high))));
}
Tensor leaky_relu(const Tensor& x, const Scalar& slope) { return ops::where(ops::gt(x, Tensor(0)), x, x * slope); }
Tensor leaky_relu_backward(const Tensor& grad, const Tensor& x, const Scalar& slope) {
  return ops::where(ops::gt(x, Tensor(0)), grad, grad * slope);
}
Tensor logsigmoid(const Tensor& x) { return -softplus_of(-x); }
Tensor logsigmoid_backward(const Tensor& grad, const Tensor& x) { return grad * ops::sigmoid(-x); }
Tensor mish(const Tensor& x) { return x * ops::tanh(softplus_of(x)); }
Tensor mish_backward(const Tensor& grad, const Tensor& x) {
  const Tensor t = ops::tanh(smooth_softplus(x));
  return grad * (t + x * ops::sigmoid(x) * (Tensor(1) - t * t));
}
Tensor prelu_forward(const Tensor& x, const Tensor& weight) { return ops::where(ops::gt(x, Tensor(0)), x, x * weight); }
Tensor relu(const Tensor& x) { return ops::clamp_min(x, Tensor(0)); }
Tensor sigmoid_backward(const Tensor& grad, const Tensor& y) { return grad * conj_of(y * (Tensor(1) - y)); }
Tensor tanh_backward(const Tensor& grad, const Tensor& y) { return grad * conj_of(Tensor(1) - y * y); }
Tensor silu(const Tensor& x) { return x * ops::sigmoid(x); }
Tensor silu_backward(const Tensor& grad, const Tensor& x) {
  const Tensor s = ops::sigmoid(x);
  return grad * s * (Tensor(1) + x * (Tensor(1) - s));
}
Tensor softplus(const Tensor& x, const Scalar& beta, const Scalar& threshold) {
  const Tensor scaled = x * beta;
  return ops::where(ops::gt(scaled, Tensor(threshold)), x, softplus_of(scaled) / Tensor(beta));
}
Tensor softplus_backward(const Tensor& grad, const Tensor& x, const Scalar& beta, const Scalar& threshold) {
  // At the threshold itself the slope is still the curve's, but it no longer changes.
  const Tensor scaled = x * beta, curved = ops::where(ops::ge(scaled, Tensor(threshold)), Tensor(threshold), scaled);
  return ops::where(ops::gt(scaled, Tensor(threshold)), grad, grad * ops::sigmoid(curved));
}
Tensor threshold(const Tensor& x, const Scalar& threshold, const Scalar& value) {
  return ops::where(ops::le(x, Tensor(threshold)), ops::full_like(x, value), x);
}
Tensor threshold_backward(const Tensor& grad, const Tensor& x, const Scalar& threshold) {
  return ops::where(ops::le(x, Tensor(threshold)), Tensor(0), grad);
}

Tensor softmax(const Tensor& self, int64_t dim, std::optional<DType> dtype) {
  const Tensor x = dtype ? ops::to_dtype(self, *dtype) : self;
  const Tensor e = ops::exp(x - ops::amax(x, Shape{dim}, true));
  return e / ops::sum(e, Shape{dim}, true);
}
Tensor log_softmax(const Tensor& self, int64_t dim, std::optional<DType> dtype) {
  const Tensor x = dtype ? ops::to_dtype(self, *dtype) : self, shifted = x - ops::amax(x, Shape{dim}, true);
  return shifted - ops::log(ops::sum(ops::exp(shifted), Shape{dim}, true));
}
Tensor softmax_backward(const Tensor& grad, const Tensor& y, int64_t dim) {
  return y * (grad - ops::sum(grad * y, Shape{dim}, true));
}
Tensor log_softmax_backward(const Tensor& grad, const Tensor& y, int64_t dim) {
  return grad - ops::exp(y) * ops::sum(grad, Shape{dim}, true);
}

Two native_dropout(const Tensor& x, double p, const Generator& generator) {
  const Tensor draws = empty(x.sizes(), DType::Float32, stated_device(x));
  ops::uniform_(draws, 0, 1, generator);
  const Tensor kept = ops::ge(draws, Tensor(p));
  return {p < 1 ? masked(x * Tensor(1 / (1 - p)), kept) : ops::zeros_like(x), kept};
}
Tensor native_dropout_backward(const Tensor& grad, const Tensor& mask, double scale) {
  return grad * mask * Tensor(scale);
}

DECOMPOSE(elu)
DECOMPOSE(elu_backward)
DECOMPOSE(gelu)
DECOMPOSE(gelu_backward)
DECOMPOSE(glu)
DECOMPOSE(glu_backward)
DECOMPOSE(hardshrink)
DECOMPOSE(softshrink)
DECOMPOSE(shrink_backward)
DECOMPOSE(hardsigmoid)
DECOMPOSE(hardsigmoid_backward)
DECOMPOSE(hardswish)
DECOMPOSE(hardswish_backward)
DECOMPOSE(hardtanh)
DECOMPOSE(hardtanh_backward)
DECOMPOSE(leaky_relu)
DECOMPOSE(leaky_relu_backward)
DECOMPOSE(logsigmoid)
DECOMPOSE(logsigmoid_backward)
DECOMPOSE(mish)
DECOMPOSE(mish_backward)
DECOMPOSE(prelu_forward)
DECOMPOSE(relu)
DECOMPOSE(sigmoid_backward)
DECOMPOSE(tanh_backward)
DECOMPOSE(silu)
DECOMPOSE(silu_backward)
DECOMPOSE(softplus)
DECOMPOSE(softplus_backward)
DECOMPOSE(threshold)
DECOMPOSE(threshold_backward)
DECOMPOSE(softmax)
DECOMPOSE(log_softmax)
DECOMPOSE(softmax_backward)
DECOMPOSE(log_softmax_backward)
DECOMPOSE(native_dropout)
DECOMPOSE(native_dropout_backward)

}  // namespace
}  // namespace taeda::decompose
