// The checked geometry of conv2d, used by inference and kernels alike.
#pragma once
#include "cpu/conv.h"
#include "taeda/tensor.h"

namespace taeda::infer {

/// Shapes checked against each other; errors name `op`.
cpu::ConvShape conv_shape(const char* op, const Tensor& input, const Tensor& weight, IntSpan stride, IntSpan padding,
                          IntSpan dilation, int64_t groups);

/// conv2d_backward: the operands of conv2d, and a gradient of the shape and dtype of its result.
void conv2d_backward(const Tensor& grad, const Tensor& input, const Tensor& weight, IntSpan stride, IntSpan padding,
                     IntSpan dilation, int64_t groups);

/// Too little work to pay for a vendor library's call: row-major tensors take the plain path.
bool is_tiny(const cpu::ConvShape& shape);

/// Whether results of convolutions get channels-last strides.
bool prefers_channels_last(DType dtype);

}  // namespace taeda::infer
