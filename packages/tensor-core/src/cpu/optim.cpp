// CPU kernels of the optim family: a whole list of tensors in one call.
#include "taeda/ops/optim.h"

#include <cmath>

#include "cpu/kernel.h"
#include "cpu/loops/optim.h"
#include "taeda/interrupt.h"
#include "taeda/parallel.h"

namespace taeda::cpu {
namespace {

const OptimTable& table() {
  static const OptimTable& picked = optim_table();
  return picked;
}

/// A tensor in the memory order of `param` and in the compute dtype; written back at the end where it had to be copied.
class Flat {
 public:
  Flat(const Tensor& t, const Tensor& param, DType d, bool writes) : original_(t), shown_(t), writes_(writes) {
    if (t.dtype() == d && param.dense() && std::ranges::equal(t.strides(), param.strides())) return;
    shown_ = param.dense() ? empty_strided(param.sizes(), param.strides(), d) : empty(param.sizes(), d);
    copy_elements(shown_, t);
  }
  ~Flat() {
    if (writes_ && !shown_.same(original_)) copy_elements(original_, shown_);
  }
  char* at(int64_t element) const { return shown_.bytes() + element * shown_.item_bytes(); }

 private:
  Tensor original_, shown_;
  bool writes_;
};

void fused_sgd(TensorList params, TensorList grads, TensorList buffers, double lr, double momentum, double dampening,
               double weight_decay, bool nesterov, bool maximize, bool first_step) {
  const bool has_momentum = momentum != 0;
  const Uninterrupted whole;  // a step of all parameters or of none
  const SgdStep step{lr, momentum, dampening, weight_decay, nesterov, maximize, first_step};
  for (size_t i = 0; i < params.size(); ++i) {
    const DType d = compute_dtype(params[i].dtype());
    const Flat param(params[i], params[i], d, true), grad(grads[i], params[i], d, false);
    const Flat buffer(has_momentum ? buffers[i] : params[i], params[i], d, has_momentum);
    const auto run = table().sgd[d == DType::Float64];
    const Unlocked unlocked(params[i].numel() > kLoopGrain);
    parallel_for(params[i].numel(), kLoopGrain, [&](int64_t begin, int64_t end) {
      run(param.at(begin), grad.at(begin), has_momentum ? buffer.at(begin) : nullptr, end - begin, step);
    });
  }
}

void fused_adam(TensorList params, TensorList grads, TensorList averages, TensorList squares, TensorList largest,
                IntSpan steps, double lr, double beta1, double beta2, double eps, double weight_decay, bool amsgrad,
                bool maximize, bool decoupled) {
  const Uninterrupted whole;
  for (size_t i = 0; i < params.size(); ++i) {
    const DType d = compute_dtype(params[i].dtype());
    const double t = double(steps[i]);
    const AdamStep step{
        beta1,    beta2,    eps, weight_decay, lr, 1 - std::pow(beta1, t), std::sqrt(1 - std::pow(beta2, t)),
        maximize, decoupled};
    const Tensor& p = params[i];
    const Flat param(p, p, d, true), grad(grads[i], p, d, false), average(averages[i], p, d, true),
        square(squares[i], p, d, true);
    const Flat top(amsgrad ? largest[i] : p, p, d, amsgrad);
    const auto run = table().adam[d == DType::Float64];
    const Unlocked unlocked(p.numel() > kLoopGrain);
    parallel_for(p.numel(), kLoopGrain, [&](int64_t begin, int64_t end) {
      run(param.at(begin), grad.at(begin), average.at(begin), square.at(begin), amsgrad ? top.at(begin) : nullptr,
          end - begin, step);
    });
  }
}

const bool registered = [] {
  kernel<op::_fused_adam_>(kCPU, fused_adam);
  kernel<op::_fused_sgd_>(kCPU, fused_sgd);
  return true;
}();

}  // namespace
}  // namespace taeda::cpu
