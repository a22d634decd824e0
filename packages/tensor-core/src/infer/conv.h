// The plan of conv2d and of its gradients: their geometry, checked by inference, worked out for kernels by the same
// code.
#pragma once
#include <cstring>

#include "taeda/tensor.h"

namespace taeda::infer {

/// Input (n, c, h, w), weight (o, c / groups, kh, kw), output (n, o, oh, ow).
struct ConvPlan {
  int64_t n, c, h, w;
  int64_t o, kh, kw;
  int64_t oh, ow;
  int64_t sh, sw, ph, pw, dh, dw;
  int64_t groups;
  friend bool operator==(const ConvPlan& a, const ConvPlan& b) { return std::memcmp(&a, &b, sizeof a) == 0; }
  /// Of `channels`, those in one group; most convolutions have one, and a division is slow.
  int64_t in_group(int64_t channels) const { return groups == 1 ? channels : channels / groups; }
  /// Multiply-adds of the whole convolution.
  int64_t work() const { return n * o * oh * ow * in_group(c) * kh * kw; }
};

/// Of arguments that inference has let through: arithmetic alone.
ConvPlan conv_plan(const Tensor& input, const Tensor& weight, IntSpan stride, IntSpan padding, IntSpan dilation,
                   int64_t groups);

/// conv2d_backward: the operands of conv2d, and a gradient of the shape and dtype of its result.
void conv2d_backward(const Tensor& grad, const Tensor& input, const Tensor& weight, IntSpan stride, IntSpan padding,
                     IntSpan dilation, int64_t groups);

}  // namespace taeda::infer
