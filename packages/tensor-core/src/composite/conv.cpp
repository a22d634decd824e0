// Convolutions written in terms of conv2d and its gradient.
#include "taeda/ops/conv.h"

#include "composite/lists.h"
#include "infer/windows.h"
#include "taeda/checked.h"
#include "taeda/ops.h"

namespace taeda::impl {
namespace {

void expect_rank(const char* op, const char* argument, const Tensor& t, int64_t low, int64_t high) {
  check(t.dim() >= low && t.dim() <= high, ErrorKind::Runtime, op, ": argument '", argument, "' has shape ",
        shape_text(t.sizes()), ", expected ", low, low == high ? "" : detail::concat(" or ", high), " dimensions");
}

/// Of all groups, where `weight` has those of one in its second dimension.
int64_t grouped_channels(const char* op, const Tensor& weight, int64_t groups) {
  return (Count(weight.size(1)) * groups).of(op, "the channels for argument 'groups' ", groups);
}

/// Padding that keeps the size, as (before, after) of one dimension.
std::pair<int64_t, int64_t> same_padding(const char* op, int64_t kernel, int64_t dilation) {
  const int64_t total = (Count(dilation) * (kernel - 1)).of(op, "the padding for argument 'dilation' ", dilation);
  return {total / 2, total - total / 2};
}
bool padding_is_same(const char* op, std::string_view padding, IntSpan stride) {
  check(padding == "same" || padding == "valid", ErrorKind::Runtime, op,
        ": argument 'padding' must be 'same', 'valid' or numbers, got '", padding, "'");
  for (int64_t s : stride)
    check(s == 1 || padding == "valid", ErrorKind::Runtime, op, ": argument 'stride' is ", shape_text(stride),
          ", expected 1 with padding='same'");
  return padding == "same";
}

}  // namespace

Tensor conv1d(const Tensor& input, const Tensor& weight, const Tensor& bias, IntSpan stride, IntSpan padding,
              IntSpan dilation, int64_t groups) {
  expect_rank("conv1d", "input", input, 2, 3);
  expect_rank("conv1d", "weight", weight, 3, 3);
  check(groups >= 1 && weight.size(0) % groups == 0, ErrorKind::Runtime, "conv1d: argument 'groups' is ", groups,
        ", expected a divisor of ", weight.size(0), ", the output channels of 'weight' ", shape_text(weight.sizes()));
  check(!bias.defined() || (bias.dim() == 1 && bias.size(0) == weight.size(0)), ErrorKind::Runtime,
        "conv1d: argument 'bias' has shape ", shape_text(bias.defined() ? bias.sizes() : IntSpan()), ", expected (",
        weight.size(0), ",) to fit 'weight' of shape ", shape_text(weight.sizes()));
  const int64_t channels = grouped_channels("conv1d", weight, groups);
  check(channels == input.size(-2), ErrorKind::Runtime, "conv1d: argument 'input' has shape ",
        shape_text(input.sizes()), ", expected ", channels, " channels to fit 'weight' of shape ",
        shape_text(weight.sizes()), " with groups=", groups);
  const Tensor y =
      ops::conv2d(ops::unsqueeze(input, -2), ops::unsqueeze(weight, -2), bias, widened("conv1d", "stride", stride, 1),
                  widened("conv1d", "padding", padding, 0), widened("conv1d", "dilation", dilation, 1), groups);
  return ops::squeeze_dims(y, Shape{-2});
}
Tensor conv1d_padding(const Tensor& input, const Tensor& weight, const Tensor& bias, IntSpan stride,
                      std::string_view padding, IntSpan dilation, int64_t groups) {
  if (!padding_is_same("conv1d", padding, stride))
    return ops::conv1d(input, weight, bias, stride, Shape{0}, dilation, groups);
  expect_rank("conv1d", "weight", weight, 3, 3);
  const auto [before, after] = same_padding("conv1d", weight.size(-1), dilation.empty() ? 1 : dilation[0]);
  const Tensor padded = before == after ? input : ops::constant_pad_nd(input, Shape{0, after - before}, 0);
  return ops::conv1d(padded, weight, bias, stride, Shape{before}, dilation, groups);
}
Tensor conv2d_padding(const Tensor& input, const Tensor& weight, const Tensor& bias, IntSpan stride,
                      std::string_view padding, IntSpan dilation, int64_t groups) {
  if (!padding_is_same("conv2d", padding, stride))
    return ops::conv2d(input, weight, bias, stride, Shape{0}, dilation, groups);
  expect_rank("conv2d", "weight", weight, 4, 4);
  const infer::Pair d = infer::pair("conv2d", "dilation", dilation, 1);
  const auto [top, bottom] = same_padding("conv2d", weight.size(-2), d[0]);
  const auto [left, right] = same_padding("conv2d", weight.size(-1), d[1]);
  const Tensor padded =
      top == bottom && left == right ? input : ops::constant_pad_nd(input, Shape{0, right - left, 0, bottom - top}, 0);
  return ops::conv2d(padded, weight, bias, stride, Shape{top, left}, dilation, groups);
}

namespace {
/// What a transposed convolution does not share with the gradient that computes it.
void expect_transposed(const char* op, const Tensor& input, const Tensor& weight, const Tensor& bias, int64_t groups) {
  check(groups >= 1 && weight.size(0) % groups == 0, ErrorKind::Runtime, op, ": argument 'groups' is ", groups,
        ", expected a divisor of ", weight.size(0), ", the input channels of 'weight' ", shape_text(weight.sizes()));
  const int64_t outputs = grouped_channels(op, weight, groups);
  for (const auto& [argument, t] : {std::pair<const char*, const Tensor&>{"weight", weight}, {"bias", bias}})
    check(!t.defined() || t.dtype() == input.dtype(), ErrorKind::Runtime, op, ": argument '", argument, "' has dtype ",
          name(t.defined() ? t.dtype() : input.dtype()), ", expected ", name(input.dtype()), ", the dtype of 'input'");
  check(!bias.defined() || (bias.dim() == 1 && bias.size(0) == outputs), ErrorKind::Runtime, op,
        ": argument 'bias' has shape ", shape_text(bias.defined() ? bias.sizes() : IntSpan()), ", expected (", outputs,
        ",) to fit 'weight' of shape ", shape_text(weight.sizes()), " with groups=", groups);
}
}  // namespace

Tensor conv_transpose2d(const Tensor& input, const Tensor& weight, const Tensor& bias, IntSpan stride, IntSpan padding,
                        IntSpan output_padding, int64_t groups, IntSpan dilation) {
  expect_rank("conv_transpose2d", "input", input, 3, 4);
  expect_rank("conv_transpose2d", "weight", weight, 4, 4);
  check(weight.size(0) == input.size(-3), ErrorKind::Runtime, "conv_transpose2d: argument 'input' has shape ",
        shape_text(input.sizes()), ", expected ", weight.size(0), " channels to fit 'weight' of shape ",
        shape_text(weight.sizes()));
  const infer::Pair s = infer::pair("conv_transpose2d", "stride", stride, 1),
                    p = infer::pair("conv_transpose2d", "padding", padding, 0),
                    extra = infer::pair("conv_transpose2d", "output_padding", output_padding, 0),
                    d = infer::pair("conv_transpose2d", "dilation", dilation, 1);
  Shape sizes(input.sizes());
  sizes[sizes.size() - 3] = grouped_channels("conv_transpose2d", weight, groups);
  expect_transposed("conv_transpose2d", input, weight, bias, groups);
  for (size_t i = 0; i < 2; ++i) {
    check(extra[i] < s[i] || extra[i] < d[i], ErrorKind::Runtime, "conv_transpose2d: argument 'output_padding' is ",
          shape_text(output_padding), ", expected less than stride or dilation");
    int64_t& size = sizes[sizes.size() - 2 + i];
    size = ((Count(size) - 1) * s[i] - 2 * p[i] + Count(d[i]) * (weight.size(2 + int64_t(i)) - 1) + extra[i] + 1)
               .of("conv_transpose2d", "the output for argument 'input' of shape ", shape_text(input.sizes()));
    check(size > 0, ErrorKind::Runtime, "conv_transpose2d: argument 'input' of shape ", shape_text(input.sizes()),
          " gives an output without elements");
  }
  // Only its sizes are read.
  const Tensor shape_of_input = empty(sizes, input.dtype(), input.device());
  // With output_padding of a stride or more the convolution back would give more than `input`: the rest is zero.
  const int64_t more[] = {extra[0] / s[0], extra[1] / s[1]};
  const Tensor wide =
      more[0] || more[1] ? ops::constant_pad_nd(input, Shape{0, more[1], 0, more[0]}, Scalar(int64_t(0))) : input;
  const Tensor y = std::get<0>(ops::conv2d_backward(wide, shape_of_input, weight, Shape{s[0], s[1]}, Shape{p[0], p[1]},
                                                    Shape{d[0], d[1]}, groups, 1));
  return bias.defined() ? ops::add(y, ops::reshape(bias, Shape{-1, 1, 1})) : y;
}
Tensor conv_transpose1d(const Tensor& input, const Tensor& weight, const Tensor& bias, IntSpan stride, IntSpan padding,
                        IntSpan output_padding, int64_t groups, IntSpan dilation) {
  expect_rank("conv_transpose1d", "input", input, 2, 3);
  expect_rank("conv_transpose1d", "weight", weight, 3, 3);
  check(weight.size(0) == input.size(-2), ErrorKind::Runtime, "conv_transpose1d: argument 'input' has shape ",
        shape_text(input.sizes()), ", expected ", weight.size(0), " channels to fit 'weight' of shape ",
        shape_text(weight.sizes()));
  expect_transposed("conv_transpose1d", input, weight, bias, groups);
  const Tensor y = ops::conv_transpose2d(ops::unsqueeze(input, -2), ops::unsqueeze(weight, -2), bias,
                                         widened("conv_transpose1d", "stride", stride, 1),
                                         widened("conv_transpose1d", "padding", padding, 0),
                                         widened("conv_transpose1d", "output_padding", output_padding, 0), groups,
                                         widened("conv_transpose1d", "dilation", dilation, 1));
  return ops::squeeze_dims(y, Shape{-2});
}

}  // namespace taeda::impl
