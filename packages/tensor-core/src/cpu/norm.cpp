// CPU kernels of the norm family; inner loops in cpu/loops/norm.h.
#include "taeda/ops/norm.h"

#include <cmath>
#include <limits>
#include <vector>

#include "cpu/loops/layers.h"
#include "cpu/prepare.h"
#include "infer/dtypes.h"
#include "taeda/elementwise.h"
#include "taeda/parallel.h"

namespace taeda {
namespace {

using cpu::row_major;
using infer::statistics_dtype;
using loops::layers;

template <class Body>
void visit_norm(DType dtype, const Body& body) {
  if (dtype == DType::Float64) body.template operator()<double>();
  else body.template operator()<float>();
}
template <class T>
const T* data_or_null(const Tensor& t) {
  return t.defined() ? t.data<T>() : nullptr;
}

// --- Batch norm -----------------------------------------------------------------------------------------------------

// Note [Two layouts of channels]
// With channels innermost (channels-last, (N, C), or any dense order with stride(1) == 1) the tensor is `rows` rows of
// C numbers. Row-major (N, C, ...) is N * C planes of one channel each. Anything else is copied into the latter.
struct Channels {
  Tensor x;
  bool innermost;
  int64_t n, c, inner;  // inner: pixels of one plane
  Channels(const Tensor& input, DType dtype) : n(input.size(0)), c(input.size(1)) {
    innermost = channels_innermost(input);
    x = innermost ? as_dtype(input, dtype) : row_major(input, dtype);
    inner = n > 0 && c > 0 ? input.numel() / (n * c) : 0;
  }
  static bool channels_innermost(const Tensor& t) {
    return t.dense() && t.stride(1) == 1 && (!t.contiguous() || t.numel() == t.size(0) * t.size(1));
  }
  static Tensor as_dtype(const Tensor& t, DType dtype) {
    if (t.dtype() == dtype) return t;
    Tensor copy = empty_strided(t.sizes(), t.strides(), dtype);
    ops::copy_(copy, t);
    return copy;
  }
  /// `t` in the same order of bytes as x.
  Tensor like(const Tensor& t) const {
    if (t.dtype() == x.dtype() && same_order(t)) return t;
    Tensor copy = empty_strided(x.sizes(), x.strides(), x.dtype());
    ops::copy_(copy, t);
    return copy;
  }
  bool same_order(const Tensor& t) const {
    for (int64_t d = 0; d < x.dim(); ++d)
      if (x.size(d) != 1 && t.stride(d) != x.stride(d)) return false;
    return true;
  }
  Tensor place(const Tensor& out) const {
    return out.dtype() == x.dtype() && same_order(out) ? out : empty_strided(x.sizes(), x.strides(), x.dtype());
  }
  int64_t rows() const { return n * inner; }
  int64_t numel() const { return n * c * inner; }
};

/// Rows of one fixed piece: some tens of thousands of elements, at most 64 pieces, so that partial sums stay few.
int64_t rows_per_piece(int64_t rows, int64_t c) {
  return std::max({int64_t(32), 32768 / std::max<int64_t>(c, 1), (rows + 63) / 64});
}

/// Two sums for each channel over everything: total[0..c) and total[c..2c), by fixed pieces added in order.
template <class RowSums, class PlaneSums>
std::vector<double> reduce_channels(const Channels& in, const RowSums& row_sums, const PlaneSums& plane_sums) {
  const int64_t c = in.c;
  std::vector<double> total(size_t(2 * c), 0.0);
  if (in.innermost) {
    const int64_t grain = rows_per_piece(in.rows(), c), pieces = (in.rows() + grain - 1) / grain;
    std::vector<double> parts(size_t(pieces * 2 * c));
    parallel_for(pieces, 1, [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; ++p)
        row_sums(p * grain * c, std::min(in.rows(), (p + 1) * grain) - p * grain, parts.data() + p * 2 * c);
    });
    for (int64_t p = 0; p < pieces; ++p)
      for (int64_t j = 0; j < 2 * c; ++j) total[size_t(j)] += parts[size_t(p * 2 * c + j)];
  } else {
    parallel_for(c, std::max<int64_t>(1, 32768 / std::max<int64_t>(1, in.n * in.inner)),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t j = begin; j < end; ++j)
                     for (int64_t i = 0; i < in.n; ++i) {
                       double sums[2];
                       plane_sums((i * c + j) * in.inner, j, sums);
                       total[size_t(j)] += sums[0];
                       total[size_t(c + j)] += sums[1];
                     }
                 });
  }
  return total;
}

