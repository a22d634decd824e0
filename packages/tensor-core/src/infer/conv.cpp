// Inference of the conv family.
#include "infer/conv.h"

#include <algorithm>

#include "infer/windows.h"
#include "taeda/checked.h"
#include "taeda/ops/conv.h"

namespace taeda::infer {

cpu::ConvShape conv_shape(const char* op, const Tensor& input, const Tensor& weight, IntSpan stride, IntSpan padding,
                          IntSpan dilation, int64_t groups) {
  const Images in = images(op, "input", input);
  check(weight.dim() == 4, ErrorKind::Runtime, op, ": argument 'weight' has shape ", shape_text(weight.sizes()),
        ", expected (out, in / groups, KH, KW)");
  check(groups >= 1, ErrorKind::Runtime, op, ": argument 'groups' must be at least 1, got ", groups);
  const int64_t channels = (Count(weight.size(1)) * groups).of(op, "the channels for argument 'groups' ", groups);
  check(channels == in.c, ErrorKind::Runtime, op, ": argument 'input' has shape ", shape_text(input.sizes()),
        ", expected ", channels, " channels to fit 'weight' of shape ",
        shape_text(weight.sizes()), " with groups=", groups);
  check(weight.size(0) % groups == 0, ErrorKind::Runtime, op, ": argument 'groups' is ", groups,
        ", expected a divisor of ", weight.size(0), ", the output channels of 'weight' ", shape_text(weight.sizes()));
  check(weight.size(2) > 0 && weight.size(3) > 0, ErrorKind::Runtime, op, ": argument 'weight' has shape ",
        shape_text(weight.sizes()), ", expected a kernel of at least 1 x 1");
  const Pair s = pair(op, "stride", stride, 1), p = pair(op, "padding", padding, 0),
             d = pair(op, "dilation", dilation, 1);
  cpu::ConvShape shape{};
  shape.n = in.n, shape.c = in.c, shape.h = in.h, shape.w = in.w;
  shape.o = weight.size(0), shape.kh = weight.size(2), shape.kw = weight.size(3);
  shape.sh = s[0], shape.sw = s[1], shape.ph = p[0], shape.pw = p[1], shape.dh = d[0], shape.dw = d[1];
  shape.groups = groups;
  const auto room = [&](Count size, size_t i, int64_t kernel) {
    return (size + 2 * p[i] - Count(d[i]) * (kernel - 1) - 1).of(op, "the extent of 'weight' ", shape_text(weight.sizes()));
  };
  const int64_t room_h = room(in.h, 0, shape.kh), room_w = room(in.w, 1, shape.kw);
  check(room_h >= 0 && room_w >= 0, ErrorKind::Runtime, op, ": argument 'input' of shape ", shape_text(input.sizes()),
        " with padding ", shape_text(padding), " is smaller than the kernel of 'weight' ", shape_text(weight.sizes()),
        " with dilation ", shape_text(dilation));
  shape.oh = room_h / s[0] + 1;
  shape.ow = room_w / s[1] + 1;
  return shape;
}

bool is_tiny(const cpu::ConvShape& s) {
  const int64_t patches = s.n * s.oh * s.ow * s.kh * s.kw * s.c;
  return patches <= 4096 && patches / s.groups * s.o <= 128 * 1024;
}

bool prefers_channels_last([[maybe_unused]] DType dtype) {
#ifdef TAEDA_WITH_ONEDNN
  return dtype == DType::Float32 || dtype == DType::Float16 || dtype == DType::BFloat16;
#else
  return false;
#endif
}

namespace {
void expect_dtype(const char* op, const char* argument, const Tensor& t, DType dtype) {
  check(t.dtype() == dtype, ErrorKind::Runtime, op, ": argument '", argument, "' has dtype ", name(t.dtype()),
        ", expected ", name(dtype), ", the dtype of 'input'");
}
/// What the gradients and the operator itself share.
void expect_kinds(const char* op, const Tensor& input, const Tensor& weight) {
  expect_dtype(op, "weight", weight, input.dtype());
  check(input.dtype() != DType::Bool, ErrorKind::NotImplemented, op, ": not implemented for dtype ",
        name(input.dtype()));
}
}  // namespace

void conv2d_backward(const Tensor& grad, const Tensor& input, const Tensor& weight, IntSpan stride, IntSpan padding,
                     IntSpan dilation, int64_t groups) {
  const char* const op = "conv2d_backward";
  const cpu::ConvShape s = conv_shape(op, input, weight, stride, padding, dilation, groups);
  const Shape expected = image_sizes(input, s.n, s.o, s.oh, s.ow);
  check(std::ranges::equal(grad.sizes(), IntSpan(expected)), ErrorKind::Runtime, op, ": argument 'grad' has shape ",
        shape_text(grad.sizes()), ", expected ", shape_text(expected));
  expect_kinds(op, input, weight);
  expect_dtype(op, "grad", grad, input.dtype());
}

Spec conv2d(const Tensor& input, const Tensor& weight, const Tensor& bias, IntSpan stride, IntSpan padding,
            IntSpan dilation, int64_t groups) {
  const cpu::ConvShape s = conv_shape("conv2d", input, weight, stride, padding, dilation, groups);
  expect_kinds("conv2d", input, weight);
  if (bias.defined()) {
    check(bias.dim() == 1 && bias.size(0) == s.o, ErrorKind::Runtime, "conv2d: argument 'bias' has shape ",
          shape_text(bias.sizes()), ", expected (", s.o, ",) to fit 'weight' of shape ", shape_text(weight.sizes()));
    expect_dtype("conv2d", "bias", bias, input.dtype());
  }
  Spec out{image_sizes(input, s.n, s.o, s.oh, s.ow), input.dtype(), {}};
  if (input.dim() == 4 && prefers_channels_last(input.dtype()) && !(is_tiny(s) && input.contiguous()))
    out.strides = channels_last_strides(out.sizes);
  return out;
}

namespace {

/// Tensors without bytes stand for the gradients asked for.
std::tuple<Tensor, Tensor, Tensor> conv2d_backward_meta(const Tensor& grad, const Tensor& input, const Tensor& weight,
                                                        IntSpan, IntSpan, IntSpan, int64_t, int64_t output_mask) {
  const auto like = [&](const Tensor& t, int bit) {
    return output_mask & bit ? empty(t.sizes(), grad.dtype(), grad.device()) : Tensor();
  };
  return {like(input, 1), like(weight, 2),
          output_mask & 4 ? empty(weight.sizes().first(1), grad.dtype(), grad.device()) : Tensor()};
}
const bool registered = [] {
  kernel<op::conv2d_backward>(kMeta, conv2d_backward_meta);
  return true;
}();

}  // namespace
}  // namespace taeda::infer
