// CPU kernels of group norm, of planes and of pixels; inner loops in cpu/loops/norm.h.
#include <cmath>
#include <optional>
#include <vector>

#include "cpu/channels.h"
#include "cpu/converted.h"
#include "cpu/loops/layers.h"
#include "infer/dtypes.h"
#include "taeda/ops/norm.h"
#include "taeda/parallel.h"

namespace taeda {
namespace {

using cpu::back;
using cpu::Channels;
using cpu::Reader;
using cpu::row_major;
using cpu::rows_per_piece;
using cpu::visit_norm;
using cpu::Writer;
using infer::statistics_dtype;
using loops::layers;

// --- Planes: channel after channel -------------------------------------------------------------------------------

/// (n, groups) rows of `channels` planes of `inner` elements.
struct Groups {
  int64_t rows, groups, channels, inner;
  Groups(const Tensor& input, int64_t num_groups)
      : rows(input.size(0) * num_groups),
        groups(num_groups),
        channels(input.size(1) / num_groups),
        inner(input.numel() ? input.numel() / (input.size(0) * input.size(1)) : 0) {}
  int64_t size() const { return channels * inner; }
  /// Of planes as short as this a call for each would take longer than its work.
  static constexpr int64_t kShort = 16;
  /// Calls `body(offset, planes, count, channel)` for the runs of row `i`: `count` elements of each of `planes`
  /// channels from `channel` on, of several where planes are short.
  template <class Body>
  void each_run(int64_t i, bool converted, const Body& body) const {
    if (inner <= kShort)
      return cpu::in_runs(0, channels, inner, true, [&](int64_t j, int64_t planes) {
        body(i * size() + j * inner, planes, inner, i % groups * channels + j);
      });
    for (int64_t j = 0; j < channels; ++j)
      cpu::in_runs(0, inner, 1, converted, [&](int64_t k, int64_t count) {
        body(i * size() + j * inner + k, 1, count, i % groups * channels + j);
      });
  }
  int64_t grain() const { return std::max<int64_t>(1, 16384 / std::max<int64_t>(1, size())); }
};

/// As LayerTable's functions of the same names do; of short planes at once.
template <class T>
void plane_affine(const T* x, double center, double scale, double offset, int64_t n, T* y) {
  if (n > Groups::kShort) return layers<T>().plane_affine(x, center, scale, offset, n, y);
  for (int64_t i = 0; i < n; ++i) y[i] = (x[i] - T(center)) * T(scale) + T(offset);
}
template <class T>
void plane_products(const T* grad, const T* x, double mean, int64_t n, double* sums) {
  if (n > Groups::kShort) return layers<T>().plane_products(grad, x, mean, n, sums);
  sums[0] = sums[1] = 0;
  for (int64_t i = 0; i < n; ++i) {
    sums[0] += double(grad[i]);
    sums[1] += double(grad[i] * (x[i] - T(mean)));
  }
}
template <class T>
void plane_combine(const T* grad, const T* x, double center, double a, double b, double d, int64_t n, T* out) {
  if (n > Groups::kShort) return layers<T>().plane_combine(grad, x, center, a, b, d, n, out);
  for (int64_t i = 0; i < n; ++i) out[i] = T(a) * grad[i] + (T(b) * (x[i] - T(center)) + T(d));
}

template <class T>
void norm_of_planes(const Groups& s, const Tensor& x, const Tensor& w, const Tensor& b, double eps, const Tensor& y,
                    const Tensor& mean, const Tensor& rstd) {
  const bool converted = x.dtype() != dtype_of<T>;
  parallel_for(s.rows, s.grain(), [&](int64_t begin, int64_t end) {
    Reader<T> reader(x);
    Writer<T> writer(y);
    for (int64_t i = begin; i < end; ++i) {
      const auto sum = [&](double center, double& first, double& second) {
        first = second = 0;
        cpu::in_runs(0, s.size(), 1, converted, [&](int64_t k, int64_t count) {
          double sums[2];
          layers<T>().plane_moments(reader.at(i * s.size() + k, count), center, count, sums);
          first += sums[0];
          second += sums[1];
        });
      };
      double first, second;
      sum(0.0, first, second);
      const double center = first / double(s.size());
      sum(center, first, second);
      const double rest = first / double(s.size()),
                   r = 1.0 / std::sqrt(std::max(second / double(s.size()) - rest * rest, 0.0) + eps);
      mean.data<T>()[i] = T(center);
      rstd.data<T>()[i] = T(r);
      s.each_run(i, converted, [&](int64_t at, int64_t planes, int64_t count, int64_t channel) {
        const T* const from = reader.at(at, planes * count);
        T* const to = writer.at(at, planes * count);
        for (int64_t p = 0; p < planes; ++p) {
          const double scale = r * (w.defined() ? double(w.data<T>()[channel + p]) : 1.0);
          const double offset = (b.defined() ? double(b.data<T>()[channel + p]) : 0.0) - rest * scale;
          plane_affine(from + p * count, center, scale, offset, count, to + p * count);
        }
        writer.done();
      });
    }
  });
}

template <class T>
void gradient_of_planes(const Groups& s, const Tensor& g, const Tensor& x, const Tensor& mean, const Tensor& rstd,
                        const Tensor& weight, const Tensor& grad_input, std::vector<double>& sums) {
  const int64_t all = s.groups * s.channels;
  const bool converted = x.dtype() != dtype_of<T> || g.dtype() != dtype_of<T>;
  parallel_for(s.rows, s.grain(), [&](int64_t begin, int64_t end) {
    Reader<T> grads(g), values(x);
    std::optional<Writer<T>> writer;
    if (grad_input.defined()) writer.emplace(grad_input);
    for (int64_t i = begin; i < end; ++i) {
      const double m = double(mean.data<T>()[i]), r = double(rstd.data<T>()[i]);
      double total = 0, products = 0;
      const auto factor = [&](int64_t channel) { return weight.defined() ? double(weight.data<T>()[channel]) : 1.0; };
      const int64_t sample = i / s.groups;
      s.each_run(i, converted, [&](int64_t at, int64_t planes, int64_t count, int64_t channel) {
        const T *const slopes = grads.at(at, planes * count), *const inputs = values.at(at, planes * count);
        for (int64_t p = 0; p < planes; ++p) {
          double two[2];
          plane_products(slopes + p * count, inputs + p * count, m, count, two);
          double* const kept = sums.data() + (sample * all + channel + p) * 2;
          kept[0] += two[0];
          kept[1] += two[1];
          total += two[0] * factor(channel + p);
          products += two[1] * factor(channel + p);
        }
      });
      if (!writer) continue;
      const double slope = -r * r * r * products / double(s.size()), offset = -r * total / double(s.size());
      s.each_run(i, converted, [&](int64_t at, int64_t planes, int64_t count, int64_t channel) {
        const T *const slopes = grads.at(at, planes * count), *const inputs = values.at(at, planes * count);
        T* const to = writer->at(at, planes * count);
        for (int64_t p = 0; p < planes; ++p)
          plane_combine(slopes + p * count, inputs + p * count, m, r * factor(channel + p), slope, offset, count,
                        to + p * count);
        writer->done();
      });
    }
  });
}

// --- Pixels: channels innermost ------------------------------------------------------------------------------------

/// Sums of each channel of each sample in two vectors, total[2 c n] and, c further on, total[2 c n + c], of fixed
/// pieces added in order: body(offset, rows, n, sums) gives those of some pixels of sample n.
template <class Body>
std::vector<double> sums_of_channels(const Channels& in, const Body& body) {
  const int64_t c = in.c, grain = rows_per_piece(in.inner, c), pieces = (in.inner + grain - 1) / grain;
  std::vector<double> total(size_t(in.n * 2 * c), 0.0), parts(size_t(in.n * pieces * 2 * c), 0.0);
  parallel_for(
      in.n * pieces, std::max<int64_t>(1, 32768 / (c * std::min(grain, in.inner))), [&](int64_t begin, int64_t end) {
        std::vector<double> sums(size_t(2 * c));
        for (int64_t p = begin; p < end; ++p) {
          const int64_t n = p / pieces, first = p % pieces * grain;
          double* const part = parts.data() + p * 2 * c;
          cpu::in_runs(first, std::min(in.inner, first + grain), c, in.converted, [&](int64_t i, int64_t rows) {
            body((n * in.inner + i) * c, rows, n, sums.data());
            for (int64_t j = 0; j < 2 * c; ++j) part[j] += sums[size_t(j)];
          });
        }
      });
  for (int64_t p = 0; p < in.n * pieces; ++p)
    for (int64_t j = 0; j < 2 * c; ++j) total[size_t(p / pieces * 2 * c + j)] += parts[size_t(p * 2 * c + j)];
  return total;
}
/// Calls `body(offset, rows, n)` for runs of pixels of sample n.
template <class Body>
void map_pixels(const Channels& in, const Body& body) {
  const int64_t most = std::max<int64_t>(1, 32768 / in.c), pieces = (in.inner + most - 1) / most;
  parallel_for(in.n * pieces, std::max<int64_t>(1, most / in.inner), [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
      const int64_t n = p / pieces, first = p % pieces * most;
      cpu::in_runs(first, std::min(in.inner, first + most), in.c, in.converted,
                   [&](int64_t i, int64_t rows) { body((n * in.inner + i) * in.c, rows, n); });
    }
  });
}

template <class T>
void norm_of_pixels(const Groups& s, const Channels& in, const Tensor& w, const Tensor& b, double eps, const Tensor& y,
                    const Tensor& mean, const Tensor& rstd) {
  const int64_t c = in.c;
  // Around the mean of a group's first few pixels, so that little cancels.
  const int64_t probe = std::min<int64_t>(in.inner, 8);
  std::vector<T> center(size_t(in.n * c)), scale(center.size()), offset(center.size());
  Reader<T> first(in.x);
  for (int64_t n = 0; n < in.n; ++n) {
    const T* const x = first.at(n * in.inner * c, probe * c);
    for (int64_t group = 0; group < s.groups; ++group) {
      double sum = 0;
      for (int64_t i = 0; i < probe; ++i)
        for (int64_t j = group * s.channels; j < (group + 1) * s.channels; ++j) sum += double(x[i * c + j]);
      std::fill_n(center.data() + n * c + group * s.channels, s.channels, T(sum / double(probe * s.channels)));
    }
  }
  const auto sums = sums_of_channels(in, [&](int64_t at, int64_t rows, int64_t n, double* out) {
    Reader<T> x(in.x);
    layers<T>().channel_moments(x.at(at, rows * c), center.data() + n * c, rows, c, out);
  });
  for (int64_t n = 0; n < in.n; ++n)
    for (int64_t group = 0; group < s.groups; ++group) {
      const int64_t begin = group * s.channels, end = begin + s.channels, at = n * s.groups + group;
      double one = 0, two = 0;
      for (int64_t j = begin; j < end; ++j) one += sums[size_t(n * 2 * c + j)], two += sums[size_t(n * 2 * c + c + j)];
      const double rest = one / double(s.size()), middle = double(center[size_t(n * c + begin)]) + rest,
                   r = 1.0 / std::sqrt(std::max(two / double(s.size()) - rest * rest, 0.0) + eps);
      mean.data<T>()[at] = T(middle);
      rstd.data<T>()[at] = T(r);
      for (int64_t j = begin; j < end; ++j) {
        const double factor = r * (w.defined() ? double(w.data<T>()[j]) : 1.0);
        center[size_t(n * c + j)] = T(middle);
        scale[size_t(n * c + j)] = T(factor);
        offset[size_t(n * c + j)] =
            T((b.defined() ? double(b.data<T>()[j]) : 0.0) - (middle - double(T(middle))) * factor);
      }
    }
  map_pixels(in, [&](int64_t at, int64_t rows, int64_t n) {
    Reader<T> x(in.x);
    Writer<T> to(y);
    layers<T>().channel_affine(x.at(at, rows * c), center.data() + n * c, scale.data() + n * c, offset.data() + n * c,
                               rows, c, to.at(at, rows * c));
    to.done();
  });
}

/// Whether the norm is better made of pixels than of planes.
bool by_pixels(const Channels& in) {
  return in.innermost && in.inner > 1 && in.c > 0 && (in.n <= 1 || in.x.stride(0) == in.c * in.inner);
}

void native_group_norm_kernel(const Tensor& result, const Tensor& mean, const Tensor& rstd, const Tensor& input,
                              int64_t num_groups, const Tensor& weight, const Tensor& bias, double eps) {
  const DType dtype = statistics_dtype(input.dtype());
  const Groups s(input, num_groups);
  const Tensor w = cpu::row_major_or_none(weight, dtype), b = cpu::row_major_or_none(bias, dtype);
  const Channels in(input, dtype);
  const bool pixels = by_pixels(in);
  const Tensor x = pixels ? in.x : row_major(input), y = pixels                ? in.place(result)
                                                         : result.contiguous() ? result
                                                                               : empty(result.sizes(), result.dtype());
  visit_norm(dtype, [&]<class T>() {
    const Unlocked unlocked(input.numel() > 32768);
    if (pixels) norm_of_pixels<T>(s, in, w, b, eps, y, mean, rstd);
    else norm_of_planes<T>(s, x, w, b, eps, y, mean, rstd);
  });
  if (!y.same(result)) ops::copy_(result, y);
}

template <class T>
void gradient_of_pixels(const Groups& s, const Channels& in, const Tensor& g, const Tensor& mean, const Tensor& rstd,
                        const Tensor& weight, const Tensor& grad_input, std::vector<double>& sums) {
  const int64_t c = in.c;
  std::vector<T> center(size_t(in.n * c)), a(center.size()), b(center.size()), d(center.size());
  for (int64_t n = 0; n < in.n; ++n)
    for (int64_t j = 0; j < c; ++j) center[size_t(n * c + j)] = mean.data<T>()[n * s.groups + j / s.channels];
  const auto found = sums_of_channels(in, [&](int64_t at, int64_t rows, int64_t n, double* out) {
    Reader<T> grads(g), x(in.x);
    layers<T>().channel_products(grads.at(at, rows * c), x.at(at, rows * c), center.data() + n * c, rows, c, out);
  });
  for (int64_t n = 0; n < in.n; ++n)
    for (int64_t group = 0; group < s.groups; ++group) {
      const double r = double(rstd.data<T>()[n * s.groups + group]);
      double total = 0, products = 0;
      for (int64_t j = group * s.channels; j < (group + 1) * s.channels; ++j) {
        const double factor = weight.defined() ? double(weight.data<T>()[j]) : 1.0, *const two =
                                                                                        found.data() + n * 2 * c + j;
        double* const kept = sums.data() + (n * c + j) * 2;
        kept[0] = two[0];
        kept[1] = two[c];
        total += two[0] * factor;
        products += two[c] * factor;
        a[size_t(n * c + j)] = T(r * factor);
      }
      const double slope = -r * r * r * products / double(s.size()), offset = -r * total / double(s.size());
      std::fill_n(b.data() + n * c + group * s.channels, s.channels, T(slope));
      std::fill_n(d.data() + n * c + group * s.channels, s.channels, T(offset));
    }
  if (!grad_input.defined()) return;
  map_pixels(in, [&](int64_t at, int64_t rows, int64_t n) {
    Reader<T> grads(g), x(in.x);
    Writer<T> to(grad_input);
    layers<T>().channel_combine(grads.at(at, rows * c), x.at(at, rows * c), center.data() + n * c, a.data() + n * c,
                                b.data() + n * c, d.data() + n * c, rows, c, to.at(at, rows * c));
    to.done();
  });
}

/// The parameters' gradients from sums of grad and of grad * (x - mean) for each (sample, channel).
template <class T>
void add_parameter_gradients(const Groups& s, const std::vector<double>& sums, const Tensor& rstd,
                             const Tensor& grad_weight, const Tensor& grad_bias) {
  const int64_t all = s.groups * s.channels;
  // Sample after sample, as they lie in memory.
  std::vector<double> totals(size_t(all * 2));
  for (int64_t n = 0; n < s.rows / s.groups; ++n)
    for (int64_t group = 0; group < s.groups; ++group) {
      const double r = double(rstd.data<T>()[n * s.groups + group]);
      for (int64_t channel = group * s.channels; channel < (group + 1) * s.channels; ++channel) {
        const double* const two = sums.data() + (n * all + channel) * 2;
        totals[size_t(channel * 2)] += two[0];
        if (s.inner > 0) totals[size_t(channel * 2 + 1)] += two[1] * r;  // rows without elements have no deviation
      }
    }
  for (int64_t channel = 0; channel < all; ++channel) {
    if (grad_weight.defined()) grad_weight.data<T>()[channel] = T(totals[size_t(channel * 2 + 1)]);
    if (grad_bias.defined()) grad_bias.data<T>()[channel] = T(totals[size_t(channel * 2)]);
  }
}

std::tuple<Tensor, Tensor, Tensor> group_norm_backward_kernel(const Tensor& grad, const Tensor& input,
                                                              int64_t num_groups, const Tensor& mean,
                                                              const Tensor& rstd, const Tensor& weight,
                                                              int64_t output_mask) {
  const DType dtype = statistics_dtype(input.dtype());
  const Groups s(input, num_groups);
  const Channels in(input, dtype);
  const bool pixels = by_pixels(in);
  const Shape channels{input.size(1)};
  const Tensor grad_input = !(output_mask & 1) ? Tensor()
                            : pixels           ? in.empty_like_x(input.dtype())
                                               : empty(input.sizes(), input.dtype()),
               grad_weight = output_mask & 2 ? empty(channels, dtype) : Tensor(),
               grad_bias = output_mask & 4 ? empty(channels, dtype) : Tensor();
  visit_norm(dtype, [&]<class T>() {
    const Tensor means = row_major(mean, dtype), scales = row_major(rstd, dtype),
                 w = cpu::row_major_or_none(weight, dtype), g = pixels ? in.like(grad) : row_major(grad),
                 x = pixels ? in.x : row_major(input);
    const Unlocked unlocked(g.numel() > 32768);
    // For each (sample, channel): sums of grad and of grad * (x - mean).
    std::vector<double> sums(size_t(s.rows * s.channels * 2));
    if (pixels) gradient_of_pixels<T>(s, in, g, means, scales, w, grad_input, sums);
    else gradient_of_planes<T>(s, g, x, means, scales, w, grad_input, sums);
    add_parameter_gradients<T>(s, sums, scales, grad_weight, grad_bias);
  });
  const DType parameter = weight.defined() ? weight.dtype() : dtype;
  return {grad_input, back(grad_weight, parameter), back(grad_bias, parameter)};
}

const bool registered = [] {
  kernel<op::native_group_norm>(kCPU, native_group_norm_kernel);
  kernel<op::group_norm_backward>(kCPU, group_norm_backward_kernel);
  return true;
}();

}  // namespace
}  // namespace taeda
