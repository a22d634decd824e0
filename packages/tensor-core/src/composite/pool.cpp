// Pooling over one dimension by that over two, and the choice of how maxima are remembered.
#include "taeda/ops/pool.h"

#include "composite/lists.h"
#include "infer/pool.h"
#include "taeda/ops.h"

namespace taeda::impl {
namespace {

/// (N, C, L) or (C, L) with a height of one.
Tensor heightened(const char* op, const Tensor& input) {
  check(input.dim() == 2 || input.dim() == 3, ErrorKind::Runtime, op, ": argument 'input' has shape ",
        shape_text(input.sizes()), ", expected (N, C, L) or (C, L)");
  return ops::unsqueeze(input, -2);
}
/// Mistakes are found here, where the operator that was called can be named.
void expect_floating(const char* op, const Tensor& input) {
  check(is_floating(input.dtype()), ErrorKind::NotImplemented, op, ": not implemented for dtype ", name(input.dtype()));
}
Tensor flattened(const Tensor& t) { return ops::squeeze_dims(t, Shape{-2}); }

}  // namespace

Tensor max_pool2d(const Tensor& input, IntSpan kernel_size, IntSpan stride, IntSpan padding, IntSpan dilation,
                  bool ceil_mode) {
  const infer::Pair kernel = infer::pair("max_pool2d", "kernel_size", kernel_size, 1);
  if (kernel[0] * kernel[1] <= 255)
    return std::get<0>(ops::max_pool2d_with_offsets(input, kernel_size, stride, padding, dilation, ceil_mode));
  return std::get<0>(ops::max_pool2d_with_indices(input, kernel_size, stride, padding, dilation, ceil_mode));
}
namespace {
/// The arguments of a one-dimensional pooling as those of a two-dimensional one, checked under its own name.
struct Flat {
  Tensor input;
  Shape kernel, stride, padding, dilation;
  Flat(const char* op, const Tensor& line, IntSpan kernel_size, IntSpan stride_, IntSpan padding_, IntSpan dilation_,
       bool ceil_mode)
      : input(heightened(op, line)),
        kernel(widened(op, "kernel_size", kernel_size, 1)),
        stride(widened(op, "stride", stride_, 1)),
        padding(widened(op, "padding", padding_, 0)),
        dilation(widened(op, "dilation", dilation_, 1)) {
    infer::checked_pool(op, input, kernel, stride, padding, dilation, ceil_mode);
  }
};
Shape adaptive(const char* op, const Tensor& input, IntSpan output_size) {
  const Shape size = widened(op, "output_size", output_size, 1);
  infer::adaptive_size(op, input, size);
  return size;
}
}  // namespace

Tensor max_pool1d(const Tensor& input, IntSpan kernel_size, IntSpan stride, IntSpan padding, IntSpan dilation,
                  bool ceil_mode) {
  infer::expect_ordered("max_pool1d", input);
  const Flat f("max_pool1d", input, kernel_size, stride, padding, dilation, ceil_mode);
  return flattened(ops::max_pool2d(f.input, f.kernel, f.stride, f.padding, f.dilation, ceil_mode));
}
std::tuple<Tensor, Tensor> max_pool1d_with_indices(const Tensor& input, IntSpan kernel_size, IntSpan stride,
                                                   IntSpan padding, IntSpan dilation, bool ceil_mode) {
  infer::expect_ordered("max_pool1d", input);
  const Flat f("max_pool1d", input, kernel_size, stride, padding, dilation, ceil_mode);
  const auto [values, indices] =
      ops::max_pool2d_with_indices(f.input, f.kernel, f.stride, f.padding, f.dilation, ceil_mode);
  return {flattened(values), flattened(indices)};
}
Tensor avg_pool1d(const Tensor& input, IntSpan kernel_size, IntSpan stride, IntSpan padding, bool ceil_mode,
                  bool count_include_pad) {
  if (input.dtype() != DType::Int64) expect_floating("avg_pool1d", input);
  const Flat f("avg_pool1d", input, kernel_size, stride, padding, Shape{1}, ceil_mode);
  return flattened(ops::avg_pool2d(f.input, f.kernel, f.stride, f.padding, ceil_mode, count_include_pad, std::nullopt));
}
Tensor adaptive_avg_pool1d(const Tensor& input, IntSpan output_size) {
  expect_floating("adaptive_avg_pool1d", input);
  const Tensor high = heightened("adaptive_avg_pool1d", input);
  return flattened(ops::adaptive_avg_pool2d(high, adaptive("adaptive_avg_pool1d", high, output_size)));
}
std::tuple<Tensor, Tensor> adaptive_max_pool1d(const Tensor& input, IntSpan output_size) {
  infer::expect_ordered("adaptive_max_pool1d", input);
  const Tensor high = heightened("adaptive_max_pool1d", input);
  const auto [values, indices] = ops::adaptive_max_pool2d(high, adaptive("adaptive_max_pool1d", high, output_size));
  return {flattened(values), flattened(indices)};
}

}  // namespace taeda::impl
