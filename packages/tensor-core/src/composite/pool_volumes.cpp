// Pooling over three dimensions as pooling over the last two, and then over the first.
#include "infer/memory_format.h"
#include "infer/pool.h"
#include "taeda/arithmetic.h"
#include "taeda/ops.h"

namespace taeda::impl {
namespace {

using infer::Triple;

/// (N, C, D, H, W) or (C, D, H, W) as images of D channels.
struct Volumes {
  Tensor images;
  Shape lead;
  Volumes(const char* op, const Tensor& input, bool adaptive = false) {
    check(input.dim() == 4 || input.dim() == 5, ErrorKind::Runtime, op, ": argument 'input' has shape ",
          shape_text(input.sizes()), ", expected (N, C, D, H, W) or (C, D, H, W)");
    for (int64_t d = adaptive ? 1 : input.dim() - 4; d < input.dim();
         ++d)  // of no channels alone an adaptive pool is empty
      check(input.size(d) > 0, ErrorKind::Runtime, op, ": argument 'input' has shape ", shape_text(input.sizes()),
            ", expected no empty dimension but the batch");
    lead = Shape(input.sizes().first(size_t(input.dim()) - 3));
    int64_t count = 1;
    for (const int64_t size : lead) count *= size;
    images = ops::reshape(input, Shape{count, input.size(-3), input.size(-2), input.size(-1)});
  }
};

/// Note [Depth as height]
/// What stands in between, (B, D, H', W'), is seen as images of H' * W' channels with the height D and the width 1.
/// Their strides are channels-last, so that pooling over the depth runs along memory, and so does its result.
Tensor by_depth(const Tensor& t) {
  const Tensor rows = ops::reshape(t, Shape{t.size(0), t.size(1), t.size(2) * t.size(3)});
  return ops::permute(ops::unsqueeze(rows, 2), Shape{0, 3, 1, 2});  // the width too has channels-last strides
}
/// (B, H' * W', D', 1) as (B, D', H' * W').
Tensor depth_first(const Tensor& t) { return ops::transpose(ops::squeeze_dims(t, Shape{-1}), 1, 2); }
/// The result row by row, so that programs may `view` it: what lies as `by_depth` left it is no layout of volumes.
Tensor assembled(const Volumes& v, const Tensor& t, int64_t height, int64_t width) {
  Shape sizes = v.lead;
  sizes.push_back(t.size(1));
  sizes.push_back(height);
  sizes.push_back(width);
  return ops::contiguous(ops::reshape(t, sizes));
}
/// The maxima of volumes whose channels lie last lie so, too.
Tensor as_maxima(const Tensor& input, const Tensor& result) {
  const bool last = input.dim() == 5 && infer::channels_come_last(input);
  return last ? ops::contiguous(result, "channels_last_3d") : result;
}

/// The window of the images, and that of the depth.
struct Windows {
  Triple kernel, stride, padding, dilation;
  bool ceil_mode;
  Windows(const char* op, const Volumes& v, IntSpan kernel_size, IntSpan strides, IntSpan paddings, IntSpan dilations,
          bool ceil)
      : kernel(infer::several<3>(op, "kernel_size", kernel_size, 1)),
        stride(infer::several<3>(op, "stride", strides, 1, kernel)),
        padding(infer::several<3>(op, "padding", paddings, 0)),
        dilation(infer::several<3>(op, "dilation", dilations, 1)),
        ceil_mode(ceil) {
    infer::checked_pool(op, v.images, of(kernel), of(stride), of(padding), of(dilation), ceil);
    infer::checked_pool(op, by_depth(v.images), deep(kernel), deep(stride), deep(padding, 0), deep(dilation), ceil);
  }
  static Shape of(const Triple& t) { return Shape{t[1], t[2]}; }
  static Shape deep(const Triple& t, int64_t width = 1) { return Shape{t[0], width}; }
};
template <class Images, class Depth>
Tensor pooled(const Volumes& v, const Images& pool_images, const Depth& pool_depth) {
  const Tensor flat = pool_images(v.images);
  return assembled(v, depth_first(pool_depth(by_depth(flat))), flat.size(2), flat.size(3));
}
/// The positions (d * H + h) * W + w of maxima of maxima. The first of equals stays the first: the depth is the outer
/// one.
template <class Images, class Depth>
std::tuple<Tensor, Tensor> pooled_with_indices(const Volumes& v, const Images& pool_images, const Depth& pool_depth) {
  const auto [flat, places] = pool_images(v.images);
  const auto [values, slices] = pool_depth(by_depth(flat));
  const int64_t height = flat.size(2), width = flat.size(3), area = v.images.size(2) * v.images.size(3);
  const Tensor chosen = depth_first(slices);
  const Tensor inside = ops::gather(ops::reshape(places, Shape{flat.size(0), flat.size(1), height * width}), 1, chosen);
  return {assembled(v, depth_first(values), height, width),
          assembled(v, chosen * Tensor(area) + inside, height, width)};
}

Triple parts(const char* op, const Tensor& input, IntSpan output_size) {
  check(output_size.size() == 1 || output_size.size() == 3, ErrorKind::Runtime, op, ": argument 'output_size' has ",
        output_size.size(), " numbers, expected 1 or 3");
  for (const int64_t size : output_size)
    check(size >= 0 && size <= infer::kLargest, ErrorKind::Runtime, op,
          ": argument 'output_size' must not be negative nor above ", infer::kLargest, ", got ",
          shape_text(output_size), " for 'input' of shape ", shape_text(input.sizes()));
  return infer::spread<3>(output_size);
}
void expect_dtype(const char* op, const Tensor& input) {
  check(is_floating(input.dtype()), ErrorKind::NotImplemented, op, ": not implemented for dtype ", name(input.dtype()));
}

}  // namespace

Tensor max_pool3d(const Tensor& input, IntSpan kernel_size, IntSpan stride, IntSpan padding, IntSpan dilation,
                  bool ceil_mode) {
  infer::expect_ordered("max_pool3d", input);
  const Volumes v("max_pool3d", input);
  const Windows w("max_pool3d", v, kernel_size, stride, padding, dilation, ceil_mode);
  // With places a gradient is brought back in one step.
  if (input.requires_grad())
    return std::get<0>(ops::max_pool3d_with_indices(input, kernel_size, stride, padding, dilation, ceil_mode));
  const Tensor values = pooled(
      v,
      [&w](const Tensor& t) {
        return ops::max_pool2d(t, w.of(w.kernel), w.of(w.stride), w.of(w.padding), w.of(w.dilation), w.ceil_mode);
      },
      [&w](const Tensor& t) {
        return ops::max_pool2d(t, w.deep(w.kernel), w.deep(w.stride), w.deep(w.padding, 0), w.deep(w.dilation),
                               w.ceil_mode);
      });
  return as_maxima(input, values);
}
std::tuple<Tensor, Tensor> max_pool3d_with_indices(const Tensor& input, IntSpan kernel_size, IntSpan stride,
                                                   IntSpan padding, IntSpan dilation, bool ceil_mode) {
  infer::expect_ordered("max_pool3d", input);
  const Volumes v("max_pool3d", input);
  const Windows w("max_pool3d", v, kernel_size, stride, padding, dilation, ceil_mode);
  const auto [values, places] = pooled_with_indices(
      v,
      [&w](const Tensor& t) {
        return ops::max_pool2d_with_indices(t, w.of(w.kernel), w.of(w.stride), w.of(w.padding), w.of(w.dilation),
                                            w.ceil_mode);
      },
      [&w](const Tensor& t) {
        return ops::max_pool2d_with_indices(t, w.deep(w.kernel), w.deep(w.stride), w.deep(w.padding, 0),
                                            w.deep(w.dilation), w.ceil_mode);
      });
  return {as_maxima(input, values), as_maxima(input, places)};
}
Tensor avg_pool3d(const Tensor& input, IntSpan kernel_size, IntSpan stride, IntSpan padding, bool ceil_mode,
                  bool count_include_pad, std::optional<int64_t> divisor_override) {
  if (input.dtype() == DType::Int64) {
    const Tensor mean = avg_pool3d(ops::to_dtype(input, DType::Float64), kernel_size, stride, padding, ceil_mode,
                                   count_include_pad, divisor_override);
    const Triple kernel = infer::several<3>("avg_pool3d", "kernel_size", kernel_size, 1);
    const int64_t most = divisor_override.value_or(kernel[0] * kernel[1] * kernel[2]);
    return ops::to_dtype(infer::whole_means(mean, most), DType::Int64);
  }
  expect_dtype("avg_pool3d", input);
  check(!divisor_override || *divisor_override != 0, ErrorKind::Runtime,
        "avg_pool3d: argument 'divisor_override' must not be 0");
  const Volumes v("avg_pool3d", input);
  const Windows w("avg_pool3d", v, kernel_size, stride, padding, Shape{1}, ceil_mode);
  const std::optional<int64_t> one = divisor_override ? std::optional<int64_t>(1) : std::nullopt;
  return pooled(
      v,
      [&](const Tensor& t) {
        return ops::avg_pool2d(t, w.of(w.kernel), w.of(w.stride), w.of(w.padding), ceil_mode, count_include_pad,
                               divisor_override);
      },
      [&](const Tensor& t) {
        return ops::avg_pool2d(t, w.deep(w.kernel), w.deep(w.stride), w.deep(w.padding, 0), ceil_mode,
                               count_include_pad, one);
      });
}
Tensor adaptive_avg_pool3d(const Tensor& input, IntSpan output_size) {
  expect_dtype("adaptive_avg_pool3d", input);
  const Volumes v("adaptive_avg_pool3d", input, true);
  const Triple out = parts("adaptive_avg_pool3d", input, output_size);
  return pooled(
      v, [&out](const Tensor& t) { return ops::adaptive_avg_pool2d(t, Shape{out[1], out[2]}); },
      [&out](const Tensor& t) { return ops::adaptive_avg_pool2d(t, Shape{out[0], 1}); });
}
std::tuple<Tensor, Tensor> adaptive_max_pool3d(const Tensor& input, IntSpan output_size) {
  infer::expect_ordered("adaptive_max_pool3d", input);
  const Volumes v("adaptive_max_pool3d", input, true);
  const Triple out = parts("adaptive_max_pool3d", input, output_size);
  return pooled_with_indices(
      v, [&out](const Tensor& t) { return ops::adaptive_max_pool2d(t, Shape{out[1], out[2]}); },
      [&out](const Tensor& t) { return ops::adaptive_max_pool2d(t, Shape{out[0], 1}); });
}

}  // namespace taeda::impl