/// Runs over all elements: rows(offset, count) or plane(offset, channel).
template <class Rows, class Plane>
void map_channels(const Channels& in, const Rows& rows, const Plane& plane) {
  if (in.innermost) {
    parallel_for(in.rows(), std::max<int64_t>(1, 32768 / std::max<int64_t>(in.c, 1)),
                 [&](int64_t begin, int64_t end) { rows(begin * in.c, end - begin); });
  } else {
    parallel_for(in.n * in.c, std::max<int64_t>(1, 32768 / std::max<int64_t>(1, in.inner)),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t p = begin; p < end; ++p) plane(p * in.inner, p % in.c);
                 });
  }
}

/// Mean and biased variance of each channel, around the mean of its first few values so that little cancels.
template <class T>
void batch_moments(const Channels& in, std::vector<double>& mean, std::vector<double>& variance) {
  const T* const x = in.x.data<T>();
  const int64_t c = in.c, count = in.rows();
  std::vector<T> shift(static_cast<size_t>(c));
  const int64_t probe = std::min<int64_t>(in.innermost ? count : in.inner, 8);
  for (int64_t j = 0; j < c; ++j) {
    T sum(0);
    for (int64_t i = 0; i < probe; ++i) sum += in.innermost ? x[i * c + j] : x[j * in.inner + i];
    shift[size_t(j)] = probe ? sum / T(probe) : T(0);
  }
  const auto sums = reduce_channels(
      in,
      [&](int64_t at, int64_t rows, double* out) { layers<T>().channel_moments(x + at, shift.data(), rows, c, out); },
      [&](int64_t at, int64_t j, double* out) {
        layers<T>().plane_moments(x + at, double(shift[size_t(j)]), in.inner, out);
      });
  for (int64_t j = 0; j < c; ++j) {
    const double offset = sums[size_t(j)] / double(count);
    mean[size_t(j)] = double(shift[size_t(j)]) + offset;
    variance[size_t(j)] = std::max(sums[size_t(c + j)] / double(count) - offset * offset, 0.0);
  }
}

double value_at(const Tensor& t, int64_t i) {
  double out = 0;
  visit_dtype(t.dtype(), [&]<class V>() {
    if constexpr (!std::is_same_v<V, Complex64> && !std::is_same_v<V, Complex128>)
      out = double(t.data<V>()[i * t.stride(0)]);
  });
  return out;
}
void blend_running(const Tensor& running, const std::vector<double>& batch, double factor, double momentum) {
  if (!running.defined()) return;
  visit_dtype(running.dtype(), [&]<class V>() {
    if constexpr (is_floating(dtype_of<V>)) {
      for (size_t j = 0; j < batch.size(); ++j) {
        V& old = running.data<V>()[int64_t(j) * running.stride(0)];
        old = V((1.0 - momentum) * double(old) + momentum * batch[j] * factor);
      }
    }
  });
}

template <class T>
void batch_norm_typed(const Tensor& result, const Tensor& save_mean, const Tensor& save_invstd, const Channels& in,
                      const Tensor& weight, const Tensor& bias, const Tensor& running_mean, const Tensor& running_var,
                      bool training, double momentum, double eps) {
  const size_t c = size_t(in.c);
  std::vector<double> mean(c), variance(c);
  const Tensor to = in.place(result);
  {
    const Unlocked unlocked(in.numel() > 32768);
    if (training) batch_moments<T>(in, mean, variance);
  }
  std::vector<T> center(c), scale(c), offset(c);
  for (size_t j = 0; j < c; ++j) {
    if (!training) mean[j] = value_at(running_mean, int64_t(j)), variance[j] = value_at(running_var, int64_t(j));
    const double invstd = 1.0 / std::sqrt(variance[j] + eps);
    save_mean.data<T>()[j] = T(mean[j]);
    save_invstd.data<T>()[j] = T(invstd);
    const double factor = invstd * (weight.defined() ? value_at(weight, int64_t(j)) : 1.0);
    center[j] = T(mean[j]);
    scale[j] = T(factor);
    offset[j] = T((bias.defined() ? value_at(bias, int64_t(j)) : 0.0) - (mean[j] - double(center[j])) * factor);
  }
  {
    const Unlocked unlocked(in.numel() > 32768);
    const T* const x = in.x.data<T>();
    T* const y = to.data<T>();
    map_channels(
        in,
        [&](int64_t at, int64_t rows) {
          layers<T>().channel_affine(x + at, center.data(), scale.data(), offset.data(), rows, in.c, y + at);
        },
        [&](int64_t at, int64_t j) {
          layers<T>().plane_affine(x + at, double(center[size_t(j)]), double(scale[size_t(j)]),
                                   double(offset[size_t(j)]), in.inner, y + at);
        });
  }
  if (!to.same(result)) ops::copy_(result, to);
  if (training && in.rows() > 0) {
    const double count = double(in.rows());
    blend_running(running_mean, mean, 1.0, momentum);
    blend_running(running_var, variance, count > 1 ? count / (count - 1) : 1.0, momentum);
  }
}

