// Operators of whole rows, and fused optimizers.
#include "kernels/rows.h"

#include <cmath>

#include "ops/elementwise.h"
#include "ops/walk.h"

namespace taeda::cuda {
namespace {

Rows rows_along(const Tensor& t, int dim) {
  return {walk_of(t, ~(uint64_t(1) << dim)), t.ndim() ? t.stride(dim) : 1, t.array()};
}
template <template <class> class Body, class... More>
void launch_rows(const Call& call, const Tensor& out, int dim, const More&... rows) {
  if (out.numel() == 0) return;
  const int64_t length = out.ndim() ? out.size(dim) : 1;
  const bool logarithm = std::string_view(call.name()).starts_with("log_");
  if (out.dtype() == TAEDA_FLOAT64) call.launch(Body<double>{rows..., length, logarithm, 0}, out.numel() / length);
  else call.launch(Body<float>{rows..., length, logarithm, 0}, out.numel() / length);
}
void softmax(const Call& call) {
  const Tensor out = call.output(0), self = call.tensor(0);
  const int dim = wrapped(call.integer(1), out.ndim());
  launch_rows<Softmax>(call, out, dim, rows_along(self, dim), rows_along(out, dim));
}
void softmax_backward(const Call& call) {
  const Tensor out = call.output(0), grad = call.tensor(0), output = call.tensor(1);
  const int dim = wrapped(call.integer(2), out.ndim());
  launch_rows<SoftmaxBackward>(call, out, dim, rows_along(grad, dim), rows_along(output, dim), rows_along(out, dim));
}

void native_layer_norm(const Call& call) {
  const Tensor out = call.output(0), mean = call.output(1), rstd = call.output(2);
  int64_t length = 1;
  for (const int64_t size : call.integers(1)) length *= size;
  if (length == 0) {
    fill_elements(call, mean, {}, TAEDA_FLOAT64);
    return fill_elements(call, rstd, {NAN, 0, 0}, TAEDA_FLOAT64);
  }
  if (out.numel() == 0) return;
  const Tensor input = call.rows(call.tensor(0));
  const Tensor given_weight = call.tensor(2), given_bias = call.tensor(3);
  const Tensor weight = given_weight ? call.rows(given_weight) : Tensor();
  const Tensor bias = given_bias ? call.rows(given_bias) : Tensor();
  const Target to(call, out), to_mean(call, mean), to_rstd(call, rstd);
  Normalised n{};
  n.in = input.array();
  if (weight) n.weight = weight.array();
  if (bias) n.bias = bias.array();
  n.out = to.array();
  n.mean = to_mean.array();
  n.rstd = to_rstd.array();
  n.length = length;
  n.eps = call.real(4);
  if (out.dtype() == TAEDA_FLOAT64) call.launch(LayerNorm<double>{n}, out.numel() / length);
  else call.launch(LayerNorm<float>{n}, out.numel() / length);
  for (const Target* t : {&to, &to_mean, &to_rstd}) t->done();
}

// --- optimizers ---

/// A tensor that a step reads and writes, row by row.
class Changed {
 public:
  Changed(const Call& call, const Tensor& tensor) : call_(call), tensor_(tensor), rows_(call.rows(tensor)) {}
  Array array() const { return rows_.array(); }
  void done() const {
    if (rows_.handle() != tensor_.handle()) call_.copy(tensor_, rows_);
  }

 private:
  const Call& call_;
  const Tensor& tensor_;
  Tensor rows_;
};
template <template <class> class Body>
void take_step(const Call& call, Step step, const Tensor& param, const Tensor& grad, const Tensor* first,
               const Tensor* second, const Tensor* largest) {
  const Changed to(call, param);
  const Tensor slope = call.rows(grad);
  std::optional<Changed> others[3];
  Array* const places[] = {&step.first, &step.second, &step.largest};
  const Tensor* const given[] = {first, second, largest};
  step.param = to.array();
  step.grad = slope.array();
  for (int k = 0; k < 3; ++k)
    if (given[k]) *places[k] = others[k].emplace(call, *given[k]).array();
  switch (class_for(param.dtype())) {
    case Class::Complex: call.launch(Body<Complex128>{step}, param.numel()); break;
    case Class::Double: call.launch(Body<double>{step}, param.numel()); break;
    default: call.launch(Body<float>{step}, param.numel());
  }
  to.done();
  for (const auto& other : others)
    if (other) other->done();
}
void fused_adam(const Call& call) {
  const auto params = call.tensors(0), grads = call.tensors(1), firsts = call.tensors(2), seconds = call.tensors(3),
             largest = call.tensors(4);
  const auto steps = call.integers(5);
  Step s{};
  s.lr = call.real(6);
  s.beta1 = call.real(7);
  s.beta2 = call.real(8);
  s.eps = call.real(9);
  s.decay = call.real(10);
  const bool amsgrad = call.flag(11);
  s.maximize = call.flag(12);
  s.decoupled = call.flag(13);
  for (size_t i = 0; i < params.size(); ++i) {
    s.scale1 = 1 / (1 - std::pow(s.beta1, double(steps[i])));
    s.scale2 = 1 / (1 - std::pow(s.beta2, double(steps[i])));
    take_step<AdamStep>(call, s, params[i], grads[i], &firsts[i], &seconds[i], amsgrad ? &largest[i] : nullptr);
  }
}
void fused_sgd(const Call& call) {
  const auto params = call.tensors(0), grads = call.tensors(1), buffers = call.tensors(2);
  Step s{};
  s.lr = call.real(3);
  s.beta1 = call.real(4);
  s.beta2 = call.real(5);
  s.decay = call.real(6);
  s.nesterov = call.flag(7);
  s.maximize = call.flag(8);
  s.first_step = call.flag(9);
  for (size_t i = 0; i < params.size(); ++i)
    take_step<SgdStep>(call, s, params[i], grads[i], s.beta1 != 0 ? &buffers[i] : nullptr, nullptr, nullptr);
}

}  // namespace

const std::vector<Operation>& row_operations() {
  static const std::vector<Operation> operations{
      {"_fused_adam_", fused_adam},
      {"_fused_sgd_", fused_sgd},
      {"log_softmax", softmax},
      {"log_softmax_backward", softmax_backward},
      {"native_layer_norm", native_layer_norm},
      {"softmax", softmax},
      {"softmax_backward", softmax_backward},
  };
  return operations;
}

}  // namespace taeda::cuda
