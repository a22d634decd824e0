// Inference of the conv family.
#include "infer/conv.h"

#include <algorithm>

#include "infer/windows.h"
#include "taeda/checked.h"
#include "taeda/ops/conv.h"

namespace taeda::infer {

ConvPlan conv_plan(const Tensor& input, const Tensor& weight, IntSpan stride, IntSpan padding, IntSpan dilation,
                   int64_t groups) {
  const Pair s = both(stride), p = both(padding), d = both(dilation);
  ConvPlan plan{};
  plan.n = input.dim() == 4 ? input.size(0) : 1, plan.c = input.size(-3);
  plan.h = input.size(-2), plan.w = input.size(-1);
  plan.o = weight.size(0), plan.kh = weight.size(2), plan.kw = weight.size(3);
  plan.sh = s[0], plan.sw = s[1], plan.ph = p[0], plan.pw = p[1], plan.dh = d[0], plan.dw = d[1];
  plan.groups = groups;
  const auto places = [](int64_t room, int64_t step) { return (step == 1 ? room : room / step) + 1; };
  plan.oh = places(window_room(plan.h, plan.kh, p[0], d[0]), s[0]);
  plan.ow = places(window_room(plan.w, plan.kw, p[1], d[1]), s[1]);
  return plan;
}

namespace {

/// Shapes checked against each other; errors name `op`.
ConvPlan checked_plan(const char* op, const Tensor& input, const Tensor& weight, IntSpan stride, IntSpan padding,
                      IntSpan dilation, int64_t groups) {
  const Images in = images(op, "input", input);
  check(weight.dim() == 4, ErrorKind::Runtime, op, ": argument 'weight' has shape ", shape_text(weight.sizes()),
        ", expected (out, in / groups, KH, KW)");
  check(groups >= 1, ErrorKind::Runtime, op, ": argument 'groups' must be at least 1, got ", groups);
  const int64_t channels = (Count(weight.size(1)) * groups).of(op, "the channels for argument 'groups' ", groups);
  check(channels == in.c, ErrorKind::Runtime, op, ": argument 'input' has shape ", shape_text(input.sizes()),
        ", expected ", channels, " channels to fit 'weight' of shape ", shape_text(weight.sizes()),
        " with groups=", groups);
  check(groups == 1 || weight.size(0) % groups == 0, ErrorKind::Runtime, op, ": argument 'groups' is ", groups,
        ", expected a divisor of ", weight.size(0), ", the output channels of 'weight' ", shape_text(weight.sizes()));
  check(weight.size(2) > 0 && weight.size(3) > 0, ErrorKind::Runtime, op, ": argument 'weight' has shape ",
        shape_text(weight.sizes()), ", expected a kernel of at least 1 x 1");
  pair(op, "stride", stride, 1);
  const Pair p = pair(op, "padding", padding, 0), d = pair(op, "dilation", dilation, 1);
  const auto room = [&](int64_t size, int64_t kernel, size_t i) {
    return window_room(Count(size), kernel, p[i], d[i]).of(op, "the extent of 'weight' ", shape_text(weight.sizes()));
  };
  check(room(in.h, weight.size(2), 0) >= 0 && room(in.w, weight.size(3), 1) >= 0, ErrorKind::Runtime, op,
        ": argument 'input' of shape ", shape_text(input.sizes()), " with padding ", shape_text(padding),
        " is smaller than the kernel of 'weight' ", shape_text(weight.sizes()), " with dilation ",
        shape_text(dilation));
  return conv_plan(input, weight, stride, padding, dilation, groups);
}

}  // namespace

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
  const ConvPlan s = checked_plan(op, input, weight, stride, padding, dilation, groups);
  const Shape expected = image_sizes(input, s.n, s.o, s.oh, s.ow);
  check(std::ranges::equal(grad.sizes(), IntSpan(expected)), ErrorKind::Runtime, op, ": argument 'grad' has shape ",
        shape_text(grad.sizes()), ", expected ", shape_text(expected));
  expect_kinds(op, input, weight);
  expect_dtype(op, "grad", grad, input.dtype());
}

Spec conv2d(const Tensor& input, const Tensor& weight, const Tensor& bias, IntSpan stride, IntSpan padding,
            IntSpan dilation, int64_t groups) {
  const ConvPlan s = checked_plan("conv2d", input, weight, stride, padding, dilation, groups);
  expect_kinds("conv2d", input, weight);
  if (bias.defined()) {
    check(bias.dim() == 1 && bias.size(0) == s.o, ErrorKind::Runtime, "conv2d: argument 'bias' has shape ",
          shape_text(bias.sizes()), ", expected (", s.o, ",) to fit 'weight' of shape ", shape_text(weight.sizes()));
    expect_dtype("conv2d", "bias", bias, input.dtype());
  }
  const int64_t kernel[] = {s.kh, s.kw};
  return image_result("conv2d", input, image_sizes(input, s.n, s.o, s.oh, s.ow), input.dtype(), kernel, groups);
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
