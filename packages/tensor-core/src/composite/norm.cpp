// Normalisations that hide the statistics of their native operators.
#include "taeda/ops/norm.h"

#include <algorithm>
#include <limits>

#include "infer/memory_format.h"
#include "taeda/arithmetic.h"
#include "taeda/half.h"
#include "taeda/ops.h"

namespace taeda::impl {

Tensor batch_norm(const Tensor& input, const Tensor& weight, const Tensor& bias, const Tensor& running_mean,
                  const Tensor& running_var, bool training, double momentum, double eps) {
  // Nothing has no channels: PyTorch gives a copy that all arguments have a part in.
  if (input.numel() == 0 && input.dim() == 1) {
    Tensor out = ops::clone(input);
    if (weight.defined()) out = out * ops::select(weight, 0, 0);
    return bias.defined() ? out + ops::select(bias, 0, 0) : out;
  }
  return std::get<0>(ops::native_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps));
}
Tensor layer_norm(const Tensor& input, IntSpan normalized_shape, const Tensor& weight, const Tensor& bias, double eps) {
  return std::get<0>(ops::native_layer_norm(input, normalized_shape, weight, bias, eps));
}
Tensor group_norm(const Tensor& input, int64_t num_groups, const Tensor& weight, const Tensor& bias, double eps) {
  return std::get<0>(ops::native_group_norm(input, num_groups, weight, bias, eps));
}
namespace {
/// Moves a running statistic towards the mean over samples of what each of them has.
void follow(const Tensor& running, const Tensor& statistic, double momentum) {
  if (!running.defined()) return;
  ops::mul_(running, Tensor(1 - momentum));
  ops::add_(running, ops::mean(statistic, Shape{0}) * Tensor(momentum));
}
}  // namespace

Tensor instance_norm(const Tensor& input, const Tensor& weight, const Tensor& bias, const Tensor& running_mean,
                     const Tensor& running_var, bool use_input_stats, double momentum, double eps) {
  if (!use_input_stats) return ops::batch_norm(input, weight, bias, running_mean, running_var, false, momentum, eps);
  check(input.dim() >= 2, ErrorKind::Runtime, "instance_norm: argument 'input' has shape ", shape_text(input.sizes()),
        ", expected (N, C, ...)");
  const int64_t samples = input.size(0), channels = input.size(1);
  check(input.numel() == 0 || input.numel() > samples * channels, ErrorKind::Value,
        "instance_norm: argument 'input' has shape ", shape_text(input.sizes()),
        ", expected more than one element for each channel");
  if (input.numel() > 0 && (running_mean.defined() || running_var.defined())) {
    const Tensor places = ops::reshape(ops::detach(input), Shape{samples, channels, -1});
    follow(running_mean, ops::mean(places, Shape{-1}), momentum);
    follow(running_var, ops::var(places, Shape{-1}), momentum);
  }
  if (channels == 0) return ops::clone(input);
  const Tensor rows = infer::channels_come_last(input) ? ops::contiguous(input) : input;
  return ops::group_norm(rows, channels, weight, bias, eps);
}

namespace {
/// Of the dtype that is computed in: halves come as float32.
double machine_epsilon(DType dtype) {
  return dtype == DType::Float64 ? std::numeric_limits<double>::epsilon()
                                 : double(std::numeric_limits<float>::epsilon());
}
}  // namespace

Tensor rms_norm(const Tensor& input, IntSpan normalized_shape, const Tensor& weight, std::optional<double> eps) {
  check(!normalized_shape.empty(), ErrorKind::Runtime,
        "rms_norm: argument 'normalized_shape' is empty, expected at least one size");
  Shape dims;
  for (size_t d = 0; d < normalized_shape.size(); ++d) {
    const int64_t at = input.dim() - int64_t(normalized_shape.size() - d);
    check(at >= 0 && input.size(at) == normalized_shape[d], ErrorKind::Runtime, "rms_norm: argument 'input' has shape ",
          shape_text(input.sizes()), ", expected the trailing dimensions 'normalized_shape' ",
          shape_text(normalized_shape));
    dims.push_back(at);
  }
  if (weight.defined())
    check(std::ranges::equal(weight.sizes(), normalized_shape), ErrorKind::Runtime,
          "rms_norm: argument 'weight' has shape ", shape_text(weight.sizes()),
          ", expected that of 'normalized_shape', ", shape_text(normalized_shape));
  const Tensor x = in_float32(input);
  const Tensor mean = ops::mean(ops::square(x), IntSpan(dims), true);
  const Tensor scaled =
      ops::mul(x, ops::rsqrt(ops::add(mean, Tensor(eps.value_or(machine_epsilon(real_of(input.dtype())))))));
  return like_operand(weight.defined() ? ops::mul(scaled, in_float32(weight)) : scaled, input);
}

}  // namespace taeda::impl
