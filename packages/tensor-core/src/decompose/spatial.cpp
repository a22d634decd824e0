// Convolutions of volumes, resampling, sampling at points, windows as columns, distances and bags of rows.
#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <vector>

#include "decompose/common.h"
#include "infer/conv.h"
#include "infer/image.h"
#include "infer/resize.h"
#include "infer/windows.h"
#include "taeda/wrappers.h"

namespace taeda::decompose {
namespace {

using infer::ConvPlan;

/// A tensor made here, on the device of `like`.
Tensor sent(const Tensor& host, const Tensor& like) { return ops::to_device(host, stated_device(like)); }

// --- conv ---

/// A volume's slices that meet slice k of the kernel, as a batch of images.
struct Slices {
  const ConvPlan& s;
  int64_t begin, end, first;  // results that slice k reaches, and the slice of the input that it meets first
  Slices(const ConvPlan& plan, int64_t k) : s(plan), first(k * plan.dd - plan.pd) {
    begin = std::min(s.od, first < 0 ? (-first + s.sd - 1) / s.sd : 0);
    end = std::max(begin, std::min(s.od, first < s.d ? (s.d - 1 - first) / s.sd + 1 : 0));
  }
  int64_t count() const { return end - begin; }
  /// Of (N, C, D, H, W): slices `from`, `from + step`, ...
  Tensor images(const Tensor& t, int64_t from, int64_t step) const {
    const Tensor part = ops::slice(t, 2, from, from + (count() - 1) * step + 1, step);
    return ops::reshape(ops::transpose(part, 1, 2), Shape{s.n * count(), t.size(1), t.size(3), t.size(4)});
  }
  Tensor input(const Tensor& x) const { return images(x, first + begin * s.sd, s.sd); }
  Tensor result(const Tensor& y) const { return images(y, begin, 1); }
  /// Images back as slices (N, C, count, H, W).
  Tensor slices(const Tensor& t) const {
    return ops::transpose(ops::reshape(t, Shape{s.n, count(), t.size(1), t.size(2), t.size(3)}), 1, 2);
  }
};
struct Steps {
  Shape stride, padding, dilation;
  explicit Steps(const ConvPlan& s) : stride{s.sh, s.sw}, padding{s.ph, s.pw}, dilation{s.dh, s.dw} {}
};
Tensor one_volume(const Tensor& t) { return t.dim() == 4 ? ops::unsqueeze(t, 0) : t; }

Tensor conv3d(const Tensor& input, const Tensor& weight, const Tensor& bias, IntSpan stride, IntSpan padding,
              IntSpan dilation, int64_t groups) {
  const ConvPlan s = infer::conv_plan(input, weight, stride, padding, dilation, groups);
  const Steps steps(s);
  const Tensor x = one_volume(input);
  Tensor y = ops::zeros(Shape{s.n, s.o, s.od, s.oh, s.ow}, input.dtype(), stated_device(input));
  for (int64_t k = 0; k < s.kd && s.n > 0; ++k) {
    const Slices met(s, k);
    if (met.count() == 0) continue;
    const Tensor part = ops::conv2d(met.input(x), ops::select(weight, 2, k), Tensor(), steps.stride, steps.padding,
                                    steps.dilation, groups);
    y = y + ops::constant_pad_nd(met.slices(part), Shape{0, 0, 0, 0, met.begin, s.od - met.end}, Scalar(int64_t(0)));
  }
  if (bias.defined()) y = y + ops::reshape(bias, Shape{-1, 1, 1, 1});
  return input.dim() == 4 ? ops::squeeze_dims(y, Shape{0}) : y;
}
Three conv3d_backward(const Tensor& grad, const Tensor& input, const Tensor& weight, IntSpan stride, IntSpan padding,
                      IntSpan dilation, int64_t groups, int64_t output_mask) {
  const ConvPlan s = infer::conv_plan(input, weight, stride, padding, dilation, groups);
  const Steps steps(s);
  const Tensor x = one_volume(input), g = one_volume(grad);
  Three out;
  auto& [of_input, of_weight, of_bias] = out;
  if (output_mask & 1) of_input = ops::zeros_like(x);
  if (output_mask & 2) of_weight = ops::zeros_like(weight);
  if (output_mask & 4) of_bias = ops::sum(g, Shape{0, 2, 3, 4}, false, g.dtype());
  for (int64_t k = 0; k < s.kd && s.n > 0; ++k) {
    const Slices met(s, k);
    if (met.count() == 0 || !(output_mask & 3)) continue;
    const auto [to_x, to_w, unused] =
        ops::conv2d_backward(met.result(g), met.input(x), ops::select(weight, 2, k), steps.stride, steps.padding,
                             steps.dilation, groups, output_mask & 3);
    if (output_mask & 2) of_weight = ops::select_scatter(of_weight, to_w, 2, k);
    if (!(output_mask & 1)) continue;
    const int64_t from = met.first + met.begin * s.sd, to = from + (met.count() - 1) * s.sd + 1;
    const Tensor sum = ops::slice(of_input, 2, from, to, s.sd) + met.slices(to_x);
    of_input = ops::slice_scatter(of_input, sum, 2, from, to, s.sd);
  }
  if (output_mask & 1 && input.dim() == 4) of_input = ops::squeeze_dims(of_input, Shape{0});
  return out;
}

// --- resize ---

/// The weights of one dimension as a matrix (in, out).
Tensor matrix_of(const infer::Taps& taps, int64_t in, double scale, const Tensor& like, DType dtype) {
  const Tensor host = ops::zeros(Shape{in, taps.size()}, DType::Float64);
  for (int64_t i = 0; i < taps.size(); ++i)
    for (int64_t k = 0; k < taps.count[size_t(i)]; ++k) {
      const double weight = taps.weights[size_t(i * taps.most + k)];
      host.data<double>()[(taps.first[size_t(i)] + k) * taps.size() + i] =
          scale == 1 ? weight : double(std::lround(weight * scale));
    }
  return sent(ops::to_dtype(host, dtype), like);
}
Tensor resampled(const Tensor& t, IntSpan in, IntSpan out, std::string_view mode, bool align_corners, bool antialias,
                 std::span<const double> scales, bool backward) {
  const infer::Filter filter = infer::filter_of("resample", mode);
  const bool bytes = t.dtype() == DType::UInt8;
  Tensor y = bytes ? ops::to_dtype(t, DType::Float64) : t;
  for (size_t i = in.size(); i-- > 0;) {
    const infer::Taps taps = infer::resample_taps(
        {filter, align_corners, antialias, scales.empty() ? 0 : scales[i], in[i], out[i]}, y.dtype() != DType::Float64);
    const bool rounds = bytes && filter > infer::Filter::NearestExact;
    const double scale = rounds ? double(int64_t(1) << infer::fixed_point_bits(taps)) : 1;
    Tensor weights = matrix_of(taps, in[i], scale, t, y.dtype());
    if (backward) weights = ops::transpose(weights, 0, 1);
    const auto dim = int64_t(i) + 2;
    y = ops::transpose(ops::matmul(ops::transpose(y, dim, -1), weights), dim, -1);
    if (rounds) y = ops::clamp(ops::floor(y / Tensor(scale) + Tensor(0.5)), Scalar(0.0), Scalar(255.0));
  }
  return bytes ? ops::to_dtype(y, DType::UInt8) : y;
}
Tensor resample(const Tensor& input, IntSpan output_size, std::string_view mode, bool align_corners, bool antialias,
                std::span<const double> scales) {
  return resampled(input, input.sizes().subspan(2), output_size, mode, align_corners, antialias, scales, false);
}
Tensor resample_backward(const Tensor& grad, IntSpan input_size, std::string_view mode, bool align_corners,
                         bool antialias, std::span<const double> scales) {
  return resampled(grad, input_size, grad.sizes().subspan(2), mode, align_corners, antialias, scales, true);
}

// --- image ---

/// Places of the windows' elements in the flattened padded plane: (elements of the window * positions,).
Tensor window_places(const ConvPlan& s, const Tensor& like) {
  const Tensor host = empty(Shape{s.kernel() * s.out_pixels()}, DType::Int64);
  int64_t* to = host.data<int64_t>();
  const int64_t width = s.w + 2 * s.pw;
  for (int64_t i = 0; i < s.kh; ++i)
    for (int64_t j = 0; j < s.kw; ++j)
      for (int64_t y = 0; y < s.oh; ++y)
        for (int64_t x = 0; x < s.ow; ++x) *to++ = (y * s.sh + i * s.dh) * width + x * s.sw + j * s.dw;
  return sent(host, like);
}
Tensor one_batch(const Tensor& t, int64_t dims) { return t.dim() == dims ? t : ops::unsqueeze(t, 0); }
Tensor im2col(const Tensor& input, IntSpan kernel_size, IntSpan dilation, IntSpan padding, IntSpan stride) {
  const Tensor x = one_batch(input, 4);
  const int64_t size[] = {x.size(2), x.size(3)};
  const ConvPlan s = infer::patch_plan(x, size, kernel_size, dilation, padding, stride, x.size(1));
  const Tensor padded = ops::constant_pad_nd(x, Shape{s.pw, s.pw, s.ph, s.ph}, Scalar(int64_t(0)));
  const Tensor columns = ops::index_select(ops::flatten(padded, 2, 3), 2, window_places(s, x));
  const Tensor out = ops::reshape(columns, Shape{s.n, s.c * s.kernel(), s.out_pixels()});
  return input.dim() == 4 ? out : ops::squeeze_dims(out, Shape{0});
}
Tensor col2im(const Tensor& input, IntSpan output_size, IntSpan kernel_size, IntSpan dilation, IntSpan padding,
              IntSpan stride) {
  const Tensor columns = one_batch(input, 3);
  const infer::Pair k = infer::both(kernel_size);
  const ConvPlan s =
      infer::patch_plan(columns, output_size, kernel_size, dilation, padding, stride, columns.size(1) / (k[0] * k[1]));
  const int64_t height = s.h + 2 * s.ph, width = s.w + 2 * s.pw;
  const Tensor sums =
      ops::index_add(ops::zeros(Shape{s.n, s.c, height * width}, input.dtype(), stated_device(input)), 2,
                     window_places(s, input), ops::reshape(columns, Shape{s.n, s.c, s.kernel() * s.out_pixels()}));
  const Tensor padded = ops::reshape(sums, Shape{s.n, s.c, height, width});
  const Tensor out = ops::constant_pad_nd(padded, Shape{-s.pw, -s.pw, -s.ph, -s.ph}, Scalar(int64_t(0)));
  return input.dim() == 3 ? out : ops::squeeze_dims(out, Shape{0});
}

/// The elements that one coordinate reads: indices (int64, valid ones), whether they are inside, weights with 0 for
/// those outside, and the derivatives of the weights by the coordinate in the grid.
struct AxisTaps {
  std::vector<Tensor> index, there, weight, slope;
};
struct Axis {
  int64_t size, mode, padding;
  bool align_corners;

