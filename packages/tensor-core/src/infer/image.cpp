// Inference of the image family.
#include "infer/dtypes.h"
#include "infer/image.h"

#include <algorithm>

#include "infer/gradients.h"
#include "infer/windows.h"
#include "taeda/checked.h"
#include "taeda/ops/image.h"

namespace taeda::infer {

ConvPlan patch_plan(const Tensor& images, IntSpan size, IntSpan kernel_size, IntSpan dilation, IntSpan padding,
                    IntSpan stride, int64_t channels) {
  const Pair k = both(kernel_size), l = both(dilation), p = both(padding), s = both(stride), z = both(size);
  ConvPlan plan{};
  plan.n = images.size(0), plan.c = channels, plan.d = plan.kd = plan.od = plan.sd = plan.dd = plan.groups = 1;
  plan.h = z[0], plan.w = z[1], plan.kh = k[0], plan.kw = k[1];
  plan.sh = s[0], plan.sw = s[1], plan.ph = p[0], plan.pw = p[1], plan.dh = l[0], plan.dw = l[1];
  plan.oh = floor_div(window_room(plan.h, k[0], p[0], l[0]), s[0]) + 1;
  plan.ow = floor_div(window_room(plan.w, k[1], p[1], l[1]), s[1]) + 1;
  return plan;
}

namespace {

/// Positions of a window over `size`, in both dimensions.
Pair positions(const char* op, IntSpan size, IntSpan kernel_size, IntSpan dilation, IntSpan padding, IntSpan stride) {
  const Pair k = pair(op, "kernel_size", kernel_size, 1), l = pair(op, "dilation", dilation, 1),
             p = pair(op, "padding", padding, 0), s = pair(op, "stride", stride, 1);
  Pair out;
  for (size_t i = 0; i < 2; ++i) {
    const int64_t room =
        window_room(Count(size[i]), k[i], p[i], l[i]).of(op, "the extent of argument 'kernel_size' ", shape_text(k));
    out[i] = floor_div(room, s[i]) + 1;
    check(out[i] >= 1, ErrorKind::Runtime, op, ": argument 'kernel_size' ", shape_text(k), " with dilation ",
          shape_text(l), " does not fit into images of ", shape_text(size), " with padding ", shape_text(p));
  }
  return out;
}

/// Of grid_sampler and its gradient.
Shape sampled_sizes(const char* op, const Tensor& input, const Tensor& grid, int64_t interpolation_mode,
                    int64_t padding_mode) {
  const int64_t rank = input.dim() - 2;
  check(input.dim() == 4 || input.dim() == 5, ErrorKind::Runtime, op, ": argument 'input' has shape ",
        shape_text(input.sizes()), ", expected (N, C, H, W) or (N, C, D, H, W)");
  check(grid.dim() == input.dim(), ErrorKind::Runtime, op, ": argument 'grid' has shape ", shape_text(grid.sizes()),
        ", expected ", input.dim(), " dimensions as 'input' of shape ", shape_text(input.sizes()), " has");
  check(grid.size(0) == input.size(0), ErrorKind::Runtime, op, ": argument 'grid' has shape ", shape_text(grid.sizes()),
        ", expected the batch of 'input' ", shape_text(input.sizes()));
  check(grid.size(-1) == rank, ErrorKind::Runtime, op, ": argument 'grid' has shape ", shape_text(grid.sizes()),
        ", expected ", rank, " in its last dimension, the coordinates of a point of 'input' ",
        shape_text(input.sizes()));
  for (int64_t d = 2; d < input.dim(); ++d)
    check(input.size(d) > 0, ErrorKind::Runtime, op, ": argument 'input' has shape ", shape_text(input.sizes()),
          ", expected no empty dimension behind the channels");
  int64_t elements = 1;
  for (int64_t d = 2; d < input.dim(); ++d) elements *= input.size(d);
  check(elements <= kLargest, ErrorKind::Runtime, op, ": argument 'input' has shape ", shape_text(input.sizes()),
        ", expected at most ", kLargest, " elements in a channel");
  expect_dtype(op, "grid", grid, input.dtype(), "input");
  check(is_floating(input.dtype()), ErrorKind::NotImplemented, op, ": not implemented for dtype ", name(input.dtype()));
  check(interpolation_mode >= 0 && interpolation_mode <= 2, ErrorKind::Runtime, op,
        ": argument 'interpolation_mode' must be 0, 1 or 2, got ", interpolation_mode);
  check(padding_mode >= 0 && padding_mode <= 2, ErrorKind::Runtime, op,
        ": argument 'padding_mode' must be 0, 1 or 2, got ", padding_mode);
  check(interpolation_mode != 2 || rank == 2, ErrorKind::Runtime, op,
        ": bicubic interpolation only supports 4D input, got argument 'input' of shape ", shape_text(input.sizes()));
  Shape sizes{input.size(0), input.size(1)};
  for (int64_t d = 1; d + 1 < grid.dim(); ++d) sizes.push_back(grid.size(d));
  return sizes;
}

}  // namespace

Spec im2col(const Tensor& input, IntSpan kernel_size, IntSpan dilation, IntSpan padding, IntSpan stride) {
  const char* const op = "im2col";
  check((input.dim() == 3 || input.dim() == 4) && input.size(-1) > 0 && input.size(-2) > 0 && input.size(-3) > 0,
        ErrorKind::Runtime, op, ": argument 'input' has shape ", shape_text(input.sizes()),
        ", expected (N, C, H, W) or (C, H, W), not empty but for the batch");
  const int64_t size[] = {input.size(-2), input.size(-1)};
  const Pair k = pair(op, "kernel_size", kernel_size, 1),
             l = positions(op, size, kernel_size, dilation, padding, stride);
  Shape sizes;
  if (input.dim() == 4) sizes.push_back(input.size(0));
  sizes.push_back((Count(input.size(-3)) * k[0] * k[1]).of(op, "the rows for argument 'kernel_size'"));
  sizes.push_back((Count(l[0]) * l[1]).of(op, "the columns"));
  return spec(sizes, input.dtype());
}

Spec col2im(const Tensor& input, IntSpan output_size, IntSpan kernel_size, IntSpan dilation, IntSpan padding,
            IntSpan stride) {
  const char* const op = "col2im";
  check((input.dim() == 2 || input.dim() == 3) && input.size(-1) > 0 && input.size(-2) > 0, ErrorKind::Runtime, op,
        ": argument 'input' has shape ", shape_text(input.sizes()),
        ", expected (N, C * KH * KW, L) or (C * KH * KW, L), not empty but for the batch");
  check(input.dtype() != DType::Bool, ErrorKind::NotImplemented, op, ": not implemented for dtype bool");
  const Pair size = pair(op, "output_size", output_size, 1), k = pair(op, "kernel_size", kernel_size, 1);
  const int64_t window = (Count(k[0]) * k[1]).of(op, "the elements of argument 'kernel_size'");
  check(input.size(-2) % window == 0, ErrorKind::Runtime, op, ": argument 'input' has shape ",
        shape_text(input.sizes()), ", expected rows divisible by the ", window, " elements of kernel_size ",
        shape_text(k));
  const Pair l = positions(op, size, kernel_size, dilation, padding, stride);
  check((Count(l[0]) * l[1]).is(input.size(-1)), ErrorKind::Runtime, op, ": argument 'input' has shape ",
        shape_text(input.sizes()), ", expected ", l[0], " * ", l[1], " columns for output_size ", shape_text(size));
  Shape sizes;
  if (input.dim() == 3) sizes.push_back(input.size(0));
  sizes.push_back(input.size(-2) / window);
  sizes.push_back(size[0]);
  sizes.push_back(size[1]);
  return spec(sizes, input.dtype());
}

Spec grid_sampler(const Tensor& input, const Tensor& grid, int64_t interpolation_mode, int64_t padding_mode, bool) {
  return spec(sampled_sizes("grid_sampler", input, grid, interpolation_mode, padding_mode), input.dtype());
}
void grid_sampler_backward(const Tensor& grad, const Tensor& input, const Tensor& grid, int64_t interpolation_mode,
                           int64_t padding_mode) {
  const char* const op = "grid_sampler_backward";
  const Shape expected = sampled_sizes(op, input, grid, interpolation_mode, padding_mode);
  check(std::ranges::equal(grad.sizes(), IntSpan(expected)), ErrorKind::Runtime, op, ": argument 'grad' has shape ",
        shape_text(grad.sizes()), ", expected ", shape_text(expected));
  expect_dtype(op, "grad", grad, input.dtype(), "input");
}

namespace {

/// Tensors without bytes stand for the gradients asked for.
std::tuple<Tensor, Tensor> grid_sampler_backward_meta(const Tensor& grad, const Tensor& input, const Tensor& grid,
                                                      int64_t, int64_t, bool, int64_t output_mask) {
  return {gradient_meta(grad, input.sizes(), output_mask, 1), gradient_meta(grad, grid.sizes(), output_mask, 2)};
}
const bool registered = [] {
  kernel<op::grid_sampler_backward>(kMeta, grid_sampler_backward_meta);
  return true;
}();

}  // namespace
}  // namespace taeda::infer
