// CPU kernels of the loss family.
#include "taeda/ops/loss.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <vector>

#include "cpu/loops/layers.h"
#include "cpu/prepare.h"
#include "infer/loss.h"
#include "taeda/elementwise.h"
#include "taeda/ops/activation.h"
#include "taeda/ops/arith.h"
#include "taeda/ops/shape.h"
#include "taeda/ops/unary.h"
#include "taeda/parallel.h"

namespace taeda {
namespace {

using cpu::row_major;
using cpu::visit_float;
using infer::ClassPlan;
using loops::layers;

// --- Element-wise losses
// ----------------------------------------------------------------------------------------------

/// An operand broadcast to `sizes`, row-major, of `dtype`.
Tensor spread(const Tensor& t, IntSpan sizes, DType dtype) {
  return std::ranges::equal(t.sizes(), sizes) ? row_major(t, dtype) : row_major(ops::expand(t, sizes), dtype);
}

/// Tensors that lie in the same places of their memory, without gaps, as rows of one dimension: in which order their
/// elements come makes no difference to a loss. False, and nothing is changed, where they lie otherwise.
template <class... Ts>
bool flatten_alike(Tensor& first, Ts&... others) {
  if (first.contiguous() || !first.dense()) return false;
  const auto alike = [&](const Tensor& t) {
    return std::ranges::equal(t.sizes(), first.sizes()) && std::ranges::equal(t.strides(), first.strides());
  };
  if (!(alike(others) && ...)) return false;
  const auto flat = [](Tensor& t) { t = alias(t, Shape{t.numel()}, Shape{1}, 0); };
  (flat(others), ...);
  flat(first);
  return true;
}

constexpr int64_t kPiece = 16384;

/// out = loss(input, target), reduced: fixed pieces, added in order.
void pair_loss(loops::PairLoss which, Tensor out, Tensor input, Tensor target, int64_t reduction,
               double parameter = 0) {
  if (reduction) flatten_alike(input, target);
  else flatten_alike(input, target, out);
  const DType dtype = compute_dtype(out.dtype());
  const Shape sizes = reduction ? broadcast_shapes(input.sizes(), target.sizes(), "loss") : Shape(out.sizes());
  const Tensor x = spread(input, sizes, dtype), t = spread(target, sizes, dtype);
  const cpu::Target place(out, dtype);
  const int64_t n = x.numel();
  visit_float(dtype, [&]<class T>() {
    const T *const a = x.data<T>(), *const b = t.data<T>();
    if (which == loops::kBce) {
      const int64_t bad = layers<T>().outside_unit(a, n);
      check(bad < 0, ErrorKind::Runtime, "binary_cross_entropy: argument 'input' has ", bad < 0 ? 0.0 : double(a[bad]),
            ", expected values between 0 and 1");
      const int64_t wrong = layers<T>().outside_unit(b, n);
      check(wrong < 0, ErrorKind::Runtime, "binary_cross_entropy: argument 'target' has ",
            wrong < 0 ? 0.0 : double(b[wrong]),
            ", expected values between 0 and 1: all elements of target should be between 0 and 1");
    }
    const loops::PairLoops& loop = layers<T>().pair[which];
    const Unlocked unlocked(n > 32768);
    if (reduction == 0) {
      T* const to = place.data<T>();
      parallel_for(n, kPiece, [&](int64_t begin, int64_t end) {
        loop.map(a + begin, b + begin, parameter, end - begin, to + begin);
      });
      return;
    }
    double total = 0;
    if (n <= kPiece) {
      total = loop.sum(a, b, parameter, n);
    } else {
      std::vector<double> parts(size_t((n + kPiece - 1) / kPiece));
      parallel_for(int64_t(parts.size()), 1, [&](int64_t begin, int64_t end) {
        for (int64_t p = begin; p < end; ++p)
          parts[size_t(p)] = loop.sum(a + p * kPiece, b + p * kPiece, parameter, std::min(kPiece, n - p * kPiece));
      });
      for (double part : parts) total += part;
    }
    *place.data<T>() = T(reduction == 1 ? total / double(n) : total);
  });
  place.finish();
}

/// grad_x = grad * slope(input, target), over the count for the mean.
void pair_backward(loops::PairLoss which, Tensor out, Tensor grad, Tensor input, Tensor target, int64_t reduction,
                   double parameter = 0) {
  if (reduction) flatten_alike(input, target, out);
  else flatten_alike(input, target, out, grad);
  const DType dtype = compute_dtype(out.dtype());
  const Tensor x = spread(input, out.sizes(), dtype), t = spread(target, out.sizes(), dtype),
               g = row_major(grad, dtype);
  const cpu::Target place(out, dtype);
  const int64_t n = x.numel();
  visit_float(dtype, [&]<class T>() {
    const T *const a = x.data<T>(), *const b = t.data<T>(), *const up = g.data<T>();
    T* const to = place.data<T>();
    const Unlocked unlocked(n > 32768);
    const double scale = reduction == 0 ? 1.0 : double(*up) / (reduction == 1 ? double(n) : 1.0);
    parallel_for(n, kPiece, [&](int64_t begin, int64_t end) {
      layers<T>().pair[which].slope(a + begin, b + begin, reduction == 0 ? up + begin : nullptr, scale, parameter,
                                    end - begin, to + begin);
    });
  });
  place.finish();
}

void mse_loss_kernel(const Tensor& out, const Tensor& input, const Tensor& target, int64_t reduction) {
  pair_loss(loops::kMse, out, input, target, reduction);
}
void mse_loss_backward_kernel(const Tensor& out, const Tensor& grad, const Tensor& input, const Tensor& target,
                              int64_t reduction) {
  pair_backward(loops::kMse, out, grad, input, target, reduction);
}
void l1_loss_kernel(const Tensor& out, const Tensor& input, const Tensor& target, int64_t reduction) {
  pair_loss(loops::kL1, out, input, target, reduction);
}
void l1_loss_backward_kernel(const Tensor& out, const Tensor& grad, const Tensor& input, const Tensor& target,
                             int64_t reduction) {
  pair_backward(loops::kL1, out, grad, input, target, reduction);
}
void smooth_l1_loss_kernel(const Tensor& out, const Tensor& input, const Tensor& target, int64_t reduction,
                           double beta) {
  pair_loss(loops::kSmoothL1, out, input, target, reduction, beta);
}
void smooth_l1_loss_backward_kernel(const Tensor& out, const Tensor& grad, const Tensor& input, const Tensor& target,
                                    int64_t reduction, double beta) {
  pair_backward(loops::kSmoothL1, out, grad, input, target, reduction, beta);
}
void huber_loss_kernel(const Tensor& out, const Tensor& input, const Tensor& target, int64_t reduction, double delta) {
  pair_loss(loops::kHuber, out, input, target, reduction, delta);
}
void huber_loss_backward_kernel(const Tensor& out, const Tensor& grad, const Tensor& input, const Tensor& target,
                                int64_t reduction, double delta) {
  pair_backward(loops::kHuber, out, grad, input, target, reduction, delta);
}
void bce_loss_kernel(const Tensor& out, const Tensor& input, const Tensor& target, int64_t reduction) {
  pair_loss(loops::kBce, out, input, target, reduction);
}
void bce_loss_backward_kernel(const Tensor& out, const Tensor& grad, const Tensor& input, const Tensor& target,
                              int64_t reduction) {
  pair_backward(loops::kBce, out, grad, input, target, reduction);
}
void bce_with_logits_loss_kernel(const Tensor& out, const Tensor& input, const Tensor& target, int64_t reduction) {
  pair_loss(loops::kBceWithLogits, out, input, target, reduction);
}
void bce_with_logits_loss_backward_kernel(const Tensor& out, const Tensor& grad, const Tensor& input,
                                          const Tensor& target, int64_t reduction) {
  pair_backward(loops::kBceWithLogits, out, grad, input, target, reduction);
}

// --- Losses over classes
// ------------------------------------------------------------------------------------------------

/// The class of each position, checked; -1 where it is to be ignored.
class Classes {
 public:
  Classes(const char* op, const Tensor& target, const ClassPlan& s, int64_t ignored)
      : numbers_(row_major(target, DType::Int64)), from_(numbers_.data<int64_t>()), ignored_(ignored) {
    std::atomic<bool> fine{true};
    parallel_for(size(), 1 << 16, [&](int64_t begin, int64_t end) {
      if (!layers<float>().all_classes(from_ + begin, end - begin, s.c, ignored)) fine = false;
    });
    if (fine) [[likely]]
      return;
    const auto wrong = [&](int64_t c) { return c != ignored && (c < 0 || c >= s.c); };
    fail(ErrorKind::Index, op, ": argument 'target' must hold classes from 0 to ", s.c - 1, ": Target ",
         *std::find_if(from_, from_ + size(), wrong), " is out of bounds.");
  }
  int64_t size() const { return numbers_.numel(); }
  int64_t operator[](int64_t i) const { return from_[i] == ignored_ ? -1 : from_[i]; }

