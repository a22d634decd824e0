// CPU kernels of batch and layer norms; inner loops in cpu/loops/norm.h.
#include "taeda/ops/norm.h"

#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "cpu/channels.h"
#include "cpu/converted.h"
#include "cpu/loops/layers.h"
#include "cpu/prepare.h"
#include "infer/dtypes.h"
#include "taeda/elementwise.h"
#include "taeda/parallel.h"

namespace taeda {
namespace {

using cpu::back;
using cpu::Channels;
using cpu::data_or_null;
using cpu::planes_together;
using cpu::Reader;
using cpu::row_major;
using cpu::sums_of_pixels;
using cpu::visit_float;
using cpu::Writer;
using infer::statistics_dtype;
using loops::layers;

// --- Batch norm -----------------------------------------------------------------------------------------------------

/// Two sums for each channel over everything: total[0..c) and total[c..2c), by fixed pieces added in order:
/// row_sums(offset, rows, sums) gives those of some rows, plane_sums(offset, planes, count, channel, first, second)
/// adds those of planes from `channel` on, or of a part of one.
template <class RowSums, class PlaneSums>
std::vector<double> reduce_channels(const Channels& in, const RowSums& row_sums, const PlaneSums& plane_sums) {
  const int64_t c = in.c;
  if (in.innermost)
    return sums_of_pixels(1, in.rows(), c, in.converted,
                          [&](int64_t at, int64_t rows, int64_t, double* sums) { row_sums(at, rows, sums); });
  std::vector<double> total(size_t(2 * c), 0.0);
  const int64_t together = planes_together(in.inner), blocks = (c + together - 1) / together;
  parallel_for(blocks, std::max<int64_t>(1, 32768 / std::max<int64_t>(1, in.n * in.inner * together)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t block = begin; block < end; ++block) {
                   const int64_t j = block * together, planes = std::min(together, c - j);
                   double *const first = total.data() + j, *const second = first + c;
                   for (int64_t i = 0; i < in.n; ++i) {
                     const int64_t at = (i * c + j) * in.inner;
                     if (planes > 1) plane_sums(at, planes, in.inner, j, first, second);
                     else
                       cpu::in_runs(0, in.inner, 1, in.converted,
                                    [&](int64_t k, int64_t count) { plane_sums(at + k, 1, count, j, first, second); });
                   }
                 }
               });
  return total;
}

/// Runs over all elements: rows(offset, count), or planes(offset, planes, count, channel) as above.
template <class Rows, class Planes>
void map_channels(const Channels& in, const Rows& rows, const Planes& planes) {
  if (in.innermost) {
    parallel_for(in.rows(), std::max<int64_t>(1, 32768 / std::max<int64_t>(in.c, 1)), [&](int64_t begin, int64_t end) {
      cpu::in_runs(begin, end, in.c, in.converted, [&](int64_t i, int64_t count) { rows(i * in.c, count); });
    });
  } else {
    const int64_t together = planes_together(in.inner);
    parallel_for(in.n * in.c, std::max<int64_t>(1, 32768 / std::max<int64_t>(1, in.inner)),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t p = begin, count = 0; p < end; p += count) {
                     const int64_t channel = p % in.c;
                     count = std::min({together, end - p, in.c - channel});
                     if (count > 1) planes(p * in.inner, count, in.inner, channel);
                     else
                       cpu::in_runs(0, in.inner, 1, in.converted,
                                    [&](int64_t k, int64_t n) { planes(p * in.inner + k, 1, n, channel); });
                   }
                 });
  }
}

