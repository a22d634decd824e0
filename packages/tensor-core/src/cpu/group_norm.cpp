// CPU kernels of group norm, of planes and of pixels; inner loops in cpu/loops/norm.h.
#include <algorithm>
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
using cpu::planes_together;
using cpu::Reader;
using cpu::row_major;
using cpu::sums_of_pixels;
using cpu::visit_float;
using cpu::Writer;
using infer::statistics_dtype;
using loops::layers;

// --- Planes: channel after channel -------------------------------------------------------------------------------

/// (n, groups) rows of `channels` planes of `inner` elements.
struct Groups {
  int64_t samples, groups, channels, inner;
  Groups(const Tensor& input, int64_t num_groups)
      : samples(input.size(0)),
        groups(num_groups),
        channels(input.size(1) / num_groups),
        inner(input.numel() ? input.numel() / (input.size(0) * input.size(1)) : 0) {}
  int64_t all() const { return groups * channels; }
  int64_t size() const { return channels * inner; }

  /// Calls `body()` once for each piece of work and what that gives for groups that are taken together, of one sample:
  /// the number of the first one, and how many.
  template <class Body>
  void each(const Body& body) const {
    const int64_t together = std::max<int64_t>(1, planes_together(inner) / std::max<int64_t>(1, channels)),
                  runs = (groups + together - 1) / together;
    parallel_for(samples * runs, std::max<int64_t>(1, 16384 / std::max<int64_t>(1, size() * together)),
                 [&](int64_t begin, int64_t end) {
                   auto run = body();
                   for (int64_t k = begin; k < end; ++k) {
                     const int64_t first = k % runs * together;
                     run(k / runs * groups + first, std::min(together, groups - first));
                   }
                 });
  }
  /// Calls `body(offset, planes, count, plane)` for `count` elements of each of `planes` planes of `together` groups
  /// from group `i` on, of which `plane` is the first: of several where planes are short.
  template <class Body>
  void each_run(int64_t i, int64_t together, bool converted, const Body& body) const {
    const int64_t most = planes_together(inner), all_planes = together * channels;
    for (int64_t j = 0; j < all_planes; j += most) {
      const int64_t planes = std::min(most, all_planes - j), at = i * size() + j * inner;
      if (most > 1) body(at, planes, inner, j);
      else cpu::in_runs(0, inner, 1, converted, [&](int64_t k, int64_t count) { body(at + k, planes, count, j); });
    }
  }
};

/// What a plane's numbers come from: (x - center) * scale + offset.
template <class T>
struct PlaneFactors {
  std::vector<T> center, scale, offset, slope;
  explicit PlaneFactors(int64_t planes)
      : center(size_t(planes)), scale(center.size()), offset(center.size()), slope(center.size()) {}
};

template <class T>
void norm_of_planes(const Groups& s, const Tensor& x, const Tensor& w, const Tensor& b, double eps, const Tensor& y,
                    const Tensor& mean, const Tensor& rstd) {
  const bool converted = x.dtype() != dtype_of<T>;
  const int64_t size = s.size();
  s.each([&] {
    const std::vector<double> zeros(size_t(s.groups));
    return [&, reader = Reader<T>(x), writer = Writer<T>(y), by = PlaneFactors<T>(s.all()),
            center = std::vector<T>(size_t(s.groups)), first = zeros,
            second = zeros](int64_t i, int64_t groups) mutable {
      const auto sum = [&] {
        std::fill_n(first.data(), groups, 0.0);
        std::fill_n(second.data(), groups, 0.0);
        const auto add = [&](int64_t at, int64_t g, int64_t runs, int64_t count) {
          layers<T>().plane_moments(reader.at(at, runs * count), center.data() + g, runs, count, first.data() + g,
                                    second.data() + g);
        };
        if (planes_together(size) > 1) return add(i * size, 0, groups, size);
        for (int64_t g = 0; g < groups; ++g)
          cpu::in_runs(0, size, 1, converted, [&](int64_t k, int64_t count) { add((i + g) * size + k, g, 1, count); });
      };
      std::fill_n(center.data(), groups, T(0));
      sum();
      for (int64_t g = 0; g < groups; ++g) center[size_t(g)] = T(first[size_t(g)] / double(size));
      sum();
      for (int64_t g = 0; g < groups; ++g) {
        const double middle = double(center[size_t(g)]), rest = first[size_t(g)] / double(size),
                     r = 1.0 / std::sqrt(std::max(second[size_t(g)] / double(size) - rest * rest, 0.0) + eps);
        mean.data<T>()[i + g] = T(middle + rest);
        rstd.data<T>()[i + g] = T(r);
        const int64_t channel = (i + g) % s.groups * s.channels;
        for (int64_t j = 0; j < s.channels; ++j) {
          const size_t plane = size_t(g * s.channels + j);
          const double scale = r * (w.defined() ? double(w.data<T>()[channel + j]) : 1.0);
          by.center[plane] = T(middle);
          by.scale[plane] = T(scale);
          by.offset[plane] = T((b.defined() ? double(b.data<T>()[channel + j]) : 0.0) - rest * scale);
        }
      }
      s.each_run(i, groups, converted, [&](int64_t at, int64_t planes, int64_t count, int64_t j) {
        layers<T>().plane_affine(reader.at(at, planes * count), by.center.data() + j, by.scale.data() + j,
                                 by.offset.data() + j, planes, count, writer.at(at, planes * count));
        writer.done();
      });
    };
  });
}