 private:
  Tensor numbers_;
  const int64_t* from_;
  int64_t ignored_;
};

/// Positions that are handled together: side by side in a plane or, where planes are single positions, one below the
/// other. Class k of the j-th stands at base + j * step + k * inner.
struct Run {
  int64_t number, first, count, base, step;
};
constexpr int64_t kRun = 512;
int64_t runs_in(int64_t positions) { return (positions + kRun - 1) / kRun; }
int64_t run_count(const ClassPlan& s) { return s.inner == 1 ? runs_in(s.n) : s.n * runs_in(s.inner); }
/// `body` for each run, several runs at a time; `work` is what one position costs, in reads of a number.
template <class Body>
void over_runs(const ClassPlan& s, int64_t work, const Body& body) {
  const Unlocked unlocked(s.n * s.inner * work > 32768);
  const int64_t rows = s.inner == 1 ? 1 : runs_in(s.inner);
  parallel_for(run_count(s), std::max<int64_t>(1, 16384 / (kRun * std::max<int64_t>(1, work))),
               [&](int64_t begin, int64_t end) {
                 for (int64_t r = begin; r < end; ++r) {
                   const int64_t image = r / rows, at = r % rows * kRun;
                   if (s.inner == 1) body(Run{r, r * kRun, std::min(kRun, s.n - r * kRun), r * kRun * s.c, s.c});
                   else body(Run{r, image * s.inner + at, std::min(kRun, s.inner - at), image * s.c * s.inner + at, 1});
                 }
               });
}
/// What a run adds to the loss and to the sum of weights.
struct Part {
  double loss = 0, weight = 0;
};
/// Their totals in the order of the runs: the sum (reduction 2) or the mean, and the weights.
template <class T>
void finish_parts(const std::vector<Part>& parts, int64_t reduction, T* output, T* total_weight) {
  Part total;
  for (const Part& part : parts) {
    total.loss += part.loss;
    total.weight += part.weight;
  }
  *total_weight = T(total.weight);
  if (reduction != 0) *output = T(reduction == 1 ? total.loss / total.weight : total.loss);
}

/// Weights as double: one for each class, ones when none are given.
std::vector<double> weights_of(const Tensor& weight, int64_t classes) {
  std::vector<double> out(static_cast<size_t>(classes), 1.0);
  if (!weight.defined()) return out;
  const Tensor w = row_major(weight, DType::Float64);
  std::copy_n(w.data<double>(), classes, out.begin());
  return out;
}

void nll_loss_forward_kernel(const Tensor& output, const Tensor& total_weight, const Tensor& input,
                             const Tensor& target, const Tensor& weight, int64_t reduction, int64_t ignore_index) {
  const ClassPlan s = infer::class_plan(input);
  const DType dtype = compute_dtype(input.dtype());
  const Tensor x = row_major(input, dtype);
  const Classes classes("nll_loss", target, s, ignore_index);
  const auto weights = weights_of(weight, s.c);
  const cpu::Target out(output, dtype), sum(total_weight, dtype);
  std::vector<Part> parts(size_t(run_count(s)));
  visit_float(dtype, [&]<class T>() {
    over_runs(s, 1, [&](const Run& run) {
      const T* const from = x.data<T>() + run.base;
      Part part;
      for (int64_t j = 0; j < run.count; ++j) {
        const int64_t c = classes[run.first + j];
        const double w = c < 0 ? 0.0 : weights[size_t(c)];
        const double loss = c < 0 ? 0.0 : -w * double(from[j * run.step + c * s.inner]);
        if (reduction == 0) out.data<T>()[run.first + j] = T(loss);
        part.loss += loss;
        part.weight += w;
      }
      parts[size_t(run.number)] = part;
    });
    finish_parts(parts, reduction, out.data<T>(), sum.data<T>());
  });
  out.finish();
  sum.finish();
}

/// The factor of a position's gradient: that of the loss, over the sum of weights for the mean.
template <class T>
class Upstream {
 public:
  Upstream(const Tensor& grad, int64_t reduction, const Tensor& total_weight)
      : each_(reduction == 0 ? grad.data<T>() : nullptr),
        all_(reduction == 0   ? 0.0
             : reduction == 1 ? double(*grad.data<T>()) / double(*total_weight.data<T>())
                              : double(*grad.data<T>())) {}
  double operator[](int64_t i) const { return each_ ? double(each_[i]) : all_; }