void native_batch_norm_kernel(const Tensor& result, const Tensor& save_mean, const Tensor& save_invstd,
                              const Tensor& input, const Tensor& weight, const Tensor& bias, const Tensor& running_mean,
                              const Tensor& running_var, bool training, double momentum, double eps) {
  const DType dtype = statistics_dtype(input.dtype());
  if (!save_mean.contiguous() || !save_invstd.contiguous()) [[unlikely]] {
    const Tensor mean = empty(save_mean.sizes(), dtype), invstd = empty(save_invstd.sizes(), dtype);
    native_batch_norm_kernel(result, mean, invstd, input, weight, bias, running_mean, running_var, training, momentum,
                             eps);
    copy_elements(save_mean, mean);
    return copy_elements(save_invstd, invstd);
  }
  const Channels in(input, dtype);
  visit_norm(dtype, [&]<class T>() {
    batch_norm_typed<T>(result, save_mean, save_invstd, in, weight, bias, running_mean, running_var, training, momentum,
                        eps);
  });
}

template <class T>
void batch_norm_backward_typed(const Channels& in, const Tensor& grad, const Tensor& weight, const Tensor& mean,
                               const Tensor& invstd, bool training, const Tensor& grad_input, const Tensor& grad_weight,
                               const Tensor& grad_bias) {
  const size_t c = size_t(in.c);
  const T *const g = grad.data<T>(), *const x = in.x.data<T>();
  const T* const means = mean.data<T>();
  const Unlocked unlocked(in.numel() > 32768);
  const auto sums = reduce_channels(
      in,
      [&](int64_t at, int64_t rows, double* out) {
        layers<T>().channel_products(g + at, x + at, means, rows, in.c, out);
      },
      [&](int64_t at, int64_t j, double* out) {
        layers<T>().plane_products(g + at, x + at, double(means[j]), in.inner, out);
      });
  // grad_x = a * grad + b * (x - mean) + d
  std::vector<T> a(c), b(c), d(c);
  const double count = double(in.rows());
  for (size_t j = 0; j < c; ++j) {
    // Nothing is to be learned from an empty batch, whose statistics are NaN.
    const double r = count > 0 ? double(invstd.data<T>()[j]) : 0.0,
                 w = weight.defined() ? value_at(weight, int64_t(j)) : 1.0;
    if (grad_weight.defined()) grad_weight.data<T>()[j] = T(sums[c + j] * r);
    if (grad_bias.defined()) grad_bias.data<T>()[j] = T(sums[j]);
    const double slope = training ? -w * r * r * r * sums[c + j] / count : 0.0;
    a[j] = T(w * r);
    b[j] = T(slope);
    d[j] = T(training ? -w * r * sums[j] / count : 0.0);
  }
  if (!grad_input.defined()) return;
  T* const to = grad_input.data<T>();
  // In evaluation x has no part in it, be it infinite.
  if (!training)
    return map_channels(
        in,
        [&](int64_t at, int64_t rows) {  // d is zero here, and so serves as the centre too
          layers<T>().channel_affine(g + at, d.data(), a.data(), d.data(), rows, in.c, to + at);
        },
        [&](int64_t at, int64_t j) {
          layers<T>().plane_affine(g + at, 0.0, double(a[size_t(j)]), 0.0, in.inner, to + at);
        });
  map_channels(
      in,
      [&](int64_t at, int64_t rows) {
        layers<T>().channel_combine(g + at, x + at, means, a.data(), b.data(), d.data(), rows, in.c, to + at);
      },
      [&](int64_t at, int64_t j) {
        layers<T>().plane_combine(g + at, x + at, double(means[j]), double(a[size_t(j)]), double(b[size_t(j)]),
                                  double(d[size_t(j)]), in.inner, to + at);
      });
}

