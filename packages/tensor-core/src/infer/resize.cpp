// Inference of the resize family, and the weights of its filters.
#include "infer/resize.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "infer/memory_format.h"
#include "infer/windows.h"
#include "taeda/checked.h"
#include "taeda/ops/resize.h"

namespace taeda::infer {
namespace {

/// The distance between results, in elements. Counted in T.
template <class T>
T step_of(const Resampled& r) {
  if (r.align_corners) return r.out > 1 ? T(r.in - 1) / T(r.out - 1) : T(0);
  return r.scale > 0 ? T(1.0 / r.scale) : T(r.in) / T(r.out);
}

/// Keys' cubic convolution at distance `x`.
template <class T>
T keys(T x, T a) {
  x = std::abs(x);
  if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? (((x - 5) * x + 8) * x - 4) * a : T(0);
}
template <class T>
T sinc(T x) {
  return x == 0 ? T(1) : std::sin(T(std::numbers::pi) * x) / (T(std::numbers::pi) * x);
}
/// The filter that antialiasing widens, and its reach.
template <class T>
T kernel_at(Filter filter, T x) {
  switch (filter) {
    case Filter::Linear: return std::max(T(0), 1 - std::abs(x));
    case Filter::Cubic: return keys(x, T(-0.5));
    default: return std::abs(x) < 3 ? sinc(x) * sinc(x / 3) : T(0);
  }
}
int64_t reach_of(Filter filter) { return filter == Filter::Linear ? 1 : filter == Filter::Cubic ? 2 : 3; }

void reserve(Taps& taps, int64_t out, int64_t most) {
  taps.most = most;
  taps.first.resize(size_t(out));
  taps.count.resize(size_t(out));
  taps.weights.resize(size_t(out * most));
}
/// Puts `count` weights around element `first`; what lies outside is the element at the border.
template <class T>
void put(Taps& taps, int64_t i, int64_t in, int64_t first, const T* weights, int64_t count) {
  const int64_t begin = std::clamp<int64_t>(first, 0, in - 1), end = std::clamp<int64_t>(first + count, 1, in);
  taps.first[size_t(i)] = int32_t(begin);
  taps.count[size_t(i)] = int32_t(end - begin);
  double* const to = taps.weights.data() + i * taps.most;
  for (int64_t k = 0; k < count; ++k) {
    double& place = to[std::clamp(first + k, begin, end - 1) - begin];
    place = double(T(place) + weights[k]);
  }
}

Taps nearest_taps(const Resampled& r) {
  Taps taps;
  reserve(taps, r.out, 1);
  // Always in float32: which neighbour is nearest must not depend on the dtype.
  const float step = step_of<float>({r.filter, false, false, r.scale, r.in, r.out});
  const bool exact = r.filter == Filter::NearestExact;
  for (int64_t i = 0; i < r.out; ++i) {
    int64_t at;
    if (r.in == r.out && !exact) at = i;
    else if (r.out == 2 * r.in && !exact) at = i / 2;
    else at = int64_t(std::floor(exact ? float((double(i) + 0.5) * double(step)) : float(i) * step));
    at = std::clamp<int64_t>(at, 0, r.in - 1);
    taps.first[size_t(i)] = int32_t(at);
    taps.count[size_t(i)] = 1;
    taps.weights[size_t(i)] = 1;
  }
  return taps;
}

template <class T>
Taps interpolating_taps(const Resampled& r) {
  const bool cubic = r.filter == Filter::Cubic;
  Taps taps;
  reserve(taps, r.out, cubic ? 4 : 2);
  const T step = step_of<T>(r);
  for (int64_t i = 0; i < r.out; ++i) {
    T at = r.align_corners ? step * T(i) : step * (T(i) + T(0.5)) - T(0.5);
    if (cubic) {
      const int64_t left = std::min(int64_t(std::floor(at)), r.in - 1);
      const T t = std::clamp(at - T(left), T(0), T(1));
      const T a = T(-0.75), weights[] = {keys(t + 1, a), keys(t, a), keys(1 - t, a), keys(2 - t, a)};
      put(taps, i, r.in, left - 1, weights, 4);
    } else {
      if (r.in == r.out) at = T(i);
      at = std::max(at, T(0));
      const int64_t left = std::min(int64_t(at), r.in - 1);
      const T t = std::clamp(at - T(left), T(0), T(1)), weights[] = {1 - t, t};
      put(taps, i, r.in, left, weights, 2);
    }
  }
  return taps;
}

template <class T>
Taps widened_taps(const Resampled& r) {
  const T step = step_of<T>(r), half = T(0.5);
  const T support = T(reach_of(r.filter)) * std::max(step, T(1)), squeeze = step >= 1 ? 1 / step : T(1);
  const int64_t most = std::min(r.in, int64_t(std::ceil(support)) * 2 + 1);
  Taps taps;
  reserve(taps, r.out, most);
  for (int64_t i = 0; i < r.out; ++i) {
    const T center = step * (T(i) + half);
    const int64_t begin = std::clamp<int64_t>(int64_t(center - support + half), 0, r.in);
    const int64_t end = std::min(int64_t(center + support + half), r.in);
    const int64_t count = std::clamp<int64_t>(end - begin, 0, most);
    double* const weights = taps.weights.data() + i * most;
    T total(0);
    for (int64_t k = 0; k < count; ++k) {
      const T weight = kernel_at(r.filter, (T(k + begin) - center + half) * squeeze);
      weights[k] = double(weight);
      total += weight;
    }
    for (int64_t k = 0; total != 0 && k < count; ++k) weights[k] = double(T(weights[k]) / total);
    taps.first[size_t(i)] = int32_t(std::min(begin, r.in - 1));
    taps.count[size_t(i)] = int32_t(count);
  }
  return taps;
}

/// What both directions share: the sizes on both sides, which are greater than 0.
void expect_sizes(const char* op, const Tensor& t, IntSpan in, IntSpan out, std::string_view mode, bool align_corners,
                  bool antialias, std::span<const double> scales) {
  const Filter filter = filter_of(op, mode);
  const size_t rank = in.size();
  check(rank >= 1 && rank <= 3, ErrorKind::Runtime, op, ": argument '", t.dim() == 5 ? "input" : "grad", "' has shape ",
        shape_text(t.sizes()), ", expected 3 to 5 dimensions");
  for (const IntSpan sizes : {in, out})
    for (const int64_t size : sizes)
      check(size > 0 && size <= kLargest, ErrorKind::Runtime, op,
            ": input and output sizes should be greater than 0 and at most ", kLargest, ", got ", shape_text(in),
            " and ", shape_text(out));
  check(scales.empty() || scales.size() == rank, ErrorKind::Runtime, op, ": argument 'scales' has ", scales.size(),
        " numbers, expected ", rank);
  for (const double scale : scales)
    check(std::isfinite(scale), ErrorKind::Runtime, op, ": argument 'scales' must be finite, got ", scale);
  check(!antialias || (rank == 2 && filter >= Filter::Linear), ErrorKind::Value, op,
        ": argument 'antialias' needs images (N, C, H, W) and mode 'linear', 'cubic' or 'lanczos', got mode '", mode,
        "' for ", rank, " dimensions");
  check(filter != Filter::Lanczos || (antialias && !align_corners), ErrorKind::Value, op,
        ": mode 'lanczos' needs antialias=True and align_corners=False");
  check(filter != Filter::Cubic || rank == 2, ErrorKind::NotImplemented, op,
        ": mode 'cubic' needs images (N, C, H, W), got ", rank, " dimensions");
}
IntSpan spatial(const Tensor& t) { return t.sizes().subspan(2); }
Spec resized(const Tensor& t, IntSpan sizes) {
  Shape whole(t.sizes().first(2));
  for (const int64_t size : sizes) whole.push_back(size);
  return {whole, t.dtype(), image_strides(t, whole)};
}
void expect_images(const char* op, const char* argument, const Tensor& t, size_t rank) {
  check(t.dim() >= 3 && t.dim() <= 5, ErrorKind::Runtime, op, ": argument '", argument, "' has shape ",
        shape_text(t.sizes()), ", expected 3 to 5 dimensions");
  check(rank + 2 == size_t(t.dim()), ErrorKind::Runtime, op, ": argument '", argument, "' of shape ",
        shape_text(t.sizes()), " needs ", t.dim() - 2, " sizes, got ", rank);
  check(t.size(1) > 0, ErrorKind::Runtime, op, ": argument '", argument, "' has shape ", shape_text(t.sizes()),
        ", expected no empty dimension but the batch");
}

}  // namespace

bool Taps::identity(int64_t in) const {
  if (in != size()) return false;
  for (int64_t i = 0; i < in; ++i) {
    const double* const own = weights.data() + i * most;
    for (int64_t k = 0; k < count[size_t(i)]; ++k)
      if (own[k] != (first[size_t(i)] + k == i ? 1.0 : 0.0)) return false;
    if (count[size_t(i)] == 0 || first[size_t(i)] > i || first[size_t(i)] + count[size_t(i)] <= i) return false;
  }
  return true;
}

Filter filter_of(const char* op, std::string_view mode) {
  constexpr std::string_view names[] = {"nearest", "nearest-exact", "linear", "cubic", "lanczos"};
  const auto found = std::ranges::find(names, mode);
  check(found != std::end(names), ErrorKind::Value, op,
        ": argument 'mode' must be 'nearest', 'nearest-exact', 'linear', 'cubic' or 'lanczos', got '", mode, "'");
  return Filter(found - std::begin(names));
}

Taps resample_taps(const Resampled& r, bool single) {
  if (r.filter <= Filter::NearestExact) return nearest_taps(r);
  if (r.antialias) return single ? widened_taps<float>(r) : widened_taps<double>(r);
  return single ? interpolating_taps<float>(r) : interpolating_taps<double>(r);
}

int fixed_point_bits(const Taps& taps) {
  double largest = 0;
  for (const double weight : taps.weights) largest = std::max(largest, weight);
  int bits = 1;
  while (bits < 22 && int64_t(0.5 + largest * double(int64_t(1) << (bits + 1))) < (1 << 15)) ++bits;
  return bits;
}

Taps transposed(const Taps& taps, int64_t in) {
  Taps out;
  out.first.assign(size_t(in), 0);
  out.count.assign(size_t(in), 0);
  for (int64_t i = 0; i < taps.size(); ++i)
    for (int64_t k = 0; k < taps.count[size_t(i)]; ++k) {
      const auto j = size_t(taps.first[size_t(i)] + k);
      if (out.count[j] == 0) out.first[j] = int32_t(i);
      out.count[j] = int32_t(i) - out.first[j] + 1;
    }
  for (const int32_t count : out.count) out.most = std::max<int64_t>(out.most, count);
  out.weights.assign(size_t(in * out.most), 0.0);
  for (int64_t i = 0; i < taps.size(); ++i)
    for (int64_t k = 0; k < taps.count[size_t(i)]; ++k) {
      const int64_t j = taps.first[size_t(i)] + k;
      out.weights[size_t(j * out.most + i - out.first[size_t(j)])] = taps.weights[size_t(i * taps.most + k)];
    }
  return out;
}

Spec resample(const Tensor& input, IntSpan output_size, std::string_view mode, bool align_corners, bool antialias,
              std::span<const double> scales) {
  const char* const op = "resample";
  expect_images(op, "input", input, output_size.size());
  expect_sizes(op, input, spatial(input), output_size, mode, align_corners, antialias, scales);
  const bool copies = filter_of(op, mode) <= Filter::NearestExact;
  check(is_floating(input.dtype()) || (input.dtype() == DType::UInt8 && (copies || input.dim() == 4)),
        ErrorKind::NotImplemented, op, ": not implemented for dtype ", name(input.dtype()), " with mode '", mode, "'");
  return resized(input, output_size);
}
Spec resample_backward(const Tensor& grad, IntSpan input_size, std::string_view mode, bool align_corners,
                       bool antialias, std::span<const double> scales) {
  const char* const op = "resample_backward";
  expect_images(op, "grad", grad, input_size.size());
  expect_sizes(op, grad, input_size, spatial(grad), mode, align_corners, antialias, scales);
  check(is_floating(grad.dtype()), ErrorKind::NotImplemented, op, ": not implemented for dtype ", name(grad.dtype()));
  return resized(grad, input_size);
}

}  // namespace taeda::infer