 private:
  const T* each_;
  double all_;
};

void nll_loss_backward_kernel(const Tensor& out, const Tensor& grad, const Tensor& input, const Tensor& target,
                              const Tensor& weight, int64_t reduction, int64_t ignore_index,
                              const Tensor& total_weight) {
  const ClassPlan s = infer::class_plan(input);
  const DType dtype = compute_dtype(out.dtype());
  const Classes classes("nll_loss_backward", target, s, ignore_index);
  const auto weights = weights_of(weight, s.c);
  const Tensor g = row_major(grad, dtype), sum = row_major(total_weight, dtype);
  const cpu::Target place(out, dtype);
  visit_float(dtype, [&]<class T>() {
    const Upstream<T> up(g, reduction, sum);
    over_runs(s, std::max<int64_t>(1, s.c / 4), [&](const Run& run) {
      T* const to = place.data<T>() + run.base;
      if (s.inner == 1) std::fill_n(to, run.count * s.c, T(0));
      else
        for (int64_t k = 0; k < s.c; ++k) std::fill_n(to + k * s.inner, run.count, T(0));
      for (int64_t j = 0; j < run.count; ++j) {
        const int64_t c = classes[run.first + j];
        if (c >= 0) to[j * run.step + c * s.inner] = T(-weights[size_t(c)] * up[run.first + j]);
      }
    });
  });
  place.finish();
}

/// Cross entropy of images, whose classes are planes, without turning them over.
template <class T>
void plane_losses(const ClassPlan& s, const Tensor& x, const Classes& classes, const std::vector<double>& weights,
                  int64_t reduction, double label_smoothing, T* lse, T* output, std::vector<Part>& parts) {
  const double smooth = label_smoothing / double(s.c);
  over_runs(s, s.c, [&](const Run& run) {
    const T* const from = x.data<T>() + run.base;
    T top[kRun], log_sum[kRun];
    layers<T>().plane_log_sum_exp(from, s.inner, s.c, run.count, top, log_sum);
    for (int64_t j = 0; j < run.count; ++j) lse[run.first + j] = top[j] + log_sum[j];
    Part part;
    for (int64_t j = 0; j < run.count; ++j) {
      const int64_t c = classes[run.first + j];
      double loss = 0;
      if (c >= 0) {
        // log_sum + (top - x) keeps the digits that the logarithm of the whole sum has lost.
        const auto missing = [&](int64_t k) {
          return double(log_sum[j]) + (double(top[j]) - double(from[k * s.inner + j]));
        };
        loss = (1.0 - label_smoothing) * weights[size_t(c)] * missing(c);
        for (int64_t k = 0; smooth != 0 && k < s.c; ++k) loss += smooth * weights[size_t(k)] * missing(k);
        part.weight += weights[size_t(c)];
      }
      if (reduction == 0) output[run.first + j] = T(loss);
      part.loss += loss;
    }
    parts[size_t(run.number)] = part;
  });
}

/// The same of rows of classes.
template <class T>
void row_losses(const ClassPlan& s, const Tensor& x, const Classes& classes, const std::vector<double>& weights,
                bool weighted, int64_t reduction, double label_smoothing, T* lse, T* output, std::vector<Part>& parts) {
  const double smooth = label_smoothing / double(s.c);
  const auto loss_of = [&](int64_t i) {
    const T* const row = x.data<T>() + i * s.c;
    double top;
    const double log_sum = layers<T>().log_sum_exp(row, s.c, &top);
    lse[i] = T(top + log_sum);
    const int64_t c = classes[i];
    if (c < 0) return Part{};
    // See above.
    const auto missing = [&](int64_t k) { return log_sum + (top - double(row[k])); };
    Part part{(1.0 - label_smoothing) * weights[size_t(c)] * missing(c), weights[size_t(c)]};
    const double classes_in_all = double(s.c);
    if (smooth != 0 && !weighted)
      part.loss += smooth * (classes_in_all * log_sum + (classes_in_all * top - layers<T>().row_sum(row, s.c)));
    for (int64_t k = 0; smooth != 0 && weighted && k < s.c; ++k) part.loss += smooth * weights[size_t(k)] * missing(k);
    return part;
  };
  const Unlocked unlocked(x.numel() > 32768);
  parallel_for(classes.size(), std::max<int64_t>(1, 16384 / std::max<int64_t>(1, s.c)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t i = begin; i < end; ++i) {
                   parts[size_t(i)] = loss_of(i);
                   if (reduction == 0) output[i] = T(parts[size_t(i)].loss);
                 }
               });
}

void cross_entropy_forward_kernel(const Tensor& output, const Tensor& log_sum_exp, const Tensor& total_weight,
                                  const Tensor& input, const Tensor& target, const Tensor& weight, int64_t reduction,
                                  int64_t ignore_index, double label_smoothing) {
  const ClassPlan s = infer::class_plan(input);
  const DType dtype = compute_dtype(input.dtype());
  const bool planes = s.inner > 1 && s.c > 0;
  const Tensor x = row_major(input, dtype);
  const Classes classes("cross_entropy_loss", target, s, ignore_index);
  const auto weights = weights_of(weight, s.c);
  const cpu::Target out(output, dtype), lse(log_sum_exp, dtype), sum(total_weight, dtype);
  std::vector<Part> parts(size_t(planes ? run_count(s) : classes.size()));
  visit_float(dtype, [&]<class T>() {
    T *const sums = lse.data<T>(), *const to = out.data<T>();
    if (planes) plane_losses(s, x, classes, weights, reduction, label_smoothing, sums, to, parts);
    else row_losses(s, x, classes, weights, weight.defined(), reduction, label_smoothing, sums, to, parts);
    finish_parts(parts, reduction, to, sum.data<T>());
  });
  out.finish();
  lse.finish();
  sum.finish();
}

/// The gradient of images, in their own order.
void plane_gradients(const ClassPlan& s, const Tensor& out, const Tensor& grad, const Tensor& x, const Classes& classes,
                     const std::vector<double>& weights, int64_t reduction, double label_smoothing, const Tensor& lse,
                     const Tensor& total_weight) {
  const cpu::Target place(out, x.dtype());
  const double smooth = label_smoothing / double(s.c);
  double weights_total = 0;
  for (const double w : weights) weights_total += w;
  visit_float(x.dtype(), [&]<class T>() {
    const Upstream<T> upstream(grad, reduction, total_weight);
    over_runs(s, s.c, [&](const Run& run) {
      T* const to = place.data<T>() + run.base;
      T factor[kRun], even[kRun], hit[kRun];
      for (int64_t j = 0; j < run.count; ++j) {
        const int64_t c = classes[run.first + j];
        const double up = c < 0 ? 0.0 : upstream[run.first + j];
        const double own = c < 0 ? 0.0 : up * (1.0 - label_smoothing) * weights[size_t(c)];
        hit[j] = T(own);
        even[j] = T(up * smooth);
        factor[j] = T(own + up * smooth * weights_total);
      }
      layers<T>().plane_softmax_scaled(x.data<T>() + run.base, lse.data<T>() + run.first, factor, even, weights.data(),
                                       s.inner, s.c, run.count, to);
      for (int64_t j = 0; j < run.count; ++j) {
        const int64_t c = classes[run.first + j];
        if (c >= 0) to[c * s.inner + j] -= hit[j];
        for (int64_t k = 0; c < 0 && k < s.c; ++k) to[k * s.inner + j] = T(0);
      }
    });
  });
  place.finish();
}

void cross_entropy_backward_kernel(const Tensor& out, const Tensor& grad, const Tensor& input, const Tensor& target,
                                   const Tensor& weight, int64_t reduction, int64_t ignore_index,
                                   double label_smoothing, const Tensor& log_sum_exp, const Tensor& total_weight) {
  const ClassPlan s = infer::class_plan(input);
  const DType dtype = compute_dtype(out.dtype());
  const Tensor g = row_major(grad, dtype), lse = row_major(log_sum_exp, dtype), sum = row_major(total_weight, dtype);
  const Classes classes("cross_entropy_backward", target, s, ignore_index);
  const auto weights = weights_of(weight, s.c);
  const Tensor x = row_major(input, dtype);
  if (s.inner > 1 && s.c > 0)
    return plane_gradients(s, out, g, x, classes, weights, reduction, label_smoothing, lse, sum);
  const cpu::Target place(out, dtype);
  double weights_total = 0;
  for (double w : weights) weights_total += w;
  visit_float(dtype, [&]<class T>() {
    const double smooth = label_smoothing / double(s.c);
    const Upstream<T> upstream(g, reduction, sum);
    const Unlocked unlocked(x.numel() > 32768);
    parallel_for(classes.size(), std::max<int64_t>(1, 16384 / std::max<int64_t>(1, s.c)),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t i = begin; i < end; ++i) {
                     T* const to = place.data<T>() + i * s.c;
                     const int64_t c = classes[i];
                     if (c < 0) {
                       std::fill_n(to, s.c, T(0));
                       continue;
                     }
                     const double up = upstream[i], hit = (1.0 - label_smoothing) * weights[size_t(c)];
                     // d loss / d x[k] = p[k] * (hit + smooth * sum of weights) - smooth * weight[k] - hit [k is the
                     // class]
                     const double mass = hit + smooth * weights_total;
                     const bool even = !weight.defined() && mass != 0;
                     layers<T>().softmax_scaled(x.data<T>() + i * s.c, double(lse.data<T>()[i]), up * mass,
                                                even ? smooth / mass : 0.0, s.c, to);
                     for (int64_t k = 0; !even && smooth != 0 && k < s.c; ++k)
                       to[k] -= T(up * smooth * weights[size_t(k)]);
                     to[c] -= T(up * hit);
                   }
                 });
  });
  place.finish();
}

