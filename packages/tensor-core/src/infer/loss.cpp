// Inference of the loss family.
#include "infer/loss.h"

#include <algorithm>

#include "infer/dtypes.h"
#include "taeda/ops/loss.h"

namespace taeda::infer {
namespace {

void expect_reduction(const char* op, int64_t reduction) {
  check(reduction >= 0 && reduction <= 2, ErrorKind::Value, op,
        ": argument 'reduction' must be 0 (none), 1 (mean) or 2 (sum), got ", reduction);
}
void expect_floating(const char* op, const Tensor& input) {
  check(is_floating(input.dtype()), ErrorKind::NotImplemented, op, ": not implemented for dtype ", name(input.dtype()));
}

/// Element-wise losses: broadcast shape, or a number when reduced.
Spec pair_loss(const char* op, const Tensor& input, const Tensor& target, int64_t reduction) {
  expect_reduction(op, reduction);
  const Tensor both[] = {input, target};
  const DType dtype = result_type(both);
  check(is_floating(dtype), ErrorKind::NotImplemented, op, ": not implemented for dtype ", name(dtype));
  if (reduction) {
    broadcast_shapes(input.sizes(), target.sizes(), op);
    return spec(Shape{}, dtype);
  }
  return spec(broadcast_shapes(input.sizes(), target.sizes(), op), dtype);
}
Spec pair_backward(const char* op, const Tensor& grad, const Tensor& input, const Tensor& target, int64_t reduction) {
  expect_reduction(op, reduction);
  const Tensor both[] = {input, target};
  const Shape sizes = broadcast_shapes(input.sizes(), target.sizes(), op);
  const DType dtype = result_type(both);
  check(is_floating(dtype), ErrorKind::NotImplemented, op, ": not implemented for dtype ", name(dtype));
  const bool fits = reduction ? grad.numel() == 1 : std::ranges::equal(grad.sizes(), IntSpan(sizes));
  check(fits, ErrorKind::Runtime, op, ": argument 'grad' has shape ", shape_text(grad.sizes()), ", expected ",
        shape_text(reduction ? IntSpan() : IntSpan(sizes)));
  return spec(sizes, dtype);
}
void expect_same(const char* op, const Tensor& input, const Tensor& target) {
  expect_floating(op, input);
  check(std::ranges::equal(input.sizes(), target.sizes()), ErrorKind::Value, op, ": argument 'target' has shape ",
        shape_text(target.sizes()), ", expected that of 'input', ", shape_text(input.sizes()));
}

Shape target_shape(const Tensor& input) {
  Shape out(input.sizes());
  out.erase(input.dim() > 1 ? 1 : 0);
  return out;
}

}  // namespace

ClassPlan class_plan(const Tensor& input) {
  const bool rows = input.dim() > 1;
  ClassPlan s{rows ? input.size(0) : 1, rows ? input.size(1) : input.size(0), 1};
  for (int64_t d = 2; d < input.dim(); ++d) s.inner *= input.size(d);
  return s;
}

namespace {

void check_classes(const char* op, const Tensor& input, const Tensor& target, const Tensor& weight) {
  expect_floating(op, input);
  check(input.dim() >= 1, ErrorKind::Value, op,
        ": argument 'input' has no dimension, expected (C), (N, C) or (N, C, d1, ...)");
  const Shape expected = target_shape(input);
  check(std::ranges::equal(target.sizes(), IntSpan(expected)),
        // Batches that differ are an error of another kind in PyTorch.
        input.dim() > 1 && target.dim() > 0 && target.size(0) != input.size(0) ? ErrorKind::Value : ErrorKind::Runtime,
        op, ": argument 'target' has shape ", shape_text(target.sizes()), ", expected ", shape_text(expected),
        " to fit 'input' of shape ", shape_text(input.sizes()));
  check(is_integral(target.dtype()) && target.dtype() != DType::Bool, ErrorKind::Runtime, op,
        ": argument 'target' has dtype ", name(target.dtype()), ", expected an integer dtype for class indices");
  const int64_t classes = class_plan(input).c;
  if (weight.defined() && (weight.dim() != 1 || weight.size(0) != classes)) [[unlikely]]
    fail(ErrorKind::Runtime, op, ": argument 'weight' has shape ", shape_text(weight.sizes()), ", expected (", classes,
         ",), one for each class");
  if (weight.defined()) expect_dtype(op, "weight", weight, input.dtype(), "input");
}
/// The gradient of a loss over classes, and the sum of weights that its mean divided by.
void expect_class_grad(const char* op, const Tensor& grad, const Tensor& target, int64_t reduction,
                       const Tensor& total_weight) {
  expect_reduction(op, reduction);
  check(reduction ? grad.numel() == 1 : std::ranges::equal(grad.sizes(), target.sizes()), ErrorKind::Runtime, op,
        ": argument 'grad' has shape ", shape_text(grad.sizes()), ", expected ",
        shape_text(reduction ? IntSpan() : target.sizes()));
  check(total_weight.numel() == 1, ErrorKind::Runtime, op, ": argument 'total_weight' has shape ",
        shape_text(total_weight.sizes()), ", expected one number");
}
}  // namespace

std::array<Spec, 2> nll_loss_forward(const Tensor& input, const Tensor& target, const Tensor& weight, int64_t reduction,
                                     int64_t) {
  check_classes("nll_loss", input, target, weight);
  expect_reduction("nll_loss", reduction);
  return {spec(reduction ? IntSpan() : target.sizes(), input.dtype()), spec(Shape{}, statistics_dtype(input.dtype()))};
}
Spec nll_loss_backward(const Tensor& grad, const Tensor& input, const Tensor& target, const Tensor& weight,
                       int64_t reduction, int64_t, const Tensor& total_weight) {
  check_classes("nll_loss_backward", input, target, weight);
  expect_class_grad("nll_loss_backward", grad, target, reduction, total_weight);
  return spec_like(input.sizes(), input.dtype(), input);
}
std::array<Spec, 3> cross_entropy_forward(const Tensor& input, const Tensor& target, const Tensor& weight,
                                          int64_t reduction, int64_t, double label_smoothing) {
  check_classes("cross_entropy_loss", input, target, weight);
  expect_reduction("cross_entropy_loss", reduction);
  check(label_smoothing >= 0 && label_smoothing <= 1, ErrorKind::Runtime,
        "cross_entropy_loss: argument 'label_smoothing' must be between 0 and 1, got ", label_smoothing);
  const DType statistics = statistics_dtype(input.dtype());
  return {spec(reduction ? IntSpan() : target.sizes(), input.dtype()), spec(target.sizes(), statistics),
          spec(Shape{}, statistics)};
}
Spec cross_entropy_backward(const Tensor& grad, const Tensor& input, const Tensor& target, const Tensor& weight,
                            int64_t reduction, int64_t, double, const Tensor& log_sum_exp, const Tensor& total_weight) {
  check_classes("cross_entropy_backward", input, target, weight);
  const char* const op = "cross_entropy_backward";
  expect_class_grad(op, grad, target, reduction, total_weight);
  check(std::ranges::equal(log_sum_exp.sizes(), target.sizes()), ErrorKind::Runtime, op,
        ": argument 'log_sum_exp' has shape ", shape_text(log_sum_exp.sizes()), ", expected that of 'target', ",
        shape_text(target.sizes()));
  return spec(input.sizes(), input.dtype());
}

Spec mse_loss(const Tensor& input, const Tensor& target, int64_t reduction) {
  return pair_loss("mse_loss", input, target, reduction);
}
Spec l1_loss(const Tensor& input, const Tensor& target, int64_t reduction) {
  return pair_loss("l1_loss", input, target, reduction);
}
Spec smooth_l1_loss(const Tensor& input, const Tensor& target, int64_t reduction, double beta) {
  check(beta >= 0, ErrorKind::Runtime, "smooth_l1_loss: argument 'beta' must not be negative, got ", beta);
  return pair_loss("smooth_l1_loss", input, target, reduction);
}
Spec huber_loss(const Tensor& input, const Tensor& target, int64_t reduction, double delta) {
  check(delta > 0, ErrorKind::Runtime, "huber_loss: argument 'delta' must be positive, got ", delta);
  Spec out = pair_loss("huber_loss", input, target, reduction);
  if (is_floating(input.dtype())) out.dtype = input.dtype();
  return out;
}
Spec bce_loss(const Tensor& input, const Tensor& target, int64_t reduction) {
  expect_same("binary_cross_entropy", input, target);
  return pair_loss("binary_cross_entropy", input, target, reduction);
}
Spec bce_with_logits_loss(const Tensor& input, const Tensor& target, int64_t reduction) {
  expect_same("binary_cross_entropy_with_logits", input, target);
  return pair_loss("binary_cross_entropy_with_logits", input, target, reduction);
}
Spec mse_loss_backward(const Tensor& grad, const Tensor& input, const Tensor& target, int64_t reduction) {
  return pair_backward("mse_loss_backward", grad, input, target, reduction);
}
Spec l1_loss_backward(const Tensor& grad, const Tensor& input, const Tensor& target, int64_t reduction) {
  return pair_backward("l1_loss_backward", grad, input, target, reduction);
}
Spec smooth_l1_loss_backward(const Tensor& grad, const Tensor& input, const Tensor& target, int64_t reduction, double) {
  return pair_backward("smooth_l1_loss_backward", grad, input, target, reduction);
}
Spec huber_loss_backward(const Tensor& grad, const Tensor& input, const Tensor& target, int64_t reduction, double) {
  return pair_backward("huber_loss_backward", grad, input, target, reduction);
}
Spec bce_loss_backward(const Tensor& grad, const Tensor& input, const Tensor& target, int64_t reduction) {
  expect_same("bce_loss_backward", input, target);
  return pair_backward("bce_loss_backward", grad, input, target, reduction);
}
Spec bce_with_logits_loss_backward(const Tensor& grad, const Tensor& input, const Tensor& target, int64_t reduction) {
  expect_same("bce_with_logits_loss_backward", input, target);
  return pair_backward("bce_with_logits_loss_backward", grad, input, target, reduction);
}

}  // namespace taeda::infer
