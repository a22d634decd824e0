// Convolutions whose channels each have a window of their own, on pixels that are rows of channels: (n, d, h, w, c) for
// activations, (kd, kh, kw, c) for weights. T: float or double.
//
// Which taps of a window lie within the image changes along a line at its ends only: between two changes all results
// have the same taps, and are made together (cpu/loops/depthwise.h).
#pragma once
#include "infer/conv.h"

namespace taeda::cpu {

/// Whether the plan is of this kind, groups of one channel, whose results are as many; and has channels enough for
/// vectors of them.
inline bool is_depthwise(const infer::ConvPlan& s) { return s.groups >= 4 && s.groups == s.c && s.o == s.c; }

template <class T>
void depthwise_forward(const infer::ConvPlan& plan, const T* x, const T* weight, const T* bias, T* y);
template <class T>
void depthwise_backward_data(const infer::ConvPlan& plan, const T* grad, const T* weight, T* grad_x);
/// By pieces that follow from the shape alone.
template <class T>
void depthwise_backward_weights(const infer::ConvPlan& plan, const T* x, const T* grad, T* grad_weight);

}  // namespace taeda::cpu
