// float32 convolution by oneDNN on channels-last activations and row-major weights.
#pragma once
#include "cpu/onednn/weights.h"
#include "infer/conv.h"

namespace taeda::onednn {

/// Whether the library is built in.
#ifdef TAEDA_WITH_ONEDNN
constexpr bool available() { return true; }
#else
constexpr bool available() { return false; }
#endif

/// These are false when oneDNN is not built in or has no fast routine for the shape: use the plain path.
/// All activations channels-last, gradients of weights row-major (o, c / groups, kd, kh, kw); bias may be null.
bool conv_forward(const infer::ConvPlan& shape, const float* x, Weights& weight, const float* bias, float* y);
bool conv_backward_data(const infer::ConvPlan& shape, const float* grad, Weights& weight, float* grad_x);
/// grad_bias may be null.
bool conv_backward_weights(const infer::ConvPlan& shape, const float* x, const float* grad, float* grad_weight,
                           float* grad_bias);

}  // namespace taeda::onednn