/// A gradient of a parameter in the dtype of the parameter's kind, or undefined.
Tensor back(const Tensor& t, DType dtype) {
  if (!t.defined() || t.dtype() == dtype) return t;
  Tensor cast = empty_strided(t.sizes(), t.strides(), dtype);
  ops::copy_(cast, t);
  return cast;
}

std::tuple<Tensor, Tensor, Tensor> batch_norm_backward_kernel(const Tensor& grad, const Tensor& input,
                                                              const Tensor& weight, const Tensor& save_mean,
                                                              const Tensor& save_invstd, bool training,
                                                              int64_t output_mask) {
  const DType dtype = statistics_dtype(input.dtype());
  const Channels in(input, dtype);
  const Tensor g = in.like(grad);
  const Tensor grad_input = output_mask & 1 ? empty_strided(in.x.sizes(), in.x.strides(), dtype) : Tensor();
  const Tensor grad_weight = output_mask & 2 ? empty(Shape{in.c}, dtype) : Tensor(),
               grad_bias = output_mask & 4 ? empty(Shape{in.c}, dtype) : Tensor();
  visit_norm(dtype, [&]<class T>() {
    batch_norm_backward_typed<T>(in, g, weight, row_major(save_mean, dtype), row_major(save_invstd, dtype), training,
                                 grad_input, grad_weight, grad_bias);
  });
  const DType parameter = weight.defined() ? weight.dtype() : dtype;
  return {back(grad_input, input.dtype()), back(grad_weight, parameter), back(grad_bias, parameter)};
}

// --- Layer norm -----------------------------------------------------------------------------------------------------

void native_layer_norm_kernel(const Tensor& result, const Tensor& mean, const Tensor& rstd, const Tensor& input,
                              IntSpan normalized_shape, const Tensor& weight, const Tensor& bias, double eps) {
  const DType dtype = statistics_dtype(input.dtype());
  const int64_t n = product(normalized_shape), rows = mean.numel();
  if (n == 0) {
    ops::fill_(mean, Tensor(0));
    ops::fill_(rstd, Tensor(std::numeric_limits<double>::quiet_NaN()));
    return;
  }
  const cpu::Target target(result, dtype);
  const Tensor x = row_major(input, dtype), w = cpu::row_major_or_none(weight, dtype),
               b = cpu::row_major_or_none(bias, dtype);
  visit_norm(dtype, [&]<class T>() {
    const Unlocked unlocked(input.numel() > 32768);
    parallel_for(rows, std::max<int64_t>(1, 16384 / n), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        layers<T>().layer_norm(x.data<T>() + i * n, data_or_null<T>(w), data_or_null<T>(b), n, eps,
                               target.data<T>() + i * n, mean.data<T>() + i, rstd.data<T>() + i);
    });
  });
  target.finish();
}

/// Rows cut into at most 64 fixed pieces, each with its own sums for the parameters.
template <class T>
void layer_norm_backward_typed(const Tensor& g, const Tensor& x, const Tensor& mean, const Tensor& rstd,
                               const Tensor& weight, int64_t rows, int64_t n, const Tensor& grad_input,
                               const Tensor& grad_weight, const Tensor& grad_bias) {
  const int64_t grain = std::max<int64_t>({1, 16384 / n, (rows + 63) / 64}), pieces = (rows + grain - 1) / grain;
  std::vector<T> parts(grad_weight.defined() || grad_bias.defined() ? size_t(pieces * 2 * n) : 0, T(0));
  const Unlocked unlocked(rows * n > 32768);
  parallel_for(pieces, 1, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p)
      for (int64_t i = p * grain; i < std::min(rows, (p + 1) * grain); ++i)
        layers<T>().layer_norm_backward(g.data<T>() + i * n, x.data<T>() + i * n, data_or_null<T>(weight),
                                        double(mean.data<T>()[i]), double(rstd.data<T>()[i]), n,
                                        grad_input.defined() ? grad_input.data<T>() + i * n : nullptr,
                                        grad_weight.defined() ? parts.data() + p * 2 * n : nullptr,
                                        grad_bias.defined() ? parts.data() + (p * 2 + 1) * n : nullptr);
  });
  const auto add_up = [&](const Tensor& out, int64_t which) {
    if (!out.defined()) return;
    for (int64_t j = 0; j < n; ++j) {
      double sum = 0;
      for (int64_t p = 0; p < pieces; ++p) sum += double(parts[size_t((p * 2 + which) * n + j)]);
      out.data<T>()[j] = T(sum);
    }
  };
  add_up(grad_weight, 0);
  add_up(grad_bias, 1);
}

