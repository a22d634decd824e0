// Losses written in terms of others.
#include "taeda/ops/loss.h"

#include <algorithm>

#include "taeda/half.h"
#include "taeda/ops.h"

namespace taeda::impl {
namespace {

Tensor reduced(const char* op, const Tensor& loss, int64_t reduction) {
  check(reduction >= 0 && reduction <= 2, ErrorKind::Value, op,
        ": argument 'reduction' must be 0 (none), 1 (mean) or 2 (sum), got ", reduction);
  return reduction == 0 ? loss : reduction == 1 ? ops::mean(loss) : ops::sum(loss);
}

/// Target of class probabilities: -sum over classes of target * log_softmax(input) * weight.
Tensor soft_cross_entropy(const Tensor& input, const Tensor& target, const Tensor& weight, int64_t reduction,
                          double label_smoothing) {
  check(is_floating(target.dtype()), ErrorKind::Runtime, "cross_entropy_loss: argument 'target' has dtype ",
        name(target.dtype()), ", expected a floating dtype for class probabilities of the shape of 'input'");
  check(label_smoothing >= 0 && label_smoothing <= 1, ErrorKind::Runtime,
        "cross_entropy_loss: argument 'label_smoothing' must be between 0 and 1, got ", label_smoothing);
  if (any_half(input, target, weight)) {
    const Tensor operands[] = {input, target, weight};
    const Tensor loss = soft_cross_entropy(in_float32(input), in_float32(target), in_float32(weight), reduction, label_smoothing);
    return from_float32(loss, joint_dtype({operands}));
  }
  const int64_t dim = input.dim() > 1 ? 1 : 0;
  Tensor wanted = target;
  if (label_smoothing > 0)
    wanted = ops::add(ops::mul(target, Tensor(1.0 - label_smoothing)),
                      Tensor(label_smoothing / double(std::max<int64_t>(1, input.size(dim)))));
  Tensor terms = ops::mul(ops::log_softmax(input, dim), wanted);
  if (weight.defined()) {
    check(weight.dim() == 1 && weight.size(0) == input.size(dim), ErrorKind::Runtime,
          "cross_entropy_loss: argument 'weight' has shape ", shape_text(weight.sizes()), ", expected (",
          input.size(dim), ",), one for each class");
    Shape sizes(size_t(input.dim()), 1);
    sizes[size_t(dim)] = weight.size(0);
    terms = ops::mul(terms, ops::reshape(weight, sizes));
  }
  const Tensor losses = ops::neg(ops::sum(terms, Shape{dim}));
  if (reduction != 1) return reduced("cross_entropy_loss", losses, reduction);
  return ops::div(ops::sum(losses), Tensor(double(input.numel()) / double(std::max<int64_t>(1, input.size(dim)))));
}

}  // namespace

Tensor nll_loss(const Tensor& input, const Tensor& target, const Tensor& weight, int64_t reduction,
                int64_t ignore_index) {
  return std::get<0>(ops::nll_loss_forward(input, target, weight, reduction, ignore_index));
}

Tensor cross_entropy_loss(const Tensor& input, const Tensor& target, const Tensor& weight, int64_t reduction,
                          int64_t ignore_index, double label_smoothing) {
  if (input.dim() > 0 && std::ranges::equal(input.sizes(), target.sizes()))
    return soft_cross_entropy(input, target, weight, reduction, label_smoothing);
  return std::get<0>(ops::cross_entropy_forward(input, target, weight, reduction, ignore_index, label_smoothing));
}

Tensor binary_cross_entropy(const Tensor& input, const Tensor& target, const Tensor& weight, int64_t reduction) {
  if (!weight.defined()) return ops::bce_loss(input, target, reduction);
  return reduced("binary_cross_entropy", ops::mul(ops::bce_loss(input, target, 0), weight), reduction);
}

Tensor binary_cross_entropy_with_logits(const Tensor& self, const Tensor& target, const Tensor& weight,
                                        const Tensor& pos_weight, int64_t reduction) {
  if (!weight.defined() && !pos_weight.defined()) return ops::bce_with_logits_loss(self, target, reduction);
  Tensor loss;
  if (pos_weight.defined()) {
    check(std::ranges::equal(self.sizes(), target.sizes()), ErrorKind::Value,
          "binary_cross_entropy_with_logits: argument 'target' has shape ", shape_text(target.sizes()),
          ", expected that of 'self', ", shape_text(self.sizes()));
    // (1 - t) * x - (1 + (p - 1) * t) * logsigmoid(x)
    const Tensor factor = ops::add(ops::mul(ops::sub(pos_weight, Tensor(1)), target), Tensor(1));
    loss = ops::sub(ops::mul(ops::rsub(target, Tensor(1)), self), ops::mul(factor, ops::logsigmoid(self)));
  } else {
    loss = ops::bce_with_logits_loss(self, target, 0);
  }
  return reduced("binary_cross_entropy_with_logits", weight.defined() ? ops::mul(loss, weight) : loss, reduction);
}

Tensor kl_div(const Tensor& self, const Tensor& target, int64_t reduction, bool log_target) {
  broadcast_shapes(self.sizes(), target.sizes(), "kl_div");
  const Tensor loss = log_target ? ops::mul(ops::exp(target), ops::sub(target, self))
                                 : ops::sub(ops::xlogy(target, target), ops::mul(target, self));
  return reduced("kl_div", loss, reduction);
}

}  // namespace taeda::impl
