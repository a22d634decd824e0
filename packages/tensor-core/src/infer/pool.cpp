// Inference of the pool family.
#include "infer/dtypes.h"
#include "infer/pool.h"

#include <algorithm>

#include "taeda/arithmetic.h"
#include "taeda/ops/arith.h"
#include "taeda/ops/pool.h"
#include "taeda/ops/unary.h"

namespace taeda::infer {
namespace {

/// Output size of one dimension; with ceil_mode a last window must still begin inside the input or its left padding.
int64_t pooled(int64_t size, int64_t kernel, int64_t stride, int64_t padding, int64_t dilation, bool ceil_mode) {
  const int64_t room = window_room(size, kernel, padding, dilation);
  int64_t out = floor_div(room + (ceil_mode ? stride - 1 : 0), stride) + 1;
  if (ceil_mode && (out - 1) * stride >= size + padding) --out;
  return out;
}

/// Whether some window has no element: one that begins in the padding and steps over the whole input.
bool misses_input(int64_t size, int64_t stride, int64_t padding, int64_t dilation) {
  for (int64_t start = -padding; start < 0 && dilation > size; start += stride)
    if ((start % dilation + dilation) % dilation >= size) return true;
  return false;
}

void set(Ranges& r, int64_t i, int64_t first, int64_t begin, int64_t end, int64_t length) {
  const size_t at = size_t(i);
  r.first()[at] = int32_t(first), r.begin()[at] = int32_t(begin), r.end()[at] = int32_t(end);
  r.length()[at] = int32_t(length);
}

void expect_floating(const char* op, const Tensor& input) {
  check(is_floating(input.dtype()), ErrorKind::NotImplemented, op, ": not implemented for dtype ", name(input.dtype()));
}
/// A result of moving windows, or without a kernel that of an adaptive pooling.
Spec shaped(const char* op, const Tensor& input, const PoolPlan& s, IntSpan kernel) {
  return image_result(op, input, image_sizes(input, s.n, s.c, s.oh, s.ow), input.dtype(), kernel);
}
/// The same, and where each maximum was.
std::array<Spec, 2> with_places(const Spec& maxima, DType places) {
  return {maxima, {maxima.sizes, places, maxima.strides}};
}

/// `t` of the shape of the pooled tensor.
void expect_pooled(const char* op, const char* argument, const Tensor& t, const Tensor& input, int64_t oh, int64_t ow) {
  const Images in = images(op, "input", input);
  const Shape expected = image_sizes(input, in.n, in.c, oh, ow);
  check(std::ranges::equal(t.sizes(), IntSpan(expected)), ErrorKind::Runtime, op, ": argument '", argument,
        "' has shape ", shape_text(t.sizes()), ", expected ", shape_text(expected));
}
void expect_grad(const char* op, const Tensor& grad, const Tensor& input, int64_t oh, int64_t ow) {
  expect_floating(op, grad);
  expect_pooled(op, "grad", grad, input, oh, ow);
}
/// Where the maxima were: one number of `dtype` for each element of the result.
void expect_places(const char* op, const char* argument, const Tensor& t, DType dtype, const Tensor& input, int64_t oh,
                   int64_t ow) {
  expect_pooled(op, argument, t, input, oh, ow);
  expect_dtype(op, argument, t, dtype);
}
void expect_countable(const char* op, IntSpan kernel_size) {
  const Pair kernel = both(kernel_size);
  check(kernel[0] * kernel[1] <= 255, ErrorKind::Runtime, op, ": argument 'kernel_size' is ", shape_text(kernel_size),
        ", expected a window of at most 255 elements");
}
/// Gradients take the layout of what came in, so that it travels backwards through a network.
Spec gradient(const Tensor& grad, const Tensor& input) { return spec_like(input.sizes(), grad.dtype(), grad); }

}  // namespace

void expect_ordered(const char* op, const Tensor& input) {
  check(input.dtype() != DType::Bool && !is_complex(input.dtype()), ErrorKind::NotImplemented, op,
        ": not implemented for dtype ", name(input.dtype()));
}

PoolPlan pool_plan(const Tensor& input, const Window& w, bool ceil_mode) {
  PoolPlan s = adaptive_plan(input, {0, 0});
  s.oh = pooled(s.h, w.kernel[0], w.stride[0], w.padding[0], w.dilation[0], ceil_mode);
  s.ow = pooled(s.w, w.kernel[1], w.stride[1], w.padding[1], w.dilation[1], ceil_mode);
  return s;
}
PoolPlan adaptive_plan(const Tensor& input, const Pair& output_size) {
  return {input.dim() == 4 ? input.size(0) : 1,
          input.size(-3),
          input.size(-2),
          input.size(-1),
          output_size[0],
          output_size[1]};
}

Ranges window_ranges(int64_t size, int64_t out, const Window& w, size_t dimension, bool count_padding) {
  const int64_t kernel = w.kernel[dimension], stride = w.stride[dimension], padding = w.padding[dimension],
                dilation = w.dilation[dimension];
  Ranges r(out);
  for (int64_t i = 0; i < out; ++i) {
    const int64_t first = i * stride - padding;
    const int64_t padded_end = std::min(first + (kernel - 1) * dilation + 1, size + padding);
    const int64_t begin = first < 0 ? first + (dilation - 1 - first) / dilation * dilation : first;
    const int64_t end = std::min(padded_end, size);
    set(r, i, first, begin, end, count_padding ? padded_end - first : end - begin);
  }
  return r;
}
Ranges adaptive_ranges(int64_t size, int64_t out) {
  Ranges r(out);
  for (int64_t i = 0; i < out; ++i) {
    const int64_t begin = i * size / out, end = ((i + 1) * size + out - 1) / out;
    set(r, i, begin, begin, end, end - begin);
  }
  return r;
}

PoolPlan checked_pool(const char* op, const Tensor& input, IntSpan kernel_size, IntSpan stride, IntSpan padding,
                      IntSpan dilation, bool ceil_mode) {
  const Images in = images(op, "input", input);
  check(in.c > 0 && in.h > 0 && in.w > 0, ErrorKind::Runtime, op, ": argument 'input' has shape ",
        shape_text(input.sizes()), ", expected no empty dimension but the batch");
  const Pair kernel = pair(op, "kernel_size", kernel_size, 1);
  pair(op, "stride", stride, 1, kernel);
  pair(op, "padding", padding, 0);
  pair(op, "dilation", dilation, 1);
  const Window w(kernel_size, stride, padding, dilation);
  for (size_t i = 0; i < 2; ++i)
    check(w.padding[i] * 2 <= w.kernel[i], ErrorKind::Runtime, op, ": argument 'padding' is ", shape_text(padding),
          ", expected at most half of kernel_size ", shape_text(kernel_size));
  const PoolPlan s = pool_plan(input, w, ceil_mode);
  check(s.oh > 0 && s.ow > 0, ErrorKind::Runtime, op, ": argument 'input' of shape ", shape_text(input.sizes()),
        " is smaller than the window: kernel_size ", shape_text(kernel_size), ", padding ", shape_text(padding),
        ", dilation ", shape_text(dilation));
  for (size_t i = 0; i < 2; ++i)
    check(!misses_input(i ? s.w : s.h, w.stride[i], w.padding[i], w.dilation[i]), ErrorKind::Runtime, op,
          ": argument 'dilation' is ", shape_text(dilation), ", with padding ", shape_text(padding),
          " a window without any element of 'input' of shape ", shape_text(input.sizes()));
  return s;
}

Pair adaptive_size(const char* op, const Tensor& input, IntSpan output_size) {
  const Images in = images(op, "input", input);
  check(output_size.size() == 1 || output_size.size() == 2, ErrorKind::Runtime, op, ": argument 'output_size' has ",
        output_size.size(), " numbers, expected 1 or 2");
  check(in.h > 0 && in.w > 0, ErrorKind::Runtime, op, ": argument 'input' has shape ", shape_text(input.sizes()),
        ", expected no empty dimension but the batch");
  const Pair out{output_size[0], output_size.back()};
  check(out[0] >= 0 && out[1] >= 0, ErrorKind::Runtime, op, ": argument 'output_size' must not be negative, got ",
        shape_text(output_size));
  check(out[0] <= kLargest && out[1] <= kLargest, ErrorKind::Runtime, op, ": argument 'output_size' must be at most ",
        kLargest, ", got ", shape_text(output_size));
  return out;
}

std::array<Spec, 2> max_pool2d_with_indices(const Tensor& input, IntSpan kernel_size, IntSpan stride, IntSpan padding,
                                            IntSpan dilation, bool ceil_mode) {
  expect_ordered("max_pool2d", input);
  const PoolPlan s = checked_pool("max_pool2d", input, kernel_size, stride, padding, dilation, ceil_mode);
  return with_places(shaped("max_pool2d_with_indices", input, s, both(kernel_size)), DType::Int64);
}
std::array<Spec, 2> max_pool2d_with_offsets(const Tensor& input, IntSpan kernel_size, IntSpan stride, IntSpan padding,
                                            IntSpan dilation, bool ceil_mode) {
  expect_ordered("max_pool2d", input);
  const PoolPlan s = checked_pool("max_pool2d", input, kernel_size, stride, padding, dilation, ceil_mode);
  expect_countable("max_pool2d_with_offsets", kernel_size);
  return with_places(shaped("max_pool2d_with_offsets", input, s, both(kernel_size)), DType::UInt8);
}
Spec max_pool2d_with_indices_backward(const Tensor& grad, const Tensor& input, IntSpan kernel_size, IntSpan stride,
                                      IntSpan padding, IntSpan dilation, bool ceil_mode, const Tensor& indices) {
  const char* const op = "max_pool2d_with_indices_backward";
  const PoolPlan s = checked_pool(op, input, kernel_size, stride, padding, dilation, ceil_mode);
  expect_grad(op, grad, input, s.oh, s.ow);
  expect_places(op, "indices", indices, DType::Int64, input, s.oh, s.ow);
  return gradient(grad, input);
}
Spec max_pool2d_backward(const Tensor& grad, const Tensor& input, IntSpan kernel_size, IntSpan stride, IntSpan padding,
                         IntSpan dilation, bool ceil_mode, const Tensor& offsets) {
  const char* const op = "max_pool2d_backward";
  const PoolPlan s = checked_pool(op, input, kernel_size, stride, padding, dilation, ceil_mode);
  expect_countable(op, kernel_size);
  expect_grad(op, grad, input, s.oh, s.ow);
  expect_places(op, "offsets", offsets, DType::UInt8, input, s.oh, s.ow);
  return gradient(grad, input);
}
Spec max_pool2d_pick(const Tensor& input, IntSpan kernel_size, IntSpan stride, IntSpan padding, IntSpan dilation,
                     bool ceil_mode, const Tensor& offsets) {
  const char* const op = "max_pool2d_pick";
  expect_floating(op, input);
  const PoolPlan s = checked_pool(op, input, kernel_size, stride, padding, dilation, ceil_mode);
  expect_countable(op, kernel_size);
  expect_places(op, "offsets", offsets, DType::UInt8, input, s.oh, s.ow);
  return shaped(op, input, s, both(kernel_size));
}

Tensor whole_means(const Tensor& mean, int64_t most) {
  // A quotient that is whole may lie an ulp below; one that is not is further away than this.
  return ops::trunc(mean + ops::sign(mean) * Tensor(0.5 / std::abs(double(most))));
}
Spec avg_pool2d(const Tensor& input, IntSpan kernel_size, IntSpan stride, IntSpan padding, bool ceil_mode, bool,
                std::optional<int64_t> divisor_override) {
  if (input.dtype() != DType::Int64) expect_floating("avg_pool2d", input);
  check(!divisor_override || *divisor_override != 0, ErrorKind::Runtime,
        "avg_pool2d: argument 'divisor_override' must not be 0");
  const PoolPlan s = checked_pool("avg_pool2d", input, kernel_size, stride, padding, Shape{1}, ceil_mode);
  return shaped("avg_pool2d", input, s, both(kernel_size));
}
Spec avg_pool2d_backward(const Tensor& grad, const Tensor& input, IntSpan kernel_size, IntSpan stride, IntSpan padding,
                         bool ceil_mode, bool, std::optional<int64_t> divisor_override) {
  check(!divisor_override || *divisor_override != 0, ErrorKind::Runtime,
        "avg_pool2d_backward: argument 'divisor_override' must not be 0");
  const PoolPlan s = checked_pool("avg_pool2d_backward", input, kernel_size, stride, padding, Shape{1}, ceil_mode);
  expect_grad("avg_pool2d_backward", grad, input, s.oh, s.ow);
  return gradient(grad, input);
}

Spec adaptive_avg_pool2d(const Tensor& input, IntSpan output_size) {
  expect_floating("adaptive_avg_pool2d", input);
  const Pair out = adaptive_size("adaptive_avg_pool2d", input, output_size);
  return shaped("adaptive_avg_pool2d", input, adaptive_plan(input, out), {});
}
Spec adaptive_avg_pool2d_backward(const Tensor& grad, const Tensor& input) {
  expect_grad("adaptive_avg_pool2d_backward", grad, input, grad.dim() >= 3 ? grad.size(-2) : 0,
              grad.dim() >= 3 ? grad.size(-1) : 0);
  // A 1 x 1 gradient is both row-major and channels-last: the input's layout decides.
  return spec_like(input.sizes(), grad.dtype(), input);
}
std::array<Spec, 2> adaptive_max_pool2d(const Tensor& input, IntSpan output_size) {
  expect_ordered("adaptive_max_pool2d", input);
  const Pair out = adaptive_size("adaptive_max_pool2d", input, output_size);
  return with_places(shaped("adaptive_max_pool2d", input, adaptive_plan(input, out), {}), DType::Int64);
}
Spec adaptive_max_pool2d_backward(const Tensor& grad, const Tensor& input, const Tensor& indices) {
  const char* const op = "adaptive_max_pool2d_backward";
  const int64_t oh = grad.dim() >= 3 ? grad.size(-2) : 0, ow = grad.dim() >= 3 ? grad.size(-1) : 0;
  expect_grad(op, grad, input, oh, ow);
  expect_places(op, "indices", indices, DType::Int64, input, oh, ow);
  return gradient(grad, input);
}

}  // namespace taeda::infer