template <class T>
void gradient_of_planes(const Groups& s, const Tensor& g, const Tensor& x, const Tensor& mean, const Tensor& rstd,
                        const Tensor& weight, const Tensor& grad_input, std::vector<double>& sums) {
  const bool converted = x.dtype() != dtype_of<T> || g.dtype() != dtype_of<T>;
  s.each([&] {
    return [&, grads = Reader<T>(g), values = Reader<T>(x),
            writer = grad_input.defined() ? std::optional<Writer<T>>(grad_input) : std::nullopt,
            by = PlaneFactors<T>(s.all())](int64_t i, int64_t groups) mutable {
      const int64_t channel = i % s.groups * s.channels, planes_of_all = groups * s.channels;
      double *const first = sums.data() + i / s.groups * 2 * s.all() + channel, *const second = first + s.all();
      for (int64_t j = 0; j < planes_of_all; ++j) by.center[size_t(j)] = mean.data<T>()[i + j / s.channels];
      s.each_run(i, groups, converted, [&](int64_t at, int64_t planes, int64_t count, int64_t j) {
        layers<T>().plane_products(grads.at(at, planes * count), values.at(at, planes * count), by.center.data() + j,
                                   planes, count, first + j, second + j);
      });
      if (!writer) return;
      for (int64_t begin = 0; begin < planes_of_all; begin += s.channels) {
        const double r = double(rstd.data<T>()[i + begin / s.channels]);
        double total = 0, products = 0;
        for (int64_t j = begin; j < begin + s.channels; ++j) {
          const double factor = weight.defined() ? double(weight.data<T>()[channel + j]) : 1.0;
          total += first[j] * factor;
          products += second[j] * factor;
          by.scale[size_t(j)] = T(r * factor);
        }
        std::fill_n(by.slope.data() + begin, s.channels, T(-r * r * r * products / double(s.size())));
        std::fill_n(by.offset.data() + begin, s.channels, T(-r * total / double(s.size())));
      }
      s.each_run(i, groups, converted, [&](int64_t at, int64_t planes, int64_t count, int64_t j) {
        layers<T>().plane_combine(grads.at(at, planes * count), values.at(at, planes * count), by.center.data() + j,
                                  by.scale.data() + j, by.slope.data() + j, by.offset.data() + j, planes, count,
                                  writer->at(at, planes * count));
        writer->done();
      });
    };
  });
}

// --- Pixels: channels innermost ------------------------------------------------------------------------------------

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
  const auto sums =
      sums_of_pixels(in.n, in.inner, c, in.converted, [&](int64_t at, int64_t rows, int64_t n, double* out) {
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
  visit_float(dtype, [&]<class T>() {
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
  sums = sums_of_pixels(in.n, in.inner, c, in.converted, [&](int64_t at, int64_t rows, int64_t n, double* out) {
    Reader<T> grads(g), x(in.x);
    layers<T>().channel_products(grads.at(at, rows * c), x.at(at, rows * c), center.data() + n * c, rows, c, out);
  });
  for (int64_t n = 0; n < in.n; ++n)
    for (int64_t group = 0; group < s.groups; ++group) {
      const double r = double(rstd.data<T>()[n * s.groups + group]);
      double total = 0, products = 0;
      for (int64_t j = group * s.channels; j < (group + 1) * s.channels; ++j) {
        const double* const two = sums.data() + n * 2 * c + j;
        const double factor = weight.defined() ? double(weight.data<T>()[j]) : 1.0;
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

/// The parameters' gradients from the sums of each sample.
template <class T>
void add_parameter_gradients(const Groups& s, const std::vector<double>& sums, const Tensor& rstd,
                             const Tensor& grad_weight, const Tensor& grad_bias) {
  const int64_t all = s.all();
  // Sample after sample, as they lie in memory.
  std::vector<double> of_weight(size_t(all), 0.0), of_bias(size_t(all), 0.0);
  for (int64_t n = 0; n < s.samples; ++n)
    for (int64_t channel = 0; channel < all; ++channel) {
      const double* const first = sums.data() + n * 2 * all + channel;
      const double r = double(rstd.data<T>()[n * s.groups + channel / s.channels]);
      of_bias[size_t(channel)] += first[0];
      if (s.inner > 0) of_weight[size_t(channel)] += first[all] * r;  // rows without elements have no deviation
    }
  const auto give = [](const std::vector<double>& from, const Tensor& to) {
    if (to.defined()) std::ranges::transform(from, to.data<T>(), [](double sum) { return T(sum); });
  };
  give(of_weight, grad_weight);
  give(of_bias, grad_bias);
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
  visit_float(dtype, [&]<class T>() {
    const Tensor means = row_major(mean, dtype), scales = row_major(rstd, dtype),
                 w = cpu::row_major_or_none(weight, dtype), g = pixels ? in.like(grad) : row_major(grad),
                 x = pixels ? in.x : row_major(input);
    const Unlocked unlocked(g.numel() > 32768);
    // For each sample: sums of grad of all channels, then those of grad * (x - mean).
    std::vector<double> sums(size_t(s.samples * s.all() * 2));
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
