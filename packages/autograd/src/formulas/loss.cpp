// Gradients of losses that are no operators of their own.
#include "taeda/autograd/formulas.h"

namespace taeda::formulas {
namespace {

/// reduction: 0 none, 1 mean, 2 sum. The mean's gradient is divided among all elements.
Tensor per_element(const Tensor& grad, const Tensor& slope, int64_t reduction) {
  const Tensor weighted = grad * slope;
  return reduction == 1 ? weighted / double(slope.numel()) : weighted;
}

}  // namespace

Two opposite(const Tensor& grad, const std::array<bool, 2>& wanted) {
  return {wanted[0] ? grad : Tensor(), wanted[1] ? -grad : Tensor()};
}

Tensor bce_target_grad(const Tensor& grad, const Tensor& input, int64_t reduction) {
  return per_element(grad, ops::clamp_min(ops::log1p(-input), -100) - ops::clamp_min(ops::log(input), -100), reduction);
}

Tensor bce_logits_target_grad(const Tensor& grad, const Tensor& input, int64_t reduction) {
  return per_element(grad, -input, reduction);
}

Tensor cross_entropy_grad(const Tensor& grad, const Tensor& input, const Tensor& target, const Tensor& weight,
                          int64_t reduction, int64_t ignore_index, double label_smoothing, const Tensor& log_sum_exp,
                          const Tensor& total_weight) {
  const int64_t dim = input.dim() == 1 ? 0 : 1;
  const Tensor sums = recording() ? with_history(log_sum_exp, ops::logsumexp(input, IntSpan(&dim, 1))) : log_sum_exp;
  return ops::cross_entropy_backward(grad, input, target, weight, reduction, ignore_index, label_smoothing, sums,
                                     total_weight);
}

}  // namespace taeda::formulas
