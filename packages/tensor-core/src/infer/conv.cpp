// Inference of the conv family.
#include "infer/dtypes.h"
#include "infer/memory_format.h"
#include "infer/conv.h"

#include <algorithm>

#include "infer/gradients.h"
#include "infer/windows.h"
#include "taeda/checked.h"
#include "taeda/ops/conv.h"

namespace taeda::infer {

ConvPlan conv_plan(const Tensor& input, const Tensor& weight, IntSpan stride, IntSpan padding, IntSpan dilation,
                   int64_t groups) {
  const int64_t rank = weight.dim() - 2;
  const auto numbers = [rank](IntSpan list, int64_t of_images) {
    if (rank == 3) return spread<3>(list);
    const Pair both_ = both(list);
    return Triple{of_images, both_[0], both_[1]};
  };
  const auto size = [rank](const Tensor& t, int64_t d) { return d == -3 && rank == 2 ? 1 : t.size(d); };
  const Triple s = numbers(stride, 1), p = numbers(padding, 0), l = numbers(dilation, 1);
  ConvPlan plan{};
  plan.n = input.dim() == rank + 2 ? input.size(0) : 1, plan.c = input.size(-rank - 1);
  plan.d = size(input, -3), plan.h = input.size(-2), plan.w = input.size(-1);
  plan.o = weight.size(0), plan.kd = size(weight, -3), plan.kh = weight.size(-2), plan.kw = weight.size(-1);
  plan.sd = s[0], plan.sh = s[1], plan.sw = s[2];
  plan.pd = p[0], plan.ph = p[1], plan.pw = p[2];
  plan.dd = l[0], plan.dh = l[1], plan.dw = l[2];
  plan.groups = groups;
  const auto places = [](int64_t room, int64_t step) { return (step == 1 ? room : room / step) + 1; };
  plan.od = places(window_room(plan.d, plan.kd, p[0], l[0]), s[0]);
  plan.oh = places(window_room(plan.h, plan.kh, p[1], l[1]), s[1]);
  plan.ow = places(window_room(plan.w, plan.kw, p[2], l[2]), s[2]);
  return plan;
}

namespace {

/// Shapes checked against each other; errors name `op`. For N dimensions behind the channels.
template <size_t N>
ConvPlan checked_plan(const char* op, const Tensor& input, const Tensor& weight, IntSpan stride, IntSpan padding,
                      IntSpan dilation, int64_t groups) {
  constexpr auto rank = int64_t(N);
  check(input.dim() == rank + 1 || input.dim() == rank + 2, ErrorKind::Runtime, op, ": argument 'input' has shape ",
        shape_text(input.sizes()),
        N == 2 ? ", expected (N, C, H, W) or (C, H, W)" : ", expected (N, C, D, H, W) or (C, D, H, W)");
  check(weight.dim() == rank + 2, ErrorKind::Runtime, op, ": argument 'weight' has shape ", shape_text(weight.sizes()),
        N == 2 ? ", expected (out, in / groups, KH, KW)" : ", expected (out, in / groups, KD, KH, KW)");
  check(groups >= 1, ErrorKind::Runtime, op, ": argument 'groups' must be at least 1, got ", groups);
  const int64_t channels = (Count(weight.size(1)) * groups).of(op, "the channels for argument 'groups' ", groups);
  check(channels == input.size(-rank - 1), ErrorKind::Runtime, op, ": argument 'input' has shape ",
        shape_text(input.sizes()), ", expected ", channels, " channels to fit 'weight' of shape ",
        shape_text(weight.sizes()), " with groups=", groups);
  check(groups == 1 || weight.size(0) % groups == 0, ErrorKind::Runtime, op, ": argument 'groups' is ", groups,
        ", expected a divisor of ", weight.size(0), ", the output channels of 'weight' ", shape_text(weight.sizes()));
  several<N>(op, "stride", stride, 1);
  const auto p = several<N>(op, "padding", padding, 0), d = several<N>(op, "dilation", dilation, 1);
  for (size_t i = 0; i < N; ++i) {
    const int64_t kernel = weight.size(int64_t(i) + 2), size = input.size(int64_t(i) - rank);
    check(kernel > 0, ErrorKind::Runtime, op, ": argument 'weight' has shape ", shape_text(weight.sizes()),
          ", expected a kernel of at least 1 in each dimension");
    const int64_t room =
        window_room(Count(size), kernel, p[i], d[i]).of(op, "the extent of 'weight' ", shape_text(weight.sizes()));
    check(room >= 0, ErrorKind::Runtime, op, ": argument 'input' of shape ", shape_text(input.sizes()),
          " with padding ", shape_text(padding), " is smaller than the kernel of 'weight' ", shape_text(weight.sizes()),
          " with dilation ", shape_text(dilation));
  }
  return conv_plan(input, weight, stride, padding, dilation, groups);
}
template <size_t N>
Shape result_sizes(const Tensor& input, const ConvPlan& s) {
  Shape sizes;
  if (input.dim() == int64_t(N) + 2) sizes.push_back(s.n);
  sizes.push_back(s.o);
  if (N == 3) sizes.push_back(s.od);
  sizes.push_back(s.oh);
  sizes.push_back(s.ow);
  return sizes;
}

}  // namespace

namespace {
/// What the gradients and the operator itself share.
void expect_kinds(const char* op, const Tensor& input, const Tensor& weight) {
  expect_dtype(op, "weight", weight, input.dtype(), "input");
  check(input.dtype() != DType::Bool, ErrorKind::NotImplemented, op, ": not implemented for dtype ",
        name(input.dtype()));
}
}  // namespace

namespace {

template <size_t N>
void check_backward(const char* op, const Tensor& grad, const Tensor& input, const Tensor& weight, IntSpan stride,
                    IntSpan padding, IntSpan dilation, int64_t groups) {
  const Shape expected = result_sizes<N>(input, checked_plan<N>(op, input, weight, stride, padding, dilation, groups));
  check(std::ranges::equal(grad.sizes(), IntSpan(expected)), ErrorKind::Runtime, op, ": argument 'grad' has shape ",
        shape_text(grad.sizes()), ", expected ", shape_text(expected));
  expect_kinds(op, input, weight);
  expect_dtype(op, "grad", grad, input.dtype(), "input");
}
template <size_t N>
ConvPlan checked_conv(const char* op, const Tensor& input, const Tensor& weight, const Tensor& bias, IntSpan stride,
                      IntSpan padding, IntSpan dilation, int64_t groups) {
  const ConvPlan s = checked_plan<N>(op, input, weight, stride, padding, dilation, groups);
  expect_kinds(op, input, weight);
  if (!bias.defined()) return s;
  check(bias.dim() == 1 && bias.size(0) == s.o, ErrorKind::Runtime, op, ": argument 'bias' has shape ",
        shape_text(bias.sizes()), ", expected (", s.o, ",) to fit 'weight' of shape ", shape_text(weight.sizes()));
  expect_dtype(op, "bias", bias, input.dtype(), "input");
  return s;
}

}  // namespace

ConvPlan checked_conv2d_plan(const char* op, const Tensor& input, const Tensor& weight, IntSpan stride, IntSpan padding,
                             IntSpan dilation, int64_t groups) {
  return checked_plan<2>(op, input, weight, stride, padding, dilation, groups);
}
Shape conv2d_sizes(const Tensor& input, const ConvPlan& plan) { return result_sizes<2>(input, plan); }

void conv2d_backward(const Tensor& grad, const Tensor& input, const Tensor& weight, IntSpan stride, IntSpan padding,
                     IntSpan dilation, int64_t groups) {
  check_backward<2>("conv2d_backward", grad, input, weight, stride, padding, dilation, groups);
}
void conv3d_backward(const Tensor& grad, const Tensor& input, const Tensor& weight, IntSpan stride, IntSpan padding,
                     IntSpan dilation, int64_t groups) {
  check_backward<3>("conv3d_backward", grad, input, weight, stride, padding, dilation, groups);
}

Spec conv2d(const Tensor& input, const Tensor& weight, const Tensor& bias, IntSpan stride, IntSpan padding,
            IntSpan dilation, int64_t groups) {
  const ConvPlan s = checked_conv<2>("conv2d", input, weight, bias, stride, padding, dilation, groups);
  const int64_t kernel[] = {s.kh, s.kw};
  return image_result("conv2d", input, result_sizes<2>(input, s), input.dtype(), kernel, groups, weight);
}
Spec conv3d(const Tensor& input, const Tensor& weight, const Tensor& bias, IntSpan stride, IntSpan padding,
            IntSpan dilation, int64_t groups) {
  const ConvPlan s = checked_conv<3>("conv3d", input, weight, bias, stride, padding, dilation, groups);
  Spec out = spec(result_sizes<3>(input, s), input.dtype());
  if (input.dim() == 5 && input.numel() > 0)
    out.strides = image_strides(channels_come_last(input) ? input : weight, out.sizes);
  return out;
}

namespace {

/// Tensors without bytes stand for the gradients asked for.
std::tuple<Tensor, Tensor, Tensor> backward_meta(const Tensor& grad, const Tensor& input, const Tensor& weight, IntSpan,
                                                 IntSpan, IntSpan, int64_t, int64_t output_mask) {
  return {gradient_meta(grad, input.sizes(), output_mask, 1), gradient_meta(grad, weight.sizes(), output_mask, 2),
          gradient_meta(grad, weight.sizes().first(1), output_mask, 4)};
}
const bool registered = [] {
  kernel<op::conv2d_backward>(kMeta, backward_meta);
  kernel<op::conv3d_backward>(kMeta, backward_meta);
  return true;
}();

}  // namespace
}  // namespace taeda::infer
