// Convolutions written in terms of conv2d, conv3d and their gradients.
#include "taeda/ops/conv.h"

#include "composite/lists.h"
#include "infer/windows.h"
#include "taeda/checked.h"
#include "taeda/generator_state.h"
#include "taeda/ops.h"
#include "taeda/wrappers.h"

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
/// (N, C, L) or (C, L) with a height of one; row by row while a twister draws, as PyTorch copies sequences then: what
/// is drawn behind in the order of memory follows from it.
Tensor heightened(const Tensor& line) {
  return ops::unsqueeze(default_engine() == Engine::Twister ? ops::contiguous(line) : line, -2);
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
      ops::conv2d(heightened(input), ops::unsqueeze(weight, -2), bias, widened("conv1d", "stride", stride, 1),
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
namespace {
/// What padding='same' puts before each of N dimensions; `input` gets what more stands behind.
template <size_t N>
Shape padded_alike(const char* op, Tensor& input, const Tensor& weight, IntSpan dilation) {
  expect_rank(op, "weight", weight, int64_t(N) + 2, int64_t(N) + 2);
  const auto d = infer::several<N>(op, "dilation", dilation, 1);
  Shape ahead, behind;
  bool uneven = false;
  for (size_t i = 0; i < N; ++i) {
    const auto [before, after] = same_padding(op, weight.size(int64_t(i) + 2), d[i]);
    ahead.push_back(before);
    behind.insert(0, after - before);
    behind.insert(0, 0);
    uneven = uneven || after != before;
  }
  if (uneven) input = ops::constant_pad_nd(input, behind, 0);
  return ahead;
}
}  // namespace

Tensor conv2d_padding(const Tensor& input, const Tensor& weight, const Tensor& bias, IntSpan stride,
                      std::string_view padding, IntSpan dilation, int64_t groups) {
  if (!padding_is_same("conv2d", padding, stride))
    return ops::conv2d(input, weight, bias, stride, Shape{0}, dilation, groups);
  Tensor padded = input;
  const Shape ahead = padded_alike<2>("conv2d", padded, weight, dilation);
  return ops::conv2d(padded, weight, bias, stride, ahead, dilation, groups);
}
Tensor conv3d_padding(const Tensor& input, const Tensor& weight, const Tensor& bias, IntSpan stride,
                      std::string_view padding, IntSpan dilation, int64_t groups) {
  if (!padding_is_same("conv3d", padding, stride))
    return ops::conv3d(input, weight, bias, stride, Shape{0}, dilation, groups);
  Tensor padded = input;
  const Shape ahead = padded_alike<3>("conv3d", padded, weight, dilation);
  return ops::conv3d(padded, weight, bias, stride, ahead, dilation, groups);
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

namespace {
template <size_t N>
Tensor transposed(const char* op, const Tensor& input, const Tensor& weight, const Tensor& bias, IntSpan stride,
                  IntSpan padding, IntSpan output_padding, int64_t groups, IntSpan dilation) {
  constexpr auto rank = int64_t(N);
  expect_rank(op, "input", input, rank + 1, rank + 2);
  expect_rank(op, "weight", weight, rank + 2, rank + 2);
  check(weight.size(0) == input.size(-rank - 1), ErrorKind::Runtime, op, ": argument 'input' has shape ",
        shape_text(input.sizes()), ", expected ", weight.size(0), " channels to fit 'weight' of shape ",
        shape_text(weight.sizes()));
  const auto s = infer::several<N>(op, "stride", stride, 1), p = infer::several<N>(op, "padding", padding, 0),
             extra = infer::several<N>(op, "output_padding", output_padding, 0),
             d = infer::several<N>(op, "dilation", dilation, 1);
  Shape sizes(input.sizes());
  sizes[sizes.size() - N - 1] = grouped_channels(op, weight, groups);
  expect_transposed(op, input, weight, bias, groups);
  // With output_padding of a stride or more the convolution back would give more than `input`: the rest is zero.
  Shape more;
  bool wider = false;
  for (size_t i = 0; i < N; ++i) {
    check(extra[i] < s[i] || extra[i] < d[i], ErrorKind::Runtime, op, ": argument 'output_padding' is ",
          shape_text(output_padding), ", expected less than stride or dilation");
    int64_t& size = sizes[sizes.size() - N + i];
    size = ((Count(size) - 1) * s[i] - 2 * p[i] + Count(d[i]) * (weight.size(2 + int64_t(i)) - 1) + extra[i] + 1)
               .of(op, "the output for argument 'input' of shape ", shape_text(input.sizes()));
    check(size > 0, ErrorKind::Runtime, op, ": argument 'input' of shape ", shape_text(input.sizes()),
          " gives an output without elements");
    more.insert(0, extra[i] / s[i]);
    more.insert(0, 0);
    wider = wider || extra[i] >= s[i];
  }
  // Only its sizes are read.
  const Tensor shape_of_input = empty(sizes, input.dtype(), stated_device(input));
  const Tensor wide = wider ? ops::constant_pad_nd(input, more, Scalar(int64_t(0))) : input;
  const auto back = N == 2 ? ops::conv2d_backward : ops::conv3d_backward;
  const Tensor y = std::get<0>(back(wide, shape_of_input, weight, s, p, d, groups, 1));
  if (!bias.defined()) return y;
  Shape each(N + 1, 1);
  each[0] = -1;
  return ops::add(y, ops::reshape(bias, each));
}
}  // namespace

Tensor conv_transpose2d(const Tensor& input, const Tensor& weight, const Tensor& bias, IntSpan stride, IntSpan padding,
                        IntSpan output_padding, int64_t groups, IntSpan dilation) {
  return transposed<2>("conv_transpose2d", input, weight, bias, stride, padding, output_padding, groups, dilation);
}
Tensor conv_transpose3d(const Tensor& input, const Tensor& weight, const Tensor& bias, IntSpan stride, IntSpan padding,
                        IntSpan output_padding, int64_t groups, IntSpan dilation) {
  return transposed<3>("conv_transpose3d", input, weight, bias, stride, padding, output_padding, groups, dilation);
}
Tensor conv_transpose1d(const Tensor& input, const Tensor& weight, const Tensor& bias, IntSpan stride, IntSpan padding,
                        IntSpan output_padding, int64_t groups, IntSpan dilation) {
  expect_rank("conv_transpose1d", "input", input, 2, 3);
  expect_rank("conv_transpose1d", "weight", weight, 3, 3);
  check(weight.size(0) == input.size(-2), ErrorKind::Runtime, "conv_transpose1d: argument 'input' has shape ",
        shape_text(input.sizes()), ", expected ", weight.size(0), " channels to fit 'weight' of shape ",
        shape_text(weight.sizes()));
  expect_transposed("conv_transpose1d", input, weight, bias, groups);
  const Tensor y = ops::conv_transpose2d(heightened(input), ops::unsqueeze(weight, -2), bias,
                                         widened("conv_transpose1d", "stride", stride, 1),
                                         widened("conv_transpose1d", "padding", padding, 0),
                                         widened("conv_transpose1d", "output_padding", output_padding, 0), groups,
                                         widened("conv_transpose1d", "dilation", dilation, 1));
  return ops::squeeze_dims(y, Shape{-2});
}

Tensor conv_tbc(const Tensor& self, const Tensor& weight, const Tensor& bias, int64_t pad) {
  expect_rank("conv_tbc", "self", self, 3, 3);
  expect_rank("conv_tbc", "weight", weight, 3, 3);
  check(bias.dim() == 1, ErrorKind::Runtime, "conv_tbc: argument 'bias' has shape ", shape_text(bias.sizes()),
        ", expected 1 dimension");
  const Tensor y = ops::conv1d(ops::permute(self, Shape{1, 2, 0}), ops::permute(weight, Shape{2, 1, 0}), bias, Shape{1},
                               Shape{pad}, Shape{1}, 1);
  return ops::permute(y, Shape{2, 0, 1});
}

}  // namespace taeda::impl