const bool registered = [] {
  kernel<op::mse_loss>(kCPU, mse_loss_kernel);
  kernel<op::mse_loss_backward>(kCPU, mse_loss_backward_kernel);
  kernel<op::l1_loss>(kCPU, l1_loss_kernel);
  kernel<op::l1_loss_backward>(kCPU, l1_loss_backward_kernel);
  kernel<op::smooth_l1_loss>(kCPU, smooth_l1_loss_kernel);
  kernel<op::smooth_l1_loss_backward>(kCPU, smooth_l1_loss_backward_kernel);
  kernel<op::huber_loss>(kCPU, huber_loss_kernel);
  kernel<op::huber_loss_backward>(kCPU, huber_loss_backward_kernel);
  kernel<op::bce_loss>(kCPU, bce_loss_kernel);
  kernel<op::bce_loss_backward>(kCPU, bce_loss_backward_kernel);
  kernel<op::bce_with_logits_loss>(kCPU, bce_with_logits_loss_kernel);
  kernel<op::bce_with_logits_loss_backward>(kCPU, bce_with_logits_loss_backward_kernel);
  kernel<op::nll_loss_forward>(kCPU, nll_loss_forward_kernel);
  kernel<op::nll_loss_backward>(kCPU, nll_loss_backward_kernel);
  kernel<op::cross_entropy_forward>(kCPU, cross_entropy_forward_kernel);
  kernel<op::cross_entropy_backward>(kCPU, cross_entropy_backward_kernel);
  return true;
}();

}  // namespace
}  // namespace taeda