std::tuple<Tensor, Tensor, Tensor> layer_norm_backward_kernel(const Tensor& grad, const Tensor& input,
                                                              IntSpan normalized_shape, const Tensor& mean,
                                                              const Tensor& rstd, const Tensor& weight,
                                                              int64_t output_mask) {
  const DType dtype = statistics_dtype(input.dtype());
  const int64_t n = product(normalized_shape), rows = n ? input.numel() / n : 0;
  const Tensor grad_input = output_mask & 1 ? empty(input.sizes(), dtype) : Tensor(),
               grad_weight = output_mask & 2 ? empty(normalized_shape, dtype) : Tensor(),
               grad_bias = output_mask & 4 ? empty(normalized_shape, dtype) : Tensor();
  visit_norm(dtype, [&]<class T>() {
    if (n > 0)
      layer_norm_backward_typed<T>(row_major(grad, dtype), row_major(input, dtype), row_major(mean, dtype),
                                   row_major(rstd, dtype), cpu::row_major_or_none(weight, dtype), rows, n, grad_input,
                                   grad_weight, grad_bias);
  });
  const DType parameter = weight.defined() ? weight.dtype() : dtype;
  return {back(grad_input, input.dtype()), back(grad_weight, parameter), back(grad_bias, parameter)};
}

// --- Group norm -----------------------------------------------------------------------------------------------------

/// (n, groups) rows of `channels` planes of `inner` elements.
struct Groups {
  int64_t rows, groups, channels, inner;
  Groups(const Tensor& input, int64_t num_groups)
      : rows(input.size(0) * num_groups),
        groups(num_groups),
        channels(input.size(1) / num_groups),
        inner(input.numel() ? input.numel() / (input.size(0) * input.size(1)) : 0) {}
  int64_t size() const { return channels * inner; }
  int64_t grain() const { return std::max<int64_t>(1, 16384 / std::max<int64_t>(1, size())); }
};

void native_group_norm_kernel(const Tensor& result, const Tensor& mean, const Tensor& rstd, const Tensor& input,
                              int64_t num_groups, const Tensor& weight, const Tensor& bias, double eps) {
  const DType dtype = statistics_dtype(input.dtype());
  const Groups s(input, num_groups);
  const cpu::Target target(result, dtype);
  const Tensor x = row_major(input, dtype), w = cpu::row_major_or_none(weight, dtype),
               b = cpu::row_major_or_none(bias, dtype);
  visit_norm(dtype, [&]<class T>() {
    const Unlocked unlocked(input.numel() > 32768);
    parallel_for(s.rows, s.grain(), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const T* const from = x.data<T>() + i * s.size();
        double sums[2];
        layers<T>().plane_moments(from, 0.0, s.size(), sums);
        const double center = sums[0] / double(s.size());
        layers<T>().plane_moments(from, center, s.size(), sums);
        const double rest = sums[0] / double(s.size()),
                     r = 1.0 / std::sqrt(std::max(sums[1] / double(s.size()) - rest * rest, 0.0) + eps);
        mean.data<T>()[i] = T(center);
        rstd.data<T>()[i] = T(r);
        for (int64_t j = 0; j < s.channels; ++j) {
          const int64_t channel = i % s.groups * s.channels + j;
          const double scale = r * (w.defined() ? double(w.data<T>()[channel]) : 1.0);
          const double offset = (b.defined() ? double(b.data<T>()[channel]) : 0.0) - rest * scale;
          layers<T>().plane_affine(from + j * s.inner, center, scale, offset, s.inner,
                                   target.data<T>() + i * s.size() + j * s.inner);
        }
      }
    });
  });
  target.finish();
}

