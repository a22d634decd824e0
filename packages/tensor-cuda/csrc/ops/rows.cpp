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
  n.length = length, n.groups = n.inner = 1;
  n.eps = call.real(4);
  if (out.dtype() == TAEDA_FLOAT64) call.launch(LayerNorm<double>{n}, out.numel() / length);
  else call.launch(LayerNorm<float>{n}, out.numel() / length);
  for (const Target* t : {&to, &to_mean, &to_rstd}) t->done();
}

// --- optimizers ---

/// Steps of parameters that are computed alike, gathered for launches of as many as fit.
template <class Body>
class Gathered {
 public:
  Gathered(const Call& call, const Step& common) : call_(call) { body_.common = common; }
  /// Those after `grad` may be absent.
  void add(const Tensor& param, const Tensor& grad, std::initializer_list<const Tensor*> others, double scale1 = 1,
           double scale2 = 1) {
    if (param.numel() == 0) return;
    StepPart& part = body_.parts[count_];
    part = {};
    part.param = changed(param);
    slopes_.push_back(call_.rows(grad));
    part.grad = slopes_.back().array();
    Array* const places[] = {&part.first, &part.second, &part.largest};
    size_t k = 0;
    for (const Tensor* other : others) {
      if (other) *places[k] = changed(*other);
      ++k;
    }
    part.scale1 = scale1, part.scale2 = scale2;
    part.end = items_ += param.numel();
    if (++count_ == StepOfMany<Body>::kMost) launch();
  }
  void launch() {
    if (count_ > 0) call_.launch(body_, items_);
    for (const auto& [tensor, rows] : changed_)
      if (rows.handle() != tensor->handle()) call_.copy(*tensor, rows);
    changed_.clear(), slopes_.clear();
    count_ = 0, items_ = 0;
  }

 private:
  /// A tensor that the step reads and writes, row by row.
  Array changed(const Tensor& tensor) {
    changed_.emplace_back(&tensor, call_.rows(tensor));
    return changed_.back().second.array();
  }
  const Call& call_;
  StepOfMany<Body> body_{};
  std::vector<std::pair<const Tensor*, Tensor>> changed_;
  std::vector<Tensor> slopes_;
  int count_ = 0;
  int64_t items_ = 0;
};
/// Parameters by the type that their steps are computed in.
template <template <class> class Body, class Add>
void take_steps(const Call& call, const Step& step, const std::vector<Tensor>& params, const Add& add) {
  Gathered<Body<float>> single(call, step);
  Gathered<Body<double>> wide(call, step);
  Gathered<Body<Complex128>> complex(call, step);
  for (size_t i = 0; i < params.size(); ++i) switch (class_for(params[i].dtype())) {
      case Class::Complex: add(complex, i); break;
      case Class::Double: add(wide, i); break;
      default: add(single, i);
    }
  single.launch(), wide.launch(), complex.launch();
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
  take_steps<AdamStep>(call, s, params, [&](auto& to, size_t i) {
    to.add(params[i], grads[i], {&firsts[i], &seconds[i], amsgrad ? &largest[i] : nullptr},
           1 / (1 - std::pow(s.beta1, double(steps[i]))), 1 / (1 - std::pow(s.beta2, double(steps[i]))));
  });
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
  take_steps<SgdStep>(call, s, params,
                      [&](auto& to, size_t i) { to.add(params[i], grads[i], {s.beta1 != 0 ? &buffers[i] : nullptr}); });
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
