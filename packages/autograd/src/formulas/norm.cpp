// Gradients of normalisation: the `*_backward` operators, which take the statistics as numbers of their own.
#include "taeda/autograd/formulas.h"

namespace taeda::formulas {
namespace {

/// Saved statistics; while gradients are recorded they depend on x again, shaped as the saved ones.
struct Statistics {
  Tensor mean, rstd;
  Statistics(const Tensor& x, IntSpan dims, double eps, const Tensor& saved_mean, const Tensor& saved_rstd)
      : mean(saved_mean), rstd(saved_rstd) {
    if (!recording()) return;
    const Tensor m = ops::mean(x, dims, true), centred = x - m;
    const Tensor r = ops::rsqrt(ops::mean(centred * centred, dims, true) + eps);
    mean = with_history(saved_mean, ops::reshape(m, saved_mean.sizes()));
    rstd = with_history(saved_rstd, ops::reshape(r, saved_rstd.sizes()));
  }
};

}  // namespace

Three batch_norm_grads(const Tensor& grad, const Tensor& input, const Tensor& weight, const Tensor& mean,
                       const Tensor& invstd, bool training, double eps, const std::array<bool, 3>& wanted) {
  if (!training) return ops::batch_norm_backward(grad, input, weight, mean, invstd, training, mask_bits(wanted));
  Shape dims{0};
  for (int64_t d = 2; d < input.dim(); ++d) dims.push_back(d);
  const Statistics s(input, dims, eps, mean, invstd);
  return ops::batch_norm_backward(grad, input, weight, s.mean, s.rstd, training, mask_bits(wanted));
}

Three layer_norm_grads(const Tensor& grad, const Tensor& input, IntSpan normalized_shape, const Tensor& mean,
                       const Tensor& rstd, const Tensor& weight, double eps, const std::array<bool, 3>& wanted) {
  Shape dims;
  for (size_t i = 0; i < normalized_shape.size(); ++i)
    dims.push_back(input.dim() - int64_t(normalized_shape.size() - i));
  const Statistics s(input, dims, eps, mean, rstd);
  return ops::layer_norm_backward(grad, input, normalized_shape, s.mean, s.rstd, weight, mask_bits(wanted));
}

Three group_norm_grads(const Tensor& grad, const Tensor& input, int64_t groups, const Tensor& mean, const Tensor& rstd,
                       const Tensor& weight, double eps, const std::array<bool, 3>& wanted) {
  // Counted, because -1 says nothing about an empty batch.
  const int64_t size = input.size(1) / groups * product(input.sizes().subspan(2)), last = 2;
  const Tensor grouped = recording() ? ops::reshape(input, Shape{input.size(0), groups, size}) : input;
  const Statistics s(grouped, IntSpan(&last, 1), eps, mean, rstd);
  return ops::group_norm_backward(grad, input, groups, s.mean, s.rstd, weight, mask_bits(wanted));
}

}  // namespace taeda::formulas
