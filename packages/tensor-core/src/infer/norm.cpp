// Inference of the norm family.
#include "infer/norm.h"

#include <algorithm>

#include "infer/dtypes.h"
#include "infer/gradients.h"
#include "infer/memory_format.h"
#include "taeda/generator_state.h"
#include "taeda/half.h"
#include "taeda/ops/norm.h"

namespace taeda::infer {
namespace {

void expect_floating(const char* op, const Tensor& input) {
  check(is_floating(input.dtype()), ErrorKind::NotImplemented, op, ": not implemented for dtype ", name(input.dtype()));
}
/// A parameter is of the dtype of the input, or float32 beside halves, which are computed with in float32.
void expect_parameter(const char* op, const char* argument, const Tensor& t, const Tensor& input) {
  if (!t.defined() || t.dtype() == input.dtype()) return;
  const bool wide = is_half(input.dtype()) && t.dtype() == DType::Float32;
  check(wide, ErrorKind::Runtime, op, ": argument '", argument, "' has dtype ", name(t.dtype()), ", expected ",
        name(input.dtype()), ", the dtype of 'input'", is_half(input.dtype()) ? ", or float32" : "");
}
/// One number for each channel.
void expect_channels(const char* op, const char* argument, const Tensor& t, const Tensor& input) {
  if (!t.defined()) return;
  expect_parameter(op, argument, t, input);
  check(t.dim() == 1 && t.size(0) == input.size(1), ErrorKind::Runtime, op, ": argument '", argument, "' has shape ",
        shape_text(t.sizes()), ", expected (", input.size(1), ",), the channels of 'input' ",
        shape_text(input.sizes()));
}
void expect_shape(const char* op, const char* argument, const Tensor& t, IntSpan expected) {
  check(std::ranges::equal(t.sizes(), expected), ErrorKind::Runtime, op, ": argument '", argument, "' has shape ",
        shape_text(t.sizes()), ", expected ", shape_text(expected));
}
/// The operands of a gradient: computed in the dtype of the input, whatever floating dtype they come in.
void expect_gradient(const char* op, const Tensor& input, const Tensor& grad, const Tensor& weight, IntSpan statistics,
                     std::pair<const char*, const Tensor&> mean, std::pair<const char*, const Tensor&> scale) {
  expect_floating(op, input);
  expect_shape(op, "grad", grad, input.sizes());
  expect_shape(op, mean.first, mean.second, statistics);
  expect_shape(op, scale.first, scale.second, statistics);
  for (const Tensor* t : {&grad, &mean.second, &scale.second}) expect_floating(op, *t);
  if (weight.defined()) expect_floating(op, weight);
}
void expect_images(const char* op, const Tensor& input) {
  check(input.dim() >= 2, ErrorKind::Runtime, op, ": argument 'input' has shape ", shape_text(input.sizes()),
        ", expected (N, C, ...)");
}
void expect_groups(const char* op, const Tensor& input, int64_t num_groups) {
  expect_images(op, input);
  check(num_groups >= 1 && input.size(1) % num_groups == 0, ErrorKind::Runtime, op, ": argument 'num_groups' is ",
        num_groups, ", expected a divisor of the channels of 'input' ", shape_text(input.sizes()));
}
void expect_trailing(const char* op, const Tensor& input, IntSpan normalized_shape) {
  const int64_t k = int64_t(normalized_shape.size());
  check(k >= 1, ErrorKind::Runtime, op, ": argument 'normalized_shape' is empty, expected at least one number");
  check(input.dim() >= k && std::ranges::equal(input.sizes().last(size_t(k)), normalized_shape), ErrorKind::Runtime, op,
        ": argument 'input' has shape ", shape_text(input.sizes()),
        ", expected the trailing dimensions 'normalized_shape' ", shape_text(normalized_shape));
}
void expect_normalized(const char* op, const char* argument, const Tensor& t, const Tensor& input,
                       IntSpan normalized_shape) {
  expect_parameter(op, argument, t, input);
  check(!t.defined() || std::ranges::equal(t.sizes(), normalized_shape), ErrorKind::Runtime, op, ": argument '",
        argument, "' has shape ", shape_text(t.defined() ? t.sizes() : IntSpan()), ", expected 'normalized_shape' ",
        shape_text(normalized_shape));
}
/// One number for each row that layer_norm normalises.
Shape row_shape(const Tensor& input, size_t normalized) {
  Shape rows(input.sizes());
  std::fill(rows.end() - int64_t(normalized), rows.end(), 1);
  return rows;
}

}  // namespace

void batch_norm_backward(const Tensor& grad, const Tensor& input, const Tensor& weight, const Tensor& save_mean,
                         const Tensor& save_invstd) {
  const char* const op = "batch_norm_backward";
  expect_images(op, input);
  expect_gradient(op, input, grad, weight, Shape{input.size(1)}, {"save_mean", save_mean},
                  {"save_invstd", save_invstd});
  expect_channels(op, "weight", weight, input);
}
void layer_norm_backward(const Tensor& grad, const Tensor& input, IntSpan normalized_shape, const Tensor& mean,
                         const Tensor& rstd, const Tensor& weight) {
  const char* const op = "layer_norm_backward";
  expect_trailing(op, input, normalized_shape);
  expect_gradient(op, input, grad, weight, row_shape(input, normalized_shape.size()), {"mean", mean}, {"rstd", rstd});
  expect_normalized(op, "weight", weight, input, normalized_shape);
}
void group_norm_backward(const Tensor& grad, const Tensor& input, int64_t num_groups, const Tensor& mean,
                         const Tensor& rstd, const Tensor& weight) {
  const char* const op = "group_norm_backward";
  expect_groups(op, input, num_groups);
  expect_gradient(op, input, grad, weight, Shape{input.size(0), num_groups}, {"mean", mean}, {"rstd", rstd});
  expect_channels(op, "weight", weight, input);
}

std::array<Spec, 3> native_batch_norm(const Tensor& input, const Tensor& weight, const Tensor& bias,
                                      const Tensor& running_mean, const Tensor& running_var, bool training, double,
                                      double) {
  expect_floating("batch_norm", input);
  expect_images("batch_norm", input);
  expect_channels("batch_norm", "weight", weight, input);
  expect_channels("batch_norm", "bias", bias, input);
  expect_channels("batch_norm", "running_mean", running_mean, input);
  expect_channels("batch_norm", "running_var", running_var, input);
  check(training || (running_mean.defined() && running_var.defined()), ErrorKind::Runtime,
        "batch_norm: arguments 'running_mean' and 'running_var' must be given when 'training' is False");
  const int64_t channels = input.size(1);
  check(!training || input.numel() != channels || channels == 0, ErrorKind::Value,
        "batch_norm: argument 'input' has one value per channel, expected more when 'training' is True, found shape ",
        shape_text(input.sizes()));
  const DType statistics = statistics_dtype(input.dtype());
  Spec out = spec(input.sizes(), input.dtype());
  // PyTorch's sequences come out row by row, and what is drawn behind follows from it.
  if (input.dim() != 3 || default_engine() != Engine::Twister) {
    out.strides = image_strides(input, input.sizes());
    // Dense inputs with channels innermost keep their order whatever their rank.
    if (out.strides.empty() && input.dense() && !input.contiguous() && input.stride(1) == 1)
      out.strides.assign(input.strides());
  }
  return {out, spec(Shape{channels}, statistics), spec(Shape{channels}, statistics)};
}

std::array<Spec, 3> native_layer_norm(const Tensor& input, IntSpan normalized_shape, const Tensor& weight,
                                      const Tensor& bias, double) {
  expect_floating("layer_norm", input);
  expect_trailing("layer_norm", input, normalized_shape);
  expect_normalized("layer_norm", "weight", weight, input, normalized_shape);
  expect_normalized("layer_norm", "bias", bias, input, normalized_shape);
  const Shape rows = row_shape(input, normalized_shape.size());
  const DType statistics = statistics_dtype(input.dtype());
  return {spec(input.sizes(), input.dtype()), spec(rows, statistics), spec(rows, statistics)};
}

std::array<Spec, 3> native_group_norm(const Tensor& input, int64_t num_groups, const Tensor& weight, const Tensor& bias,
                                      double) {
  expect_floating("group_norm", input);
  expect_groups("group_norm", input, num_groups);
  expect_channels("group_norm", "weight", weight, input);
  expect_channels("group_norm", "bias", bias, input);
  const Shape groups{input.size(0), num_groups};
  const DType statistics = statistics_dtype(input.dtype());
  Spec out = spec(input.sizes(), input.dtype());
  out.strides = image_strides(input, input.sizes());
  return {out, spec(groups, statistics), spec(groups, statistics)};
}

namespace {

/// What the three backward operators give on a device without memory.
std::tuple<Tensor, Tensor, Tensor> gradients_meta(const Tensor& grad, const Tensor& input, IntSpan parameters,
                                                  int64_t mask) {
  return {gradient_meta(grad, input.sizes(), mask, 1), gradient_meta(grad, parameters, mask, 2),
          gradient_meta(grad, parameters, mask, 4)};
}
std::tuple<Tensor, Tensor, Tensor> batch_norm_backward_meta(const Tensor& grad, const Tensor& input, const Tensor&,
                                                            const Tensor&, const Tensor&, bool, int64_t mask) {
  return gradients_meta(grad, input, input.sizes().subspan(1, 1), mask);
}
std::tuple<Tensor, Tensor, Tensor> layer_norm_backward_meta(const Tensor& grad, const Tensor& input,
                                                            IntSpan normalized_shape, const Tensor&, const Tensor&,
                                                            const Tensor&, int64_t mask) {
  return gradients_meta(grad, input, normalized_shape, mask);
}
std::tuple<Tensor, Tensor, Tensor> group_norm_backward_meta(const Tensor& grad, const Tensor& input, int64_t,
                                                            const Tensor&, const Tensor&, const Tensor&, int64_t mask) {
  return gradients_meta(grad, input, input.sizes().subspan(1, 1), mask);
}
const bool registered = [] {
  kernel<op::batch_norm_backward>(kMeta, batch_norm_backward_meta);
  kernel<op::layer_norm_backward>(kMeta, layer_norm_backward_meta);
  kernel<op::group_norm_backward>(kMeta, group_norm_backward_meta);
  return true;
}();

}  // namespace
}  // namespace taeda::infer
