// CPU kernels of the optim family: a whole list of tensors in one call.
#include "taeda/ops/optim.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <vector>

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
  [[gnu::noinline]] Flat(const Tensor& t, const Tensor& param, DType d, bool writes)
      : original_(t), shown_(t), writes_(writes) {
    if (t.dtype() == d && param.dense() && std::ranges::equal(t.strides(), param.strides())) return;
    shown_ = param.dense() ? empty_strided(param.sizes(), param.strides(), d) : empty(param.sizes(), d);
    copy_elements(shown_, t);
  }
  [[gnu::noinline]] ~Flat() {
    if (writes_ && !shown_.same(original_)) copy_elements(original_, shown_);
  }
  char* at(int64_t element) const { return shown_.bytes() + element * shown_.item_bytes(); }

 private:
  Tensor original_, shown_;
  bool writes_;
};

struct Sgd {
  DType dtype;
  Flat param, grad, buffer;
  const SgdStep& step;
  Sgd(const Tensor& p, const Tensor& g, const Tensor& b, const SgdStep& how)
      : dtype(compute_dtype(p.dtype())),
        param(p, p, dtype, true),
        grad(g, p, dtype, false),
        buffer(b, p, dtype, how.momentum != 0),
        step(how) {}
  void run(int64_t begin, int64_t n) const {
    table().sgd[dtype == DType::Float64](param.at(begin), grad.at(begin),
                                         step.momentum != 0 ? buffer.at(begin) : nullptr, n, step);
  }
};

struct Adam {
  DType dtype;
  Flat param, grad, average, square, top;
  bool amsgrad;
  AdamStep step;
  Adam(const Tensor& p, const Tensor& g, const Tensor& m, const Tensor& v, const Tensor& most, bool with_most,
       const AdamStep& how)
      : dtype(compute_dtype(p.dtype())),
        param(p, p, dtype, true),
        grad(g, p, dtype, false),
        average(m, p, dtype, true),
        square(v, p, dtype, true),
        top(most, p, dtype, with_most),
        amsgrad(with_most),
        step(how) {}
  void run(int64_t begin, int64_t n) const {
    table().adam[dtype == DType::Float64](param.at(begin), grad.at(begin), average.at(begin), square.at(begin),
                                          amsgrad ? top.at(begin) : nullptr, n, step);
  }
};

/// Steps of all parameters, shared out among threads together: `with(i, use)` calls `use` with what makes a Step.
template <class Step, class With>
void run_steps(TensorList params, const With& with) {
  constexpr int64_t unit = 4096;  // numbers, so that every share begins at a whole vector
  int64_t total = 0;
  for (const Tensor& p : params) total += p.numel();
  if (total <= kLoopGrain) {
    for (size_t i = 0; i < params.size(); ++i)
      with(i, [&](const auto&... of) { Step(of...).run(0, params[i].numel()); });
    return;
  }
  std::deque<Step> steps;
  std::vector<int64_t> ends;  // in units
  for (size_t i = 0; i < params.size(); ++i) {
    with(i, [&](const auto&... of) { steps.emplace_back(of...); });
    ends.push_back((i ? ends.back() : 0) + (params[i].numel() + unit - 1) / unit);
  }
  const Unlocked unlocked(true);
  parallel_for(ends.back(), kLoopGrain / unit, [&](int64_t begin, int64_t end) {
    for (size_t i = size_t(std::ranges::upper_bound(ends, begin) - ends.begin()); begin < end; begin = ends[i++]) {
      const int64_t first = (begin - (i ? ends[i - 1] : 0)) * unit;
      steps[i].run(first, std::min(params[i].numel() - first, (std::min(end, ends[i]) - begin) * unit));
    }
  });
}

void fused_sgd(TensorList params, TensorList grads, TensorList buffers, double lr, double momentum, double dampening,
               double weight_decay, bool nesterov, bool maximize, bool first_step) {
  const Uninterrupted whole;  // a step of all parameters or of none
  const SgdStep step{lr, momentum, dampening, weight_decay, nesterov, maximize, first_step};
  run_steps<Sgd>(params, [&](size_t i, const auto& use) {
    use(params[i], grads[i], momentum != 0 ? buffers[i] : params[i], step);
  });
}

void fused_adam(TensorList params, TensorList grads, TensorList averages, TensorList squares, TensorList largest,
                IntSpan steps, double lr, double beta1, double beta2, double eps, double weight_decay, bool amsgrad,
                bool maximize, bool decoupled) {
  const Uninterrupted whole;
  run_steps<Adam>(params, [&](size_t i, const auto& use) {
    const double t = double(steps[i]);
    const AdamStep step{
        beta1,    beta2,    eps, weight_decay, lr, 1 - std::pow(beta1, t), std::sqrt(1 - std::pow(beta2, t)),
        maximize, decoupled};
    use(params[i], grads[i], averages[i], squares[i], amsgrad ? largest[i] : params[i], amsgrad, step);
  });
}

const bool registered = [] {
  kernel<op::_fused_adam_>(kCPU, fused_adam);
  kernel<op::_fused_sgd_>(kCPU, fused_sgd);
  return true;
}();

}  // namespace
}  // namespace taeda::cpu
