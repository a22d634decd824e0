// Inference of the resize family, and the weights of its filters.
#include "infer/resize.h"

#include <algorithm>
#include <cmath>

#include "infer/memory_format.h"
#include "infer/windows.h"
#define TAEDA_ISA plain  // arithmetic of no instruction set
#include "scalar/resample.h"
#include "taeda/checked.h"
#include "taeda/ops/resize.h"

namespace taeda::infer {
namespace {

/// Of T: which element is at a border between two depends on the type that positions are counted in.
template <class T>
Taps taps_in(const Resampled& r) {
  Taps taps;
  taps.most = loops::plain::most_taps<T>(r);
  taps.first.resize(size_t(r.out));
  taps.count.resize(size_t(r.out));
  taps.weights.resize(size_t(r.out * taps.most));
  for (int64_t i = 0; i < r.out; ++i) {
    const loops::plain::TapsOf<T, double> made(r, i, taps.weights.data() + i * taps.most);
    taps.first[size_t(i)] = int32_t(made.first);
    taps.count[size_t(i)] = int32_t(made.count);
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

Taps resample_taps(const Resampled& r, bool single) { return single ? taps_in<float>(r) : taps_in<double>(r); }

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