  Tensor number(double value) const { return Tensor(value); }
  /// Brought inside as `padding` says, with the factor that its derivative takes.
  Two inside(Tensor at) const {
    Tensor factor = ops::ones_like(at);
    const Tensor none = number(0), most = number(double(size - 1));
    if (padding == 2) {
      const double low = align_corners ? 0 : -0.5, span = align_corners ? double(size - 1) : double(size);
      if (span == 0) return {ops::zeros_like(at), ops::zeros_like(at)};
      const Tensor away = at - number(low), distance = ops::abs(away), times = ops::floor(distance / number(span));
      const Tensor rest = distance - times * number(span);
      const Tensor even = ops::eq(times - number(2) * ops::floor(times / number(2)), none);
      at = ops::where(even, rest, number(span) - rest) + number(low);
      factor = ops::where(ops::ge(away, none), factor, -factor);
      factor = ops::where(even, factor, -factor);
    }
    if (padding == 0) return {at, factor};
    factor = masked(factor, ops::logical_and(ops::gt(at, none), ops::lt(at, most)));
    return {ops::where(ops::gt(at, none), ops::minimum(at, most), none), factor};
  }
  void add(AxisTaps& taps, const Tensor& at, const Tensor& weight, const Tensor& slope) const {
    const Tensor fixed = ops::detach(at);
    const Tensor there = ops::logical_and(ops::ge(fixed, number(0)), ops::lt(fixed, number(double(size))));
    taps.index.push_back(ops::to_dtype(masked(fixed, there), DType::Int64));
    taps.there.push_back(there);
    taps.weight.push_back(masked(weight, there));
    taps.slope.push_back(masked(slope, there));
  }
  static Tensor keys(const Tensor& x, bool near) {
    const double a = -0.75;
    if (near) return ((Tensor(a + 2) * x - Tensor(a + 3)) * x) * x + Tensor(1);
    return ((Tensor(a) * x - Tensor(5 * a)) * x + Tensor(8 * a)) * x - Tensor(4 * a);
  }
  static Tensor keys_slope(const Tensor& x, bool near) {
    const double a = -0.75;
    if (near) return (Tensor(3 * (a + 2)) * x - Tensor(2 * (a + 3))) * x;
    return (Tensor(3 * a) * x - Tensor(10 * a)) * x + Tensor(8 * a);
  }
  AxisTaps taps(const Tensor& x) const {
    const double step = align_corners ? double(size - 1) / 2 : double(size) / 2;
    const Tensor given = align_corners ? (x + Tensor(1)) * number(step)
                                       : ((x + Tensor(1)) * number(double(size)) - Tensor(1)) / Tensor(2);
    AxisTaps out;
    if (mode == 2) {
      const Tensor left = ops::detach(ops::floor(given)), t = given - left;
      const Tensor distances[] = {Tensor(1) + t, t, Tensor(1) - t, Tensor(2) - t};
      for (size_t k = 0; k < 4; ++k) {
        const bool near = k == 1 || k == 2;
        add(out, std::get<0>(inside(left + Tensor(double(k) - 1))), keys(distances[k], near),
            keys_slope(distances[k], near) * number(k < 2 ? step : -step));
      }
      return out;
    }
    const auto [at, factor] = inside(given);
    if (mode == 1) {
      add(out, ops::round(at), ops::ones_like(at), ops::zeros_like(at));
      return out;
    }
    const Tensor left = ops::detach(ops::floor(at)), t = at - left, slope = ops::detach(factor) * number(step);
    add(out, left, Tensor(1) - t, -slope);
    add(out, left + Tensor(1), t, slope);
    return out;
  }
};

/// All taps of the points of a grid: index into the flattened image (N, 1, points), weight and slopes.
struct Tap {
  Tensor index, there, weight;
  std::array<Tensor, 3> slope;
};
std::vector<Tap> taps_of(const Tensor& input, const Tensor& grid, int64_t mode, int64_t padding, bool align_corners) {
  const int64_t rank = input.dim() - 2;
  std::vector<AxisTaps> axes;
  int64_t points = 1;
  for (int64_t d = 1; d <= rank; ++d) points *= grid.size(d);
  for (int64_t d = 0; d < rank; ++d) {
    const Tensor x = ops::reshape(ops::select(grid, -1, d), Shape{grid.size(0), 1, points});
    axes.push_back(Axis{input.size(-1 - d), mode, padding, align_corners}.taps(x));
  }
  std::vector<Tap> out;
  const size_t each = axes[0].index.size();
  size_t count = 1;
  for (int64_t d = 0; d < rank; ++d) count *= each;
  for (size_t k = 0; k < count; ++k) {
    Tap tap;
    int64_t step = 1;
    size_t rest = k;
    std::array<size_t, 3> choice{};
    for (size_t d = 0; d < size_t(rank); ++d, rest /= each) {
      choice[d] = rest % each;
      const Tensor own = axes[d].index[choice[d]] * Tensor(step);
      const Tensor& inside = axes[d].there[choice[d]];
      tap.index = d ? tap.index + own : own;
      tap.there = d ? ops::logical_and(tap.there, inside) : inside;
      tap.weight = d ? tap.weight * axes[d].weight[choice[d]] : axes[d].weight[choice[d]];
      step *= input.size(-1 - int64_t(d));
    }
    for (size_t d = 0; d < size_t(rank); ++d) {
      Tensor slope = axes[d].slope[choice[d]];
      for (size_t other = 0; other < size_t(rank); ++other)
        if (other != d) slope = slope * axes[other].weight[choice[other]];
      tap.slope[d] = slope;
    }
    out.push_back(tap);
  }
  return out;
}
Tensor spread(const Tensor& index, int64_t channels) {
  return ops::expand(index, Shape{index.size(0), channels, index.size(2)});
}
/// What a tap reads of all channels; 0 outside.
Tensor elements(const Tensor& x, const Tap& tap) {
  return masked(ops::gather(x, 2, spread(tap.index, x.size(1))), tap.there);
}
Tensor grid_sampler(const Tensor& input, const Tensor& grid, int64_t mode, int64_t padding, bool align_corners) {
  const Tensor x = ops::flatten(input, 2, -1);
  Tensor sum;
  for (const Tap& tap : taps_of(input, grid, mode, padding, align_corners)) {
    const Tensor part = elements(x, tap) * tap.weight;
    sum = sum.defined() ? sum + part : part;
  }
  Shape sizes{input.size(0), input.size(1)};
  for (int64_t d = 1; d + 1 < grid.dim(); ++d) sizes.push_back(grid.size(d));
  return ops::reshape(sum, sizes);
}
Two grid_sampler_backward(const Tensor& grad, const Tensor& input, const Tensor& grid, int64_t mode, int64_t padding,
                          bool align_corners, int64_t output_mask) {
  const Tensor x = ops::flatten(input, 2, -1), g = ops::flatten(grad, 2, -1);
  Tensor of_input = ops::zeros_like(x);
  std::array<Tensor, 3> by;
  const auto rank = size_t(input.dim() - 2);
  for (const Tap& tap : taps_of(input, grid, mode, padding, align_corners)) {
    const Tensor index = spread(tap.index, x.size(1));
    if (output_mask & 1) of_input = ops::scatter_add(of_input, 2, index, g * tap.weight);
    if (!(output_mask & 2)) continue;
    const Tensor product = ops::sum(elements(x, tap) * g, Shape{1}, true);
    for (size_t d = 0; d < rank; ++d) by[d] = by[d].defined() ? by[d] + product * tap.slope[d] : product * tap.slope[d];
  }
  Tensor of_grid;
  if (output_mask & 2) of_grid = ops::reshape(ops::stack(TensorList(by.data(), rank), -1), grid.sizes());
  return {output_mask & 1 ? ops::reshape(of_input, input.sizes()) : Tensor(), of_grid};
}

// --- distance ---

Tensor differences(const Tensor& x1, const Tensor& x2) { return ops::unsqueeze(x1, 2) - ops::unsqueeze(x2, 1); }
Tensor cdist_forward(const Tensor& x1, const Tensor& x2, double p) {
  return ops::vector_norm(differences(x1, x2), Scalar(p), Shape{-1}, false);
}
Tensor cdist_backward(const Tensor& grad, const Tensor& x1, const Tensor& x2, double p, const Tensor& distances) {
  if (p == 0) return ops::zeros_like(x1);
  const Tensor d = differences(x1, x2), g = ops::unsqueeze(grad, 3), far = ops::unsqueeze(distances, 3);
  const auto total = [](const Tensor& t) { return ops::sum(t, Shape{2}); };
  const Tensor none = Tensor(0);  // NaN has no direction
  const Tensor sign =
      ops::where(ops::gt(d, none), ops::ones_like(d), ops::where(ops::lt(d, none), -ops::ones_like(d), none));
  if (p == 1) return total(g * sign);
  if (std::isinf(p)) return total(masked(g * sign, ops::eq(ops::abs(d), far)));
  const Tensor apart = ops::ne(far, Tensor(0)), safe = ops::where(apart, far, Tensor(1));
  if (p == 2) return total(masked(g * d / safe, apart));
  const Tensor moved = ops::logical_and(apart, ops::ne(d, Tensor(0)));
  const Tensor size = ops::where(moved, ops::abs(d), Tensor(1));
  return total(masked(g * sign * ops::pow(size, Tensor(p - 1)) * ops::pow(safe, Tensor(1 - p)), moved));
}
Tensor euclidean_dist(const Tensor& x1, const Tensor& x2) {
  return ops::vector_norm(differences(x1, x2), Scalar(2.0), Shape{-1}, false);
}

Tensor pdist_forward(const Tensor& input, double p) {
  const int64_t n = input.size(0);
  const Tensor places = ops::triu_indices(n, n, 1, DType::Int64, stated_device(input));
  const auto rows = [&](int64_t k) { return ops::index_select(input, 0, ops::select(places, 0, k)); };
  return ops::vector_norm(rows(0) - rows(1), Scalar(p), Shape{-1}, false);
}

DECOMPOSE(conv3d)
DECOMPOSE(conv3d_backward)
DECOMPOSE(resample)
DECOMPOSE(resample_backward)
DECOMPOSE(im2col)
DECOMPOSE(col2im)
DECOMPOSE(grid_sampler)
DECOMPOSE(grid_sampler_backward)
DECOMPOSE(cdist_forward)
DECOMPOSE(cdist_backward)
DECOMPOSE(euclidean_dist)
DECOMPOSE(pdist_forward)

}  // namespace
}  // namespace taeda::decompose
