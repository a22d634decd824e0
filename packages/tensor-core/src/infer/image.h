// The plans of operators on images: geometry that inference has checked, for kernels.
#pragma once
#include "infer/conv.h"

namespace taeda::infer {

/// Windows of an image (n, c, h, w) as those of a convolution without outputs.
ConvPlan patch_plan(const Tensor& images, IntSpan size, IntSpan kernel_size, IntSpan dilation, IntSpan padding,
                    IntSpan stride, int64_t channels);

/// grid_sampler_backward: the operands of grid_sampler, and a gradient of the shape and dtype of its result.
void grid_sampler_backward(const Tensor& grad, const Tensor& input, const Tensor& grid, int64_t interpolation_mode,
                           int64_t padding_mode);

}  // namespace taeda::infer
