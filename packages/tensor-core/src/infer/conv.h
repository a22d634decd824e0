// The plan of conv2d, conv3d and of their gradients: their geometry, checked by inference, worked out for kernels by
// the same code.
#pragma once
#include <cstring>

#include "taeda/tensor.h"

namespace taeda::infer {

/// Input (n, c, d, h, w), weight (o, c / groups, kd, kh, kw), output (n, o, od, oh, ow); images have a depth of 1.
struct ConvPlan {
  int64_t n, c, d, h, w;
  int64_t o, kd, kh, kw;
  int64_t od, oh, ow;
  int64_t sd, sh, sw, pd, ph, pw, dd, dh, dw;
  int64_t groups;
  /// Whether there is a depth at all: images and volumes of one slice without borders are computed alike.
  bool deep() const { return d > 1 || kd > 1 || od > 1 || pd > 0; }
  int64_t pixels() const { return d * h * w; }
  int64_t out_pixels() const { return od * oh * ow; }
  int64_t kernel() const { return kd * kh * kw; }
  friend bool operator==(const ConvPlan& a, const ConvPlan& b) { return std::memcmp(&a, &b, sizeof a) == 0; }
  /// Of `channels`, those in one group; most convolutions have one, and a division is slow.
  int64_t in_group(int64_t channels) const { return groups == 1 ? channels : channels / groups; }
  /// Multiply-adds of the whole convolution.
  int64_t work() const { return n * o * out_pixels() * in_group(c) * kernel(); }
};

/// Of arguments that inference has let through: arithmetic alone.
ConvPlan conv_plan(const Tensor& input, const Tensor& weight, IntSpan stride, IntSpan padding, IntSpan dilation,
                   int64_t groups);

/// The plan of images and a weight whose shapes fit each other; errors name `op`.
ConvPlan checked_conv2d_plan(const char* op, const Tensor& input, const Tensor& weight, IntSpan stride, IntSpan padding,
                             IntSpan dilation, int64_t groups);
/// Sizes of their result.
Shape conv2d_sizes(const Tensor& input, const ConvPlan& plan);

/// conv2d_backward: the operands of conv2d, and a gradient of the shape and dtype of its result.
void conv2d_backward(const Tensor& grad, const Tensor& input, const Tensor& weight, IntSpan stride, IntSpan padding,
                     IntSpan dilation, int64_t groups);
void conv3d_backward(const Tensor& grad, const Tensor& input, const Tensor& weight, IntSpan stride, IntSpan padding,
                     IntSpan dilation, int64_t groups);

}  // namespace taeda::infer