template <class T>
void group_norm_backward_typed(const Groups& s, const Tensor& g, const Tensor& x, const Tensor& mean,
                               const Tensor& rstd, const Tensor& weight, const Tensor& grad_input,
                               const Tensor& grad_weight, const Tensor& grad_bias) {
  const int64_t all = s.groups * s.channels;
  // For each (sample, channel): sums of grad and of grad * (x - mean).
  std::vector<double> sums(size_t(s.rows * s.channels * 2));
  const Unlocked unlocked(g.numel() > 32768);
  parallel_for(s.rows, s.grain(), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const double m = double(mean.data<T>()[i]), r = double(rstd.data<T>()[i]);
      const T *const from = g.data<T>() + i * s.size(), *const xs = x.data<T>() + i * s.size();
      double total = 0, products = 0;
      const auto factor = [&](int64_t j) {
        return weight.defined() ? double(weight.data<T>()[i % s.groups * s.channels + j]) : 1.0;
      };
      for (int64_t j = 0; j < s.channels; ++j) {
        double* const two = sums.data() + (i * s.channels + j) * 2;
        layers<T>().plane_products(from + j * s.inner, xs + j * s.inner, m, s.inner, two);
        total += two[0] * factor(j);
        products += two[1] * factor(j);
      }
      if (!grad_input.defined()) continue;
      const double slope = -r * r * r * products / double(s.size()), offset = -r * total / double(s.size());
      for (int64_t j = 0; j < s.channels; ++j)
        layers<T>().plane_combine(from + j * s.inner, xs + j * s.inner, m, r * factor(j), slope, offset, s.inner,
                                  grad_input.data<T>() + i * s.size() + j * s.inner);
    }
  });
  for (int64_t channel = 0; channel < all; ++channel) {
    double weight_sum = 0, bias_sum = 0;
    for (int64_t n = 0; n < s.rows / s.groups; ++n) {
      const double* const two = sums.data() + (n * all + channel) * 2;
      bias_sum += two[0];
      weight_sum += two[1] * double(rstd.data<T>()[n * s.groups + channel / s.channels]);
    }
    if (grad_weight.defined()) grad_weight.data<T>()[channel] = T(weight_sum);
    if (grad_bias.defined()) grad_bias.data<T>()[channel] = T(bias_sum);
  }
}

std::tuple<Tensor, Tensor, Tensor> group_norm_backward_kernel(const Tensor& grad, const Tensor& input,
                                                              int64_t num_groups, const Tensor& mean,
                                                              const Tensor& rstd, const Tensor& weight,
                                                              int64_t output_mask) {
  const DType dtype = statistics_dtype(input.dtype());
  const Groups s(input, num_groups);
  const Shape channels{input.size(1)};
  const Tensor grad_input = output_mask & 1 ? empty(input.sizes(), dtype) : Tensor(),
               grad_weight = output_mask & 2 ? empty(channels, dtype) : Tensor(),
               grad_bias = output_mask & 4 ? empty(channels, dtype) : Tensor();
  visit_norm(dtype, [&]<class T>() {
    group_norm_backward_typed<T>(s, row_major(grad, dtype), row_major(input, dtype), row_major(mean, dtype),
                                 row_major(rstd, dtype), cpu::row_major_or_none(weight, dtype), grad_input, grad_weight,
                                 grad_bias);
  });
  const DType parameter = weight.defined() ? weight.dtype() : dtype;
  return {back(grad_input, input.dtype()), back(grad_weight, parameter), back(grad_bias, parameter)};
}

const bool registered = [] {
  kernel<op::native_batch_norm>(kCPU, native_batch_norm_kernel);
  kernel<op::batch_norm_backward>(kCPU, batch_norm_backward_kernel);
  kernel<op::native_layer_norm>(kCPU, native_layer_norm_kernel);
  kernel<op::layer_norm_backward>(kCPU, layer_norm_backward_kernel);
  kernel<op::native_group_norm>(kCPU, native_group_norm_kernel);
  kernel<op::group_norm_backward>(kCPU, group_norm_backward_kernel);
  return true;
}();

}  // namespace
}  // namespace taeda
