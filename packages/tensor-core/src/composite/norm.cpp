// Normalisations that hide the statistics of their native operators.
#include "taeda/ops/norm.h"

#include <limits>

#include "taeda/ops.h"

namespace taeda::impl {

Tensor batch_norm(const Tensor& input, const Tensor& weight, const Tensor& bias, const Tensor& running_mean,
                  const Tensor& running_var, bool training, double momentum, double eps) {
  return std::get<0>(ops::native_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps));
}
Tensor layer_norm(const Tensor& input, IntSpan normalized_shape, const Tensor& weight, const Tensor& bias, double eps) {
  return std::get<0>(ops::native_layer_norm(input, normalized_shape, weight, bias, eps));
}
Tensor group_norm(const Tensor& input, int64_t num_groups, const Tensor& weight, const Tensor& bias, double eps) {
  return std::get<0>(ops::native_group_norm(input, num_groups, weight, bias, eps));
}
Tensor instance_norm(const Tensor& input, const Tensor& weight, const Tensor& bias, double eps) {
  check(input.dim() >= 2, ErrorKind::Runtime, "instance_norm: argument 'input' has shape ", shape_text(input.sizes()),
        ", expected (N, C, ...)");
  return ops::group_norm(input, input.size(1), weight, bias, eps);
}

namespace {
/// Of the dtype that is computed in: halves come as float32.
double machine_epsilon(DType dtype) {
  return dtype == DType::Float64 ? std::numeric_limits<double>::epsilon() : double(std::numeric_limits<float>::epsilon());
}
}  // namespace

Tensor rms_norm(const Tensor& input, IntSpan normalized_shape, const Tensor& weight, std::optional<double> eps) {
  Shape dims;
  for (size_t d = 0; d < normalized_shape.size(); ++d) {
    const int64_t at = input.dim() - int64_t(normalized_shape.size() - d);
    check(at >= 0 && input.size(at) == normalized_shape[d], ErrorKind::Runtime, "rms_norm: argument 'input' has shape ",
          shape_text(input.sizes()), ", expected the trailing dimensions 'normalized_shape' ",
          shape_text(normalized_shape));
    dims.push_back(at);
  }
  const Tensor mean = ops::mean(ops::square(input), IntSpan(dims), true);
  const Tensor scaled =
      ops::mul(input, ops::rsqrt(ops::add(mean, Tensor(eps.value_or(machine_epsilon(real_of(input.dtype())))))));
  return weight.defined() ? ops::mul(scaled, weight) : scaled;
}

}  // namespace taeda::impl
