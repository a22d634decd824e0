// Convolution of float32 or bfloat16 by oneDNN on channels-last activations and row-major weights.
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
/// T is float, or BFloat16 where has_bfloat16(): sums, biases and gradients of parameters are float32 in both.
template <class T>
bool conv_forward(const infer::ConvPlan& shape, const T* x, Weights& weight, const float* bias, T* y);
template <class T>
bool conv_backward_data(const infer::ConvPlan& shape, const T* grad, Weights& weight, T* grad_x);
/// grad_bias may be null.
template <class T>
bool conv_backward_weights(const infer::ConvPlan& shape, const T* x, const T* grad, float* grad_weight,
                           float* grad_bias);

}  // namespace taeda::onednn
