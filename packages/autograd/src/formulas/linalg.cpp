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

Three conv2d_grad_grad(TensorList grads, const Tensor& grad_output, const Tensor& input, const Tensor& weight,
                       IntSpan stride, IntSpan padding, IntSpan dilation, int64_t groups,
                       const std::array<bool, 3>& wanted) {
  const auto &to_input = grads[0], &to_weight = grads[1], &to_bias = grads[2];
  Three out;
  if (wanted[0]) {
    Tensor sum;
    if (to_input.defined()) sum = ops::conv2d(to_input, conj_of(weight), Tensor(), stride, padding, dilation, groups);
    if (to_weight.defined())
      sum = plus(sum, ops::conv2d(conj_of(input), to_weight, Tensor(), stride, padding, dilation, groups));
    if (to_bias.defined()) sum = plus(sum, ops::expand(ops::reshape(to_bias, Shape{-1, 1, 1}), grad_output.sizes()));
    std::get<0>(out) = sum;
  }
  const Tensor arrived = conj_of(grad_output);
  if (wanted[1] && to_weight.defined())
    std::get<1>(out) =
        std::get<0>(ops::conv2d_backward(arrived, input, to_weight, stride, padding, dilation, groups, 1));
  if (wanted[2] && to_input.defined())
    std::get<2>(out) =
        std::get<1>(ops::conv2d_backward(arrived, to_input, weight, stride, padding, dilation, groups, 2));
  return out;
}

Tensor pick_in_planes(const Tensor& t, const Tensor& indices) {
  const Tensor picked = ops::gather(ops::flatten(t, -2, -1), -1, ops::flatten(indices, -2, -1));
  return ops::reshape(picked, indices.sizes());
}

}  // namespace taeda::formulas