/// Mean and biased variance of each channel, around the mean of its first few values so that little cancels.
template <class T>
void batch_moments(const Channels& in, std::vector<double>& mean, std::vector<double>& variance) {
  const int64_t c = in.c, count = in.rows();
  std::vector<T> shift(static_cast<size_t>(c));
  const int64_t probe = std::min<int64_t>(in.innermost ? count : in.inner, 8);
  Reader<T> first(in.x);
  const T* const rows_probed = in.innermost && probe ? first.at(0, probe * c) : nullptr;
  for (int64_t j = 0; j < c && probe; ++j) {
    const T* const x = rows_probed ? rows_probed + j : first.at(j * in.inner, probe);
    T sum(0);
    for (int64_t i = 0; i < probe; ++i) sum += rows_probed ? x[i * c] : x[i];
    shift[size_t(j)] = sum / T(probe);
  }
  const auto sums = reduce_channels(
      in,
      [&](int64_t at, int64_t rows, double* out) {
        Reader<T> x(in.x);
        layers<T>().channel_moments(x.at(at, rows * c), shift.data(), rows, c, out);
      },
      [&](int64_t at, int64_t planes, int64_t n, int64_t j, double* first, double* second) {
        Reader<T> x(in.x);
        layers<T>().plane_moments(x.at(at, planes * n), shift.data() + j, planes, n, first, second);
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
    map_channels(
        in,
        [&](int64_t at, int64_t rows) {
          Reader<T> x(in.x);
          Writer<T> y(to);
          layers<T>().channel_affine(x.at(at, rows * in.c), center.data(), scale.data(), offset.data(), rows, in.c,
                                     y.at(at, rows * in.c));
          y.done();
        },
        [&](int64_t at, int64_t planes, int64_t n, int64_t j) {
          Reader<T> x(in.x);
          Writer<T> y(to);
          layers<T>().plane_affine(x.at(at, planes * n), center.data() + j, scale.data() + j, offset.data() + j, planes,
                                   n, y.at(at, planes * n));
          y.done();
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
  visit_float(dtype, [&]<class T>() {
    batch_norm_typed<T>(result, save_mean, save_invstd, in, weight, bias, running_mean, running_var, training, momentum,
                        eps);
  });
}

template <class T>
void batch_norm_backward_typed(const Channels& in, const Tensor& grad, const Tensor& weight, const Tensor& mean,
                               const Tensor& invstd, bool training, const Tensor& grad_input, const Tensor& grad_weight,
                               const Tensor& grad_bias) {
  const size_t c = size_t(in.c);
  const T* const means = mean.data<T>();
  const Unlocked unlocked(in.numel() > 32768);
  const auto sums = reduce_channels(
      in,
      [&](int64_t at, int64_t rows, double* out) {
        Reader<T> g(grad), x(in.x);
        layers<T>().channel_products(g.at(at, rows * in.c), x.at(at, rows * in.c), means, rows, in.c, out);
      },
      [&](int64_t at, int64_t planes, int64_t n, int64_t j, double* first, double* second) {
        Reader<T> g(grad), x(in.x);
        layers<T>().plane_products(g.at(at, planes * n), x.at(at, planes * n), means + j, planes, n, first, second);
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
  // In evaluation x has no part in it, be it infinite.
  if (!training)
    return map_channels(
        in,
        [&](int64_t at, int64_t rows) {  // d is zero here, and so serves as the centre too
          Reader<T> g(grad);
          Writer<T> to(grad_input);
          layers<T>().channel_affine(g.at(at, rows * in.c), d.data(), a.data(), d.data(), rows, in.c,
                                     to.at(at, rows * in.c));
          to.done();
        },
        [&](int64_t at, int64_t planes, int64_t n, int64_t j) {
          Reader<T> g(grad);
          Writer<T> to(grad_input);
          layers<T>().plane_affine(g.at(at, planes * n), d.data() + j, a.data() + j, d.data() + j, planes, n,
                                   to.at(at, planes * n));
          to.done();
        });
  map_channels(
      in,
      [&](int64_t at, int64_t rows) {
        Reader<T> g(grad), x(in.x);
        Writer<T> to(grad_input);
        layers<T>().channel_combine(g.at(at, rows * in.c), x.at(at, rows * in.c), means, a.data(), b.data(), d.data(),
                                    rows, in.c, to.at(at, rows * in.c));
        to.done();
      },
      [&](int64_t at, int64_t planes, int64_t n, int64_t j) {
        Reader<T> g(grad), x(in.x);
        Writer<T> to(grad_input);
        layers<T>().plane_combine(g.at(at, planes * n), x.at(at, planes * n), means + j, a.data() + j, b.data() + j,
                                  d.data() + j, planes, n, to.at(at, planes * n));
        to.done();
      });
}

std::tuple<Tensor, Tensor, Tensor> batch_norm_backward_kernel(const Tensor& grad, const Tensor& input,
                                                              const Tensor& weight, const Tensor& save_mean,
                                                              const Tensor& save_invstd, bool training,
                                                              int64_t output_mask) {
  const DType dtype = statistics_dtype(input.dtype());
  const Channels in(input, dtype);
  const Tensor g = in.like(grad);
  const Tensor grad_input = output_mask & 1 ? in.empty_like_x(input.dtype()) : Tensor();
  const Tensor grad_weight = output_mask & 2 ? empty(Shape{in.c}, dtype) : Tensor(),
               grad_bias = output_mask & 4 ? empty(Shape{in.c}, dtype) : Tensor();
  visit_float(dtype, [&]<class T>() {
    batch_norm_backward_typed<T>(in, g, weight, row_major(save_mean, dtype), row_major(save_invstd, dtype), training,
                                 grad_input, grad_weight, grad_bias);
  });
  const DType parameter = weight.defined() ? weight.dtype() : dtype;
  return {grad_input, back(grad_weight, parameter), back(grad_bias, parameter)};
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
  const cpu::Target target(result);
  const Tensor x = row_major(input), w = cpu::row_major_or_none(weight, dtype), b = cpu::row_major_or_none(bias, dtype);
  visit_float(dtype, [&]<class T>() {
    const Unlocked unlocked(input.numel() > 32768);
    parallel_for(rows, std::max<int64_t>(1, 16384 / n), [&](int64_t begin, int64_t end) {
      Reader<T> reader(x);
      Writer<T> writer(target.tensor());
      cpu::in_row_runs(begin, end, n, x.dtype() != dtype, [&](int64_t first, int64_t count) {
        const T* const from = reader.at(first * n, count * n);
        T* const to = writer.at(first * n, count * n);
        layers<T>().layer_norm(from, data_or_null<T>(w), data_or_null<T>(b), count, n, eps, to, mean.data<T>() + first,
                               rstd.data<T>() + first);
        writer.done();
      });
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
  const bool converted = x.dtype() != dtype_of<T> || g.dtype() != dtype_of<T>;
  parallel_for(pieces, 1, [&](int64_t begin, int64_t end) {
    Reader<T> grads(g), values(x);
    std::optional<Writer<T>> writer;
    if (grad_input.defined()) writer.emplace(grad_input);
    for (int64_t p = begin; p < end; ++p)
      cpu::in_row_runs(p * grain, std::min(rows, (p + 1) * grain), n, converted, [&](int64_t first, int64_t count) {
        const T *const up = grads.at(first * n, count * n), *const from = values.at(first * n, count * n);
        T* const to = writer ? writer->at(first * n, count * n) : nullptr;
        layers<T>().layer_norm_backward(up, from, data_or_null<T>(weight), mean.data<T>() + first,
                                        rstd.data<T>() + first, count, n, to,
                                        grad_weight.defined() ? parts.data() + p * 2 * n : nullptr,
                                        grad_bias.defined() ? parts.data() + (p * 2 + 1) * n : nullptr);
        if (writer) writer->done();
      });
  });
  const auto add_up = [&](const Tensor& out, int64_t which) {
    if (!out.defined()) return;
    std::vector<double> sums(size_t(n), 0.0);
    for (int64_t p = 0; p < pieces; ++p)
      for (int64_t j = 0; j < n; ++j) sums[size_t(j)] += double(parts[size_t((p * 2 + which) * n + j)]);
    std::ranges::transform(sums, out.data<T>(), [](double sum) { return T(sum); });
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
  const Tensor grad_input = output_mask & 1 ? empty(input.sizes(), input.dtype()) : Tensor(),
               grad_weight = output_mask & 2 ? empty(normalized_shape, dtype) : Tensor(),
               grad_bias = output_mask & 4 ? empty(normalized_shape, dtype) : Tensor();
  visit_float(dtype, [&]<class T>() {
    if (n > 0)
      layer_norm_backward_typed<T>(row_major(grad), row_major(input), row_major(mean, dtype), row_major(rstd, dtype),
                                   cpu::row_major_or_none(weight, dtype), rows, n, grad_input, grad_weight, grad_bias);
  });
  const DType parameter = weight.defined() ? weight.dtype() : dtype;
  return {grad_input, back(grad_weight, parameter), back(grad_bias, parameter)};
}

const bool registered = [] {
  kernel<op::native_batch_norm>(kCPU, native_batch_norm_kernel);
  kernel<op::batch_norm_backward>(kCPU, batch_norm_backward_kernel);
  kernel<op::native_layer_norm>(kCPU, native_layer_norm_kernel);
  kernel<op::layer_norm_backward>(kCPU, layer_norm_backward_kernel);
  return true;
}();

}  // namespace
}  // namespace taeda
