// CPU kernels of the optim family: a whole list of tensors in one call.
#include "taeda/ops/optim.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <optional>
#include <vector>

#include "cpu/converted.h"
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

/// A tensor in the memory order of `param`; written back at the end where it had to be copied. Halves stay halves:
/// pieces of them are computed with in float32.
class Flat {
 public:
  [[gnu::noinline]] Flat(const Tensor& t, const Tensor& param, bool writes) : original_(t), shown_(t), writes_(writes) {
    if (param.dense() && std::ranges::equal(t.strides(), param.strides())) return;
    shown_ = param.dense() ? empty_strided(param.sizes(), param.strides(), t.dtype()) : empty(param.sizes(), t.dtype());
    copy_elements(shown_, t);
  }
  [[gnu::noinline]] ~Flat() {
    if (writes_ && !shown_.same(original_)) copy_elements(original_, shown_);
  }
  DType dtype() const { return shown_.dtype(); }
  const Tensor& shown() const { return shown_; }
  bool writes() const { return writes_; }

 private:
  Tensor original_, shown_;
  bool writes_;
};

/// `n` elements of a Flat as numbers of T, for the time of one step.
template <class T>
class Piece {
 public:
  Piece(const Flat& of, int64_t begin, int64_t n) : reader_(of.shown()), writer_(of.shown()) {
    if (of.dtype() == dtype_of<T>) {
      numbers_ = writer_.at(begin, n);
      return;
    }
    if (of.writes()) {
      numbers_ = writer_.at(begin, n);
      std::copy_n(reader_.at(begin, n), n, numbers_);
      changed_ = true;
    } else {
      numbers_ = const_cast<T*>(reader_.at(begin, n));
    }
  }
  ~Piece() {
    if (changed_) writer_.done();
  }
  Piece(const Piece&) = delete;
  T* data() const { return numbers_; }

 private:
  Reader<T> reader_;
  Writer<T> writer_;
  T* numbers_ = nullptr;
  bool changed_ = false;
};

template <class Body>
void visit_step(DType computed, const Body& body) {
  if (computed == DType::Float64) body(double());
  else body(float());
}

struct Sgd {
  DType dtype;
  Flat param, grad, buffer;
  const SgdStep& step;
  Sgd(const Tensor& p, const Tensor& g, const Tensor& b, const SgdStep& how)
      : dtype(compute_dtype(p.dtype())),
        param(p, p, true),
        grad(g, p, false),
        buffer(b, p, how.momentum != 0),
        step(how) {}
  void run(int64_t begin, int64_t n) const {
    visit_step(dtype, [&]<class T>(T) {
      const bool converts = param.dtype() != dtype || grad.dtype() != dtype || buffer.dtype() != dtype;
      in_runs(begin, begin + n, 1, converts, [&](int64_t first, int64_t count) {
        const Piece<T> p(param, first, count), g(grad, first, count);
        std::optional<Piece<T>> b;
        if (step.momentum != 0) b.emplace(buffer, first, count);
        table().sgd[sizeof(T) == 8](p.data(), g.data(), b ? b->data() : nullptr, count, step);
      });
    });
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
        param(p, p, true),
        grad(g, p, false),
        average(m, p, true),
        square(v, p, true),
        top(most, p, with_most),
        amsgrad(with_most),
        step(how) {}
  void run(int64_t begin, int64_t n) const {
    visit_step(dtype, [&]<class T>(T) {
      bool converts = false;
      for (const Flat* one : {&param, &grad, &average, &square, &top}) converts |= one->dtype() != dtype;
      in_runs(begin, begin + n, 1, converts, [&](int64_t first, int64_t count) {
        const Piece<T> p(param, first, count), g(grad, first, count), m(average, first, count), v(square, first, count);
        std::optional<Piece<T>> most;
        if (amsgrad) most.emplace(top, first, count);
        table().adam[sizeof(T) == 8](p.data(), g.data(), m.data(), v.data(), most ? most->data() : nullptr, count,
                                     step);
      });
    });
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
