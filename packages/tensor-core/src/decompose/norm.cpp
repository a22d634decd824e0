// Normalisation and its gradients.
#include <algorithm>
#include <limits>

#include "decompose/common.h"
#include "infer/norm.h"
#include "taeda/wrappers.h"

namespace taeda::decompose {
namespace {

Shape all_but_channel(int64_t ndim) {
  Shape dims{0};
  for (int64_t d = 2; d < ndim; ++d) dims.push_back(d);
  return dims;
}
Shape last(int64_t ndim, size_t count) {
  Shape dims;
  for (int64_t d = ndim - int64_t(count); d < ndim; ++d) dims.push_back(d);
  return dims;
}
Tensor scaled(Tensor x, const Tensor& weight, const Tensor& bias) {
  if (weight.defined()) x = x * weight;
  return bias.defined() ? x + bias : x;
}
struct Statistics {
  Tensor mean, variance, inverse;
  Statistics(const Tensor& x, const Shape& dims, double eps)
      : mean(ops::mean(x, IntSpan(dims), true)),
        variance(ops::mean((x - mean) * (x - mean), IntSpan(dims), true)),
        inverse(ops::rsqrt(variance + Tensor(eps))) {}
};
/// Gradient of (x - mean) * inverse where both are statistics of x over `dims`.
Tensor slope(const Tensor& g, const Tensor& xhat, const Tensor& inverse, const Shape& dims) {
  return inverse * (g - ops::mean(g, IntSpan(dims), true) - xhat * ops::mean(g * xhat, IntSpan(dims), true));
}
Tensor flat(const Tensor& t) { return ops::reshape(t, Shape{-1}); }
/// Bits 1, 2 and 4 of the mask ask for the gradients of input, weight and bias.
template <class Input, class Weight, class Bias>
Three chosen(int64_t mask, const Input& input, const Weight& weight, const Bias& bias) {
  return {mask & 1 ? input() : Tensor(), mask & 2 ? weight() : Tensor(), mask & 4 ? bias() : Tensor()};
}

void blend(const Tensor& running, const Tensor& now, double momentum) {
  if (running.defined()) ops::copy_(running, running * Tensor(1 - momentum) + flat(now) * Tensor(momentum));
}
Three native_batch_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& running_mean,
                        const Tensor& running_var, bool training, double momentum, double eps) {
  const int64_t n = x.dim();
  const Tensor w = weight.defined() ? by_channel(weight, n) : weight, b = bias.defined() ? by_channel(bias, n) : bias;
  if (!training && running_mean.defined()) {
    const Tensor inverse = ops::rsqrt(running_var + Tensor(eps));
    return {scaled((x - by_channel(running_mean, n)) * by_channel(inverse, n), w, b), running_mean, inverse};
  }
  const Statistics s(x, all_but_channel(n), eps);
  const double count = double(x.numel()) / double(x.size(1));
  if (x.numel() > 0) {  // nothing is to be learned from an empty batch
    blend(running_mean, s.mean, momentum);
    blend(running_var, s.variance * Tensor(count / (count - 1)), momentum);
  }
  return {scaled((x - s.mean) * s.inverse, w, b), flat(s.mean), flat(s.inverse)};
}
Three batch_norm_backward(const Tensor& grad, const Tensor& x, const Tensor& weight, const Tensor& mean,
                          const Tensor& inverse, bool training, int64_t mask) {
  const int64_t n = x.dim();
  const Shape dims = all_but_channel(n);
  const Tensor i = by_channel(inverse, n), xhat = (x - by_channel(mean, n)) * i;
  const Tensor g = weight.defined() ? grad * by_channel(weight, n) : grad;
  return chosen(
      mask, [&] { return training ? slope(g, xhat, i, dims) : g * i; },
      [&] { return ops::sum(grad * xhat, IntSpan(dims)); }, [&] { return ops::sum(grad, IntSpan(dims)); });
}

Three native_layer_norm(const Tensor& x, IntSpan shape, const Tensor& weight, const Tensor& bias, double eps) {
  if (product(shape) == 0) {
    Shape rows(x.sizes());
    std::fill(rows.end() - int64_t(shape.size()), rows.end(), 1);
    const Tensor mean = ops::zeros(rows, x.dtype(), stated_device(x));
    return {ops::zeros_like(x), mean, ops::full_like(mean, std::numeric_limits<double>::quiet_NaN())};
  }
  const Statistics s(x, last(x.dim(), shape.size()), eps);
  return {scaled((x - s.mean) * s.inverse, weight, bias), s.mean, s.inverse};
}
Three layer_norm_backward(const Tensor& grad, const Tensor& x, IntSpan shape, const Tensor& mean, const Tensor& inverse,
                          const Tensor& weight, int64_t mask) {
  const Tensor xhat = (x - mean) * inverse, g = weight.defined() ? grad * weight : grad;
  Shape rows{-1};
  for (int64_t s : shape) rows.push_back(s);
  const auto over_rows = [&](const Tensor& t) { return ops::sum(ops::reshape(t, rows), Shape{0}); };
  const auto none = [&] { return ops::zeros(shape, x.dtype(), stated_device(x)); };
  if (product(shape) == 0) return chosen(mask, [&] { return ops::zeros_like(x); }, none, none);
  return chosen(
      mask, [&] { return slope(g, xhat, inverse, last(x.dim(), shape.size())); },
      [&] { return over_rows(grad * xhat); }, [&] { return over_rows(grad); });
}

/// (N, groups, elements of one group): counted, because -1 says nothing about an empty batch.
Shape in_groups(const Tensor& x, int64_t groups) {
  return Shape{x.size(0), groups, x.size(1) / groups * product(x.sizes().subspan(2))};
}
Three native_group_norm(const Tensor& x, int64_t groups, const Tensor& weight, const Tensor& bias, double eps) {
  const Tensor grouped = ops::reshape(x, in_groups(x, groups));
  const Statistics s(grouped, Shape{2}, eps);
  const Tensor w = weight.defined() ? by_channel(weight, x.dim()) : weight,
               b = bias.defined() ? by_channel(bias, x.dim()) : bias;
  const Shape each{x.size(0), groups};
  return {scaled(ops::reshape((grouped - s.mean) * s.inverse, x.sizes()), w, b), ops::reshape(s.mean, each),
          ops::reshape(s.inverse, each)};
}
Three group_norm_backward(const Tensor& grad, const Tensor& x, int64_t groups, const Tensor& mean,
                          const Tensor& inverse, const Tensor& weight, int64_t mask) {
  infer::group_norm_backward(grad, x, groups, mean, inverse, weight);
  const Shape grouped = in_groups(x, groups), dims = all_but_channel(x.dim());
  const Tensor i = ops::unsqueeze(inverse, 2), xhat = (ops::reshape(x, grouped) - ops::unsqueeze(mean, 2)) * i;
  const Shape planes{x.size(0), x.size(1), product(x.sizes().subspan(2))},
      channels{x.size(0), groups, x.size(1) / groups};
  // Weights are the same for all of a channel: they multiply its sums, as an infinite one leaves a sum of both signs
  // infinite.
  const auto mean_of = [&](const Tensor& t) {
    const Tensor sums = ops::sum(ops::reshape(t, planes), Shape{2});
    return ops::sum(ops::reshape(weight.defined() ? sums * weight : sums, channels), Shape{2}, true) /
           Tensor(grouped[2]);
  };
  return chosen(
      mask,
      [&] {
        const Tensor g = ops::reshape(weight.defined() ? grad * by_channel(weight, x.dim()) : grad, grouped);
        const Tensor products = ops::reshape(grad, grouped) * xhat;
        return ops::reshape(i * (g - mean_of(grad) - xhat * mean_of(products)), x.sizes());
      },
      [&] { return ops::sum(grad * ops::reshape(xhat, x.sizes()), IntSpan(dims)); },
      [&] { return ops::sum(grad, IntSpan(dims)); });
}

DECOMPOSE(native_batch_norm)
DECOMPOSE(batch_norm_backward)
DECOMPOSE(native_layer_norm)
DECOMPOSE(layer_norm_backward)
DECOMPOSE(native_group_norm)
DECOMPOSE(group_norm_backward)

}  // namespace
}  // namespace taeda::decompose
