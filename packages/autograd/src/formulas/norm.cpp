// Gradients of normalisation; see Note [Second derivatives].
#include "taeda/autograd/formulas.h"

namespace taeda::formulas {
namespace {

/// Gradient of normalising over `dims`: statistics are computed again, so that it is differentiable itself.
Tensor normalise_grad(const Tensor& g, const Tensor& xhat, const Tensor& rstd, IntSpan dims) {
  return rstd * (g - ops::mean(g, dims, true) - xhat * ops::mean(g * xhat, dims, true));
}

struct Normalised {
  Tensor xhat, rstd;
  Normalised(const Tensor& x, IntSpan dims, double eps) {
    const Tensor centred = x - ops::mean(x, dims, true);
    rstd = ops::rsqrt(ops::mean(centred * centred, dims, true) + eps);
    xhat = centred * rstd;
  }
};

/// A per-channel tensor shaped to broadcast against (N, C, ...).
Tensor by_channel(const Tensor& t, int64_t ndim) {
  Shape sizes(size_t(ndim), 1);
  sizes[1] = -1;
  return ops::reshape(t, sizes);
}

Shape all_but_channel(int64_t ndim) {
  Shape dims{0};
  for (int64_t d = 2; d < ndim; ++d) dims.push_back(d);
  return dims;
}

}  // namespace

Three batch_norm_grads(const Tensor& grad, const Tensor& input, const Tensor& weight, const Tensor& mean, const Tensor& invstd, bool training, double eps,
                       const std::array<bool, 3>& wanted) {
  if (!recording()) return ops::batch_norm_backward(grad, input, weight, mean, invstd, training, mask_bits(wanted));
  const int64_t n = input.dim();
  const Shape dims = all_but_channel(n);
  const Tensor g = weight.defined() ? grad * by_channel(weight, n) : grad;
  Three out;
  Tensor xhat, dx;
  if (training) {
    const Normalised x(input, dims, eps);
    xhat = x.xhat;
    dx = normalise_grad(g, xhat, x.rstd, dims);
  } else {
    xhat = (input - by_channel(mean, n)) * by_channel(invstd, n);
    dx = g * by_channel(invstd, n);
  }
  if (wanted[0]) std::get<0>(out) = dx;
  if (wanted[1]) std::get<1>(out) = ops::sum(grad * xhat, IntSpan(dims));
  if (wanted[2]) std::get<2>(out) = ops::sum(grad, IntSpan(dims));
  return out;
}

Three layer_norm_grads(const Tensor& grad, const Tensor& input, IntSpan normalized_shape, const Tensor& mean, const Tensor& rstd, const Tensor& weight,
                       double eps, const std::array<bool, 3>& wanted) {
  if (!recording()) return ops::layer_norm_backward(grad, input, normalized_shape, mean, rstd, weight, mask_bits(wanted));
  Shape dims;
  for (size_t i = 0; i < normalized_shape.size(); ++i) dims.push_back(input.dim() - int64_t(normalized_shape.size() - i));
  const Normalised x(input, dims, eps);
  Three out;
  if (wanted[0]) std::get<0>(out) = normalise_grad(weight.defined() ? grad * weight : grad, x.xhat, x.rstd, dims);
  if (wanted[1]) std::get<1>(out) = sum_to(grad * x.xhat, normalized_shape);
  if (wanted[2]) std::get<2>(out) = sum_to(grad, normalized_shape);
  return out;
}

Three group_norm_grads(const Tensor& grad, const Tensor& input, int64_t groups, const Tensor& mean, const Tensor& rstd, const Tensor& weight, double eps,
                       const std::array<bool, 3>& wanted) {
  if (!recording()) return ops::group_norm_backward(grad, input, groups, mean, rstd, weight, mask_bits(wanted));
  const int64_t n = input.dim();
  // Counted, because -1 says nothing about an empty batch.
  const int64_t size = input.size(1) / groups * product(input.sizes().subspan(2));
  const Shape grouped{input.size(0), groups, size}, dims{2}, channels = all_but_channel(n);
  const Normalised x(ops::reshape(input, grouped), dims, eps);
  const Tensor g = weight.defined() ? grad * by_channel(weight, n) : grad;
  Three out;
  if (wanted[0]) std::get<0>(out) = ops::reshape(normalise_grad(ops::reshape(g, grouped), x.xhat, x.rstd, dims), input.sizes());
  if (wanted[1]) std::get<1>(out) = ops::sum(grad * ops::reshape(x.xhat, input.sizes()), IntSpan(channels));
  if (wanted[2]) std::get<2>(out) = ops::sum(grad, IntSpan(channels));
  return out;
}

}  // namespace taeda::formulas
