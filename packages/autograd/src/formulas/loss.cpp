// Gradients of losses; see Note [Second derivatives].
#include "taeda/autograd/formulas.h"

namespace taeda::formulas {
namespace {

/// reduction: 0 none, 1 mean, 2 sum. The mean's gradient is divided among all elements.
Tensor per_element(const Tensor& grad, const Tensor& slope, int64_t reduction) {
  const Tensor weighted = grad * slope;
  return reduction == 1 ? weighted / double(slope.numel()) : weighted;
}

/// The losses below depend on input - target alone.
Two pair(Tensor g, const std::array<bool, 2>& wanted) { return {wanted[0] ? g : Tensor(), wanted[1] ? -g : Tensor()}; }

/// Rows of (N, C, ...) inputs are compared with class numbers (N, ...).
struct Classes {
  int64_t dim;
  Tensor kept;    // target is not ignored
  Tensor number;  // class numbers, 0 where ignored, with the class dimension
  Tensor weight;  // weight of each row, 0 where ignored
  Classes(const Tensor& input, const Tensor& target, const Tensor& class_weight, int64_t ignore_index) : dim(input.dim() == 1 ? 0 : 1) {
    const Tensor wide = ops::unsqueeze(target, dim);
    kept = ops::ne(wide, ignore_index);
    number = ops::where(kept, wide, Tensor(0));
    weight = ops::to_dtype(kept, input.dtype());
    if (class_weight.defined()) weight = weight * ops::reshape(ops::index_select(class_weight, 0, ops::reshape(number, Shape{-1})), number.sizes());
  }
};

/// Gradient of each row's loss: grad, divided by the total weight for the mean, with the class dimension.
Tensor per_row(const Tensor& grad, const Classes& rows, int64_t reduction, const Tensor& total) {
  if (reduction == 0) return ops::unsqueeze(grad, rows.dim);
  return reduction == 1 ? grad / total : grad;
}

}  // namespace

Two mse_grads(const Tensor& grad, const Tensor& input, const Tensor& target, int64_t reduction, const std::array<bool, 2>& wanted) {
  return pair(recording() ? per_element(grad, 2 * (input - target), reduction) : ops::mse_loss_backward(grad, input, target, reduction), wanted);
}

Two l1_grads(const Tensor& grad, const Tensor& input, const Tensor& target, int64_t reduction, const std::array<bool, 2>& wanted) {
  return pair(recording() ? per_element(grad, ops::sgn(input - target), reduction) : ops::l1_loss_backward(grad, input, target, reduction), wanted);
}

Two huber_grads(const Tensor& grad, const Tensor& input, const Tensor& target, int64_t reduction, double delta, const std::array<bool, 2>& wanted) {
  return pair(recording() ? per_element(grad, ops::clamp(input - target, -delta, delta), reduction)
                          : ops::huber_loss_backward(grad, input, target, reduction, delta), wanted);
}

Two smooth_l1_grads(const Tensor& grad, const Tensor& input, const Tensor& target, int64_t reduction, double beta, const std::array<bool, 2>& wanted) {
  if (!recording()) return pair(ops::smooth_l1_loss_backward(grad, input, target, reduction, beta), wanted);
  const Tensor d = input - target;
  return pair(per_element(grad, beta == 0 ? ops::sgn(d) : ops::clamp(d, -beta, beta) / beta, reduction), wanted);
}

Tensor bce_grad(const Tensor& grad, const Tensor& input, const Tensor& target, int64_t reduction) {
  if (!recording()) return ops::bce_loss_backward(grad, input, target, reduction);
  return per_element(grad, (input - target) / ops::clamp_min(input * (1 - input), 1e-12), reduction);
}

Tensor bce_target_grad(const Tensor& grad, const Tensor& input, const Tensor& target, int64_t reduction) {
  return per_element(grad, ops::clamp_min(ops::log1p(-input), -100) - ops::clamp_min(ops::log(input), -100), reduction);
}

Tensor bce_logits_grad(const Tensor& grad, const Tensor& input, const Tensor& target, int64_t reduction) {
  if (!recording()) return ops::bce_with_logits_loss_backward(grad, input, target, reduction);
  return per_element(grad, ops::sigmoid(input) - target, reduction);
}

Tensor bce_logits_target_grad(const Tensor& grad, const Tensor& input, const Tensor&, int64_t reduction) {
  return per_element(grad, -input, reduction);
}

Tensor nll_grad(const Tensor& grad, const Tensor& input, const Tensor& target, const Tensor& weight, int64_t reduction, int64_t ignore_index,
                const Tensor& total_weight) {
  if (!recording()) return ops::nll_loss_backward(grad, input, target, weight, reduction, ignore_index, total_weight);
  const Classes rows(input, target, weight, ignore_index);
  const Tensor g = -(per_row(grad, rows, reduction, total_weight) * rows.weight);
  return ops::scatter_add(ops::zeros_like(input), rows.dim, rows.number, g);
}

Tensor cross_entropy_grad(const Tensor& grad, const Tensor& input, const Tensor& target, const Tensor& weight, int64_t reduction, int64_t ignore_index,
                          double label_smoothing, const Tensor& log_sum_exp, const Tensor& total_weight) {
  if (!recording())
    return ops::cross_entropy_backward(grad, input, target, weight, reduction, ignore_index, label_smoothing, log_sum_exp, total_weight);
  const int64_t dim = input.dim() == 1 ? 0 : 1;
  Tensor wanted, outer;
  if (is_differentiable(target.dtype())) {  // probabilities for each class
    wanted = label_smoothing > 0 ? target * (1 - label_smoothing) + label_smoothing / double(input.size(dim)) : target;
    outer = reduction == 0 ? ops::unsqueeze(grad, dim) : reduction == 1 ? grad / total_weight : grad;
    if (weight.defined()) {
      Shape sizes(size_t(input.dim()), 1);
      sizes[size_t(dim)] = -1;
      wanted = wanted * ops::reshape(weight, sizes);
    }
  } else {
    const Classes rows(input, target, weight, ignore_index);
    const Tensor zeros = ops::detach(ops::zeros_like(input));
    wanted = ops::scatter_add(zeros, dim, rows.number, rows.weight) * (1 - label_smoothing);
    if (label_smoothing > 0) {
      Tensor smooth = ops::to_dtype(rows.kept, input.dtype()) * (label_smoothing / double(input.size(dim)));
      Shape sizes(size_t(input.dim()), 1);
      sizes[size_t(dim)] = -1;
      wanted = wanted + (weight.defined() ? smooth * ops::reshape(weight, sizes) : smooth);
    }
    outer = per_row(grad, rows, reduction, total_weight);
  }
  const Tensor mass = ops::sum(wanted, IntSpan(&dim, 1), true);
  return outer * (ops::softmax(input, dim) * mass - wanted);
}

}  // namespace taeda::formulas
