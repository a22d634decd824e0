// Second derivatives of products and convolutions; gathering in planes.
#include "taeda/autograd/formulas.h"

namespace taeda::formulas {

Three linear_grad_grad(TensorList grads, const Tensor& grad_output, const Tensor& input, const Tensor& weight,
                       const std::array<bool, 3>& wanted) {
  const auto &to_input = grads[0], &to_weight = grads[1], &to_bias = grads[2];
  Three out;
  if (wanted[0]) {
    Tensor sum;
    if (to_input.defined()) sum = ops::linear(to_input, conj_of(weight));
    if (to_weight.defined()) sum = plus(sum, ops::linear(conj_of(input), to_weight));
    if (to_bias.defined()) sum = plus(sum, ops::expand(to_bias, grad_output.sizes()));
    std::get<0>(out) = sum;
  }
  // A weight (in) gave a result without the dimension of outputs.
  const Tensor arrived = conj_of(grad_output), rows = weight.dim() == 1 ? ops::unsqueeze(arrived, -1) : arrived,
               layer = to_weight.defined() && weight.dim() == 1 ? ops::unsqueeze(to_weight, 0) : to_weight;
  if (wanted[1] && layer.defined()) std::get<1>(out) = ops::matmul(rows, layer);
  if (wanted[2] && to_input.defined())
    std::get<2>(out) = std::get<1>(ops::linear_backward(arrived, to_input, weight, 2));
  return out;
}

Three conv_grad_grad(TensorList grads, const Tensor& grad_output, const Tensor& input, const Tensor& weight,
                     IntSpan stride, IntSpan padding, IntSpan dilation, int64_t groups,
                     const std::array<bool, 3>& wanted) {
  const bool deep = weight.dim() == 5;
  const auto conv = [&](const Tensor& x, const Tensor& w) {
    return (deep ? ops::conv3d : ops::conv2d)(x, w, Tensor(), stride, padding, dilation, groups);
  };
  const auto back = [&](const Tensor& x, const Tensor& w, int64_t mask) {
    return (deep ? ops::conv3d_backward : ops::conv2d_backward)(conj_of(grad_output), x, w, stride, padding, dilation,
                                                                groups, mask);
  };
  const auto &to_input = grads[0], &to_weight = grads[1], &to_bias = grads[2];
  Three out;
  if (wanted[0]) {
    Tensor sum;
    if (to_input.defined()) sum = conv(to_input, conj_of(weight));
    if (to_weight.defined()) sum = plus(sum, conv(conj_of(input), to_weight));
    if (to_bias.defined()) {
      Shape each(size_t(weight.dim()) - 1, 1);
      each[0] = -1;
      sum = plus(sum, ops::expand(ops::reshape(to_bias, each), grad_output.sizes()));
    }
    std::get<0>(out) = sum;
  }
  if (wanted[1] && to_weight.defined()) std::get<1>(out) = std::get<0>(back(input, to_weight, 1));
  if (wanted[2] && to_input.defined()) std::get<2>(out) = std::get<1>(back(to_input, weight, 2));
  return out;
}

}  // namespace taeda::formulas
