// Pooling over one dimension by that over two, and the choice of how maxima are remembered.
#include "taeda/ops/pool.h"

#include "infer/windows.h"
#include "taeda/ops.h"

namespace taeda::impl {
namespace {

/// (N, C, L) or (C, L) with a height of one.
Tensor heightened(const char* op, const Tensor& input) {
  check(input.dim() == 2 || input.dim() == 3, ErrorKind::Runtime, op, ": argument 'input' has shape ",
        shape_text(input.sizes()), ", expected (N, C, L) or (C, L)");
  return ops::unsqueeze(input, -2);
}
Shape widened(const char* op, const char* argument, IntSpan list, int64_t first) {
  if (list.empty()) return {};
  check(list.size() == 1, ErrorKind::Runtime, op, ": argument '", argument, "' has ", list.size(),
        " numbers, expected 1");
  return Shape{first, list[0]};
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
Tensor max_pool1d(const Tensor& input, IntSpan kernel_size, IntSpan stride, IntSpan padding, IntSpan dilation,
                  bool ceil_mode) {
  return flattened(
      ops::max_pool2d(heightened("max_pool1d", input), widened("max_pool1d", "kernel_size", kernel_size, 1),
                      widened("max_pool1d", "stride", stride, 1), widened("max_pool1d", "padding", padding, 0),
                      widened("max_pool1d", "dilation", dilation, 1), ceil_mode));
}
std::tuple<Tensor, Tensor> max_pool1d_with_indices(const Tensor& input, IntSpan kernel_size, IntSpan stride,
                                                   IntSpan padding, IntSpan dilation, bool ceil_mode) {
  const auto [values, indices] = ops::max_pool2d_with_indices(
      heightened("max_pool1d", input), widened("max_pool1d", "kernel_size", kernel_size, 1),
      widened("max_pool1d", "stride", stride, 1), widened("max_pool1d", "padding", padding, 0),
      widened("max_pool1d", "dilation", dilation, 1), ceil_mode);
  return {flattened(values), flattened(indices)};
}
Tensor avg_pool1d(const Tensor& input, IntSpan kernel_size, IntSpan stride, IntSpan padding, bool ceil_mode,
                  bool count_include_pad) {
  return flattened(
      ops::avg_pool2d(heightened("avg_pool1d", input), widened("avg_pool1d", "kernel_size", kernel_size, 1),
                      widened("avg_pool1d", "stride", stride, 1), widened("avg_pool1d", "padding", padding, 0),
                      ceil_mode, count_include_pad, std::nullopt));
}
Tensor adaptive_avg_pool1d(const Tensor& input, IntSpan output_size) {
  return flattened(ops::adaptive_avg_pool2d(heightened("adaptive_avg_pool1d", input),
                                            widened("adaptive_avg_pool1d", "output_size", output_size, 1)));
}
std::tuple<Tensor, Tensor> adaptive_max_pool1d(const Tensor& input, IntSpan output_size) {
  const auto [values, indices] = ops::adaptive_max_pool2d(
      heightened("adaptive_max_pool1d", input), widened("adaptive_max_pool1d", "output_size", output_size, 1));
  return {flattened(values), flattened(indices)};
}

}  // namespace taeda::impl
