// float32 convolution by oneDNN on channels-last activations and row-major weights.
#pragma once
#include "cpu/conv.h"

namespace taeda::onednn {

/// False when oneDNN is not built in or has no fast routine for the shape: use the plain path.
bool conv_supported(const cpu::ConvShape& shape);
/// All activations channels-last, weights row-major (o, c / groups, kh, kw); bias may be null.
bool conv_forward(const cpu::ConvShape& shape, const float* x, const float* weight, const float* bias, float* y);
bool conv_backward_data(const cpu::ConvShape& shape, const float* grad, const float* weight, float* grad_x);
/// grad_bias may be null.
bool conv_backward_weights(const cpu::ConvShape& shape, const float* x, const float* grad, float* grad_weight,
                           float* grad_bias);

}  // namespace taeda::onednn
