// CPU kernels of the loss family.
#include "taeda/ops/loss.h"

#include <algorithm>
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
using infer::ClassPlan;
using loops::layers;

template <class Body>
void visit_float(DType dtype, const Body& body) {
  if (dtype == DType::Float64) body.template operator()<double>();
  else body.template operator()<float>();
}

// --- Element-wise losses
// ----------------------------------------------------------------------------------------------

/// An operand broadcast to `sizes`, row-major, of `dtype`.
Tensor spread(const Tensor& t, IntSpan sizes, DType dtype) {
  return std::ranges::equal(t.sizes(), sizes) ? row_major(t, dtype) : row_major(ops::expand(t, sizes), dtype);
}

constexpr int64_t kPiece = 16384;

/// out = loss(input, target), reduced: fixed pieces, added in order.
void pair_loss(loops::PairLoss which, const Tensor& out, const Tensor& input, const Tensor& target, int64_t reduction,
               double parameter = 0) {
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
void pair_backward(loops::PairLoss which, const Tensor& out, const Tensor& grad, const Tensor& input,
                   const Tensor& target, int64_t reduction, double parameter = 0) {
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
std::vector<int64_t> classes_of(const char* op, const Tensor& target, const ClassPlan& s, int64_t ignore_index) {
  const Tensor t = row_major(target, DType::Int64);
  std::vector<int64_t> out(static_cast<size_t>(s.n * s.inner));
  const int64_t* const from = t.data<int64_t>();
  for (size_t i = 0; i < out.size(); ++i) {
    if (from[i] == ignore_index) {
      out[i] = -1;
      continue;
    }
    check(from[i] >= 0 && from[i] < s.c, ErrorKind::Index, op, ": argument 'target' has class ", from[i],
          ", expected 0 to ", s.c - 1);
    out[i] = from[i];
  }
  return out;
}

/// Weights as double: one for each class, ones when none are given.
std::vector<double> weights_of(const Tensor& weight, int64_t classes) {
  std::vector<double> out(static_cast<size_t>(classes), 1.0);
  if (!weight.defined()) return out;
  const Tensor w = row_major(weight, DType::Float64);
  std::copy_n(w.data<double>(), classes, out.begin());
  return out;
}

/// Writes losses of all positions (reduction none) or their sum or mean; and the sum of the weights met.
template <class T>
void finish_loss(T* output, T* total_weight, const std::vector<double>& losses, double weight_sum, int64_t reduction) {
  *total_weight = T(weight_sum);
  if (reduction == 0) {
    for (size_t i = 0; i < losses.size(); ++i) output[i] = T(losses[i]);
    return;
  }
  double total = 0;
  for (double loss : losses) total += loss;
  *output = T(reduction == 1 ? total / weight_sum : total);
}

void nll_loss_forward_kernel(const Tensor& output, const Tensor& total_weight, const Tensor& input,
                             const Tensor& target, const Tensor& weight, int64_t reduction, int64_t ignore_index) {
  const ClassPlan s = infer::class_plan(input);
  const DType dtype = compute_dtype(input.dtype());
  const Tensor x = row_major(input, dtype);
  const auto classes = classes_of("nll_loss", target, s, ignore_index);
  const auto weights = weights_of(weight, s.c);
  const cpu::Target out(output, dtype), sum(total_weight, dtype);
  visit_float(dtype, [&]<class T>() {
    double weight_sum = 0, total = 0;
    for (int64_t image = 0, i = 0; image < s.n; ++image) {
      const T* const planes = x.data<T>() + image * s.c * s.inner;
      for (int64_t at = 0; at < s.inner; ++at, ++i) {
        const int64_t c = classes[size_t(i)];
        const double loss = c < 0 ? 0.0 : -weights[size_t(c)] * double(planes[c * s.inner + at]);
        if (reduction == 0) out.data<T>()[i] = T(loss);
        total += loss;
        weight_sum += c < 0 ? 0.0 : weights[size_t(c)];
      }
    }
    *sum.data<T>() = T(weight_sum);
    if (reduction != 0) *out.data<T>() = T(reduction == 1 ? total / weight_sum : total);
  });
  out.finish();
  sum.finish();
}

/// The factor of grad for position i: weight, and for the mean over the sum of weights.
template <class T>
double upstream(const T* grad, int64_t i, int64_t reduction, double total_weight) {
  return reduction == 0 ? double(grad[i]) : reduction == 1 ? double(*grad) / total_weight : double(*grad);
}

void nll_loss_backward_kernel(const Tensor& out, const Tensor& grad, const Tensor& input, const Tensor& target,
                              const Tensor& weight, int64_t reduction, int64_t ignore_index,
                              const Tensor& total_weight) {
  const ClassPlan s = infer::class_plan(input);
  const DType dtype = compute_dtype(out.dtype());
  const auto classes = classes_of("nll_loss_backward", target, s, ignore_index);
  const auto weights = weights_of(weight, s.c);
  const Tensor g = row_major(grad, dtype), sum = row_major(total_weight, dtype);
  const cpu::Target place(out, dtype);
  visit_float(dtype, [&]<class T>() {
    T* const to = place.data<T>();
    std::fill_n(to, out.numel(), T(0));
    for (int64_t i = 0; i < int64_t(classes.size()); ++i) {
      const int64_t c = classes[size_t(i)];
      if (c < 0) continue;
      to[(i / s.inner * s.c + c) * s.inner + i % s.inner] =
          T(-weights[size_t(c)] * upstream(g.data<T>(), i, reduction, double(*sum.data<T>())));
    }
  });
  place.finish();
}

/// Calls body(image, first position, count) for runs of positions that lie side by side in a plane.
template <class Body>
void over_planes(const ClassPlan& s, const Body& body) {
  constexpr int64_t kRun = 512;
  parallel_for(s.n * s.inner, std::max<int64_t>(kRun, 16384 / s.c), [&](int64_t begin, int64_t end) {
    while (begin < end) {
      const int64_t image = begin / s.inner, at = begin % s.inner;
      const int64_t count = std::min({end - begin, s.inner - at, kRun});
      body(image, at, count);
      begin += count;
    }
  });
}

/// Losses of images, whose classes are planes: from the logarithms of their probabilities, without turning them over.
template <class T>
void plane_losses(const ClassPlan& s, const Tensor& x, const Tensor& logs, const std::vector<int64_t>& classes,
                  const std::vector<double>& weights, double label_smoothing, T* lse, double* losses) {
  const double smooth = label_smoothing / double(s.c);
  const Unlocked unlocked(x.numel() > 32768);
  over_planes(s, [&](int64_t image, int64_t at, int64_t count) {
    const int64_t start = image * s.c * s.inner + at, first = image * s.inner + at;
    const T *const from = x.data<T>() + start, *const log = logs.data<T>() + start;
    T *const sum = lse + first, best[512];
    for (int64_t j = 0; j < count; ++j) {
      best[j] = log[j];
      sum[j] = from[j] - log[j];
    }
    // The most probable class tells the sum with the fewest digits lost.
    for (int64_t k = 1; k < s.c; ++k)
      for (int64_t j = 0; j < count; ++j) {
        const T found = log[k * s.inner + j], value = from[k * s.inner + j] - found;
        sum[j] = found > best[j] ? value : sum[j];
        best[j] = found > best[j] ? found : best[j];
      }
    for (int64_t j = 0; j < count; ++j) {
      const int64_t c = classes[size_t(first + j)];
      if (c >= 0) losses[first + j] = -(1.0 - label_smoothing) * weights[size_t(c)] * double(log[c * s.inner + j]);
    }
    for (int64_t k = 0; smooth != 0 && k < s.c; ++k)
      for (int64_t j = 0; j < count; ++j)
        if (classes[size_t(first + j)] >= 0)
          losses[first + j] -= smooth * weights[size_t(k)] * double(log[k * s.inner + j]);
  });
}

void cross_entropy_forward_kernel(const Tensor& output, const Tensor& log_sum_exp, const Tensor& total_weight,
                                  const Tensor& input, const Tensor& target, const Tensor& weight, int64_t reduction,
                                  int64_t ignore_index, double label_smoothing) {
  const ClassPlan s = infer::class_plan(input);
  const DType dtype = compute_dtype(input.dtype());
  const bool planes = s.inner > 1 && s.c > 0;
  const Tensor x = planes ? ops::reshape(row_major(input, dtype), Shape{s.n, s.c, s.inner}) : row_major(input, dtype);
  const Tensor logs = planes ? ops::log_softmax(x, 1) : Tensor();
  const auto classes = classes_of("cross_entropy_loss", target, s, ignore_index);
  const auto weights = weights_of(weight, s.c);
  const cpu::Target out(output, dtype), lse(log_sum_exp, dtype), sum(total_weight, dtype);
  visit_float(dtype, [&]<class T>() {
    std::vector<double> losses(classes.size(), 0.0);
    const double smooth = label_smoothing / double(s.c);
    if (planes) {
      plane_losses(s, x, logs, classes, weights, label_smoothing, lse.data<T>(), losses.data());
    } else {
      const Unlocked unlocked(x.numel() > 32768);
      parallel_for(int64_t(classes.size()), std::max<int64_t>(1, 16384 / std::max<int64_t>(1, s.c)),
                   [&](int64_t begin, int64_t end) {
                     for (int64_t i = begin; i < end; ++i) {
                       const T* const row = x.data<T>() + i * s.c;
                       const double l = layers<T>().log_sum_exp(row, s.c);
                       lse.data<T>()[i] = T(l);
                       const int64_t c = classes[size_t(i)];
                       if (c < 0) continue;
                       double loss = (1.0 - label_smoothing) * weights[size_t(c)] * (l - double(row[c]));
                       if (smooth != 0 && !weight.defined())
                         loss += smooth * (double(s.c) * l - layers<T>().row_sum(row, s.c));
                       for (int64_t k = 0; smooth != 0 && weight.defined() && k < s.c; ++k)
                         loss += smooth * weights[size_t(k)] * (l - double(row[k]));
                       losses[size_t(i)] = loss;
                     }
                   });
    }
    double weight_sum = 0;
    for (int64_t c : classes) weight_sum += c < 0 ? 0.0 : weights[size_t(c)];
    finish_loss(out.data<T>(), sum.data<T>(), losses, weight_sum, reduction);
  });
  out.finish();
  lse.finish();
  sum.finish();
}

/// The gradient of images, in their own order.
void plane_gradients(const ClassPlan& s, const Tensor& out, const Tensor& grad, const Tensor& x,
                     const std::vector<int64_t>& classes, const std::vector<double>& weights, int64_t reduction,
                     double label_smoothing, const Tensor& lse, const Tensor& total_weight) {
  const DType dtype = x.dtype();
  const bool fits = out.contiguous() && out.dtype() == dtype;
  const Tensor place = fits ? ops::reshape(out, x.sizes()) : empty(x.sizes(), dtype);
  ops::sub_out(place, x, ops::reshape(lse, Shape{s.n, 1, s.inner}));
  ops::exp_(place);
  const double smooth = label_smoothing / double(s.c);
  double weights_total = 0;
  for (const double w : weights) weights_total += w;
  visit_float(dtype, [&]<class T>() {
    const Unlocked unlocked(x.numel() > 32768);
    over_planes(s, [&](int64_t image, int64_t at, int64_t count) {
      T* const to = place.data<T>() + image * s.c * s.inner + at;
      const int64_t first = image * s.inner + at;
      double factor[512], even[512];
      for (int64_t j = 0; j < count; ++j) {
        const int64_t c = classes[size_t(first + j)];
        const double up = c < 0 ? 0.0 : upstream(grad.data<T>(), first + j, reduction, double(*total_weight.data<T>()));
        even[j] = up * smooth;
        factor[j] = c < 0 ? 0.0 : up * ((1.0 - label_smoothing) * weights[size_t(c)] + smooth * weights_total);
      }
      for (int64_t k = 0; k < s.c; ++k) {
        T* const row = to + k * s.inner;
        const double w = weights[size_t(k)];
        for (int64_t j = 0; j < count; ++j) row[j] = T(double(row[j]) * factor[j] - even[j] * w);
      }
      for (int64_t j = 0; j < count; ++j) {
        const int64_t c = classes[size_t(first + j)];
        if (c < 0) {
          for (int64_t k = 0; k < s.c; ++k) to[k * s.inner + j] = T(0);
          continue;
        }
        const double up = upstream(grad.data<T>(), first + j, reduction, double(*total_weight.data<T>()));
        to[c * s.inner + j] -= T(up * (1.0 - label_smoothing) * weights[size_t(c)]);
      }
    });
  });
  if (!fits) ops::copy_(out, ops::reshape(place, out.sizes()));
}

void cross_entropy_backward_kernel(const Tensor& out, const Tensor& grad, const Tensor& input, const Tensor& target,
                                   const Tensor& weight, int64_t reduction, int64_t ignore_index,
                                   double label_smoothing, const Tensor& log_sum_exp, const Tensor& total_weight) {
  const ClassPlan s = infer::class_plan(input);
  const DType dtype = compute_dtype(out.dtype());
  const Tensor g = row_major(grad, dtype), lse = row_major(log_sum_exp, dtype), sum = row_major(total_weight, dtype);
  const auto classes = classes_of("cross_entropy_backward", target, s, ignore_index);
  const auto weights = weights_of(weight, s.c);
  if (s.inner > 1 && s.c > 0) {
    const Tensor x = ops::reshape(row_major(input, dtype), Shape{s.n, s.c, s.inner});
    return plane_gradients(s, out, g, x, classes, weights, reduction, label_smoothing, lse, sum);
  }
  const Tensor x = row_major(input, dtype);
  const bool rows_fit = out.contiguous() && out.dtype() == dtype;
  const Tensor place = rows_fit ? out : empty(Shape{s.n, s.inner, s.c}, dtype);
  double weights_total = 0;
  for (double w : weights) weights_total += w;
  visit_float(dtype, [&]<class T>() {
    const double smooth = label_smoothing / double(s.c);
    const Unlocked unlocked(x.numel() > 32768);
    parallel_for(int64_t(classes.size()), std::max<int64_t>(1, 16384 / std::max<int64_t>(1, s.c)),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t i = begin; i < end; ++i) {
                     T* const to = place.data<T>() + i * s.c;
                     const int64_t c = classes[size_t(i)];
                     if (c < 0) {
                       std::fill_n(to, s.c, T(0));
                       continue;
                     }
                     const double up = upstream(g.data<T>(), i, reduction, double(*sum.data<T>())),
                                  hit = (1.0 - label_smoothing) * weights[size_t(c)];
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
  if (!rows_fit) ops::copy_(out, ops::reshape(ops::transpose(place, 1, 2), out.sizes()));
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
