// The checked geometry of pooling, used by inference and kernels alike.
#pragma once
#include "infer/windows.h"

namespace taeda::infer {

/// Input (n, c, h, w) and output (oh, ow) with kernel, stride, padding and dilation of both dimensions.
struct PoolShape {
  int64_t n, c, h, w, oh, ow;
  Pair kernel, stride, padding, dilation;
};

/// Maxima are of whole numbers too.
void expect_ordered(const char* op, const Tensor& input);
PoolShape pool_shape(const char* op, const Tensor& input, IntSpan kernel_size, IntSpan stride, IntSpan padding,
                     IntSpan dilation, bool ceil_mode);
/// Sizes asked for by an adaptive operator; -1 keeps the input's.
Pair adaptive_size(const char* op, const Tensor& input, IntSpan output_size);

}  // namespace taeda::infer
