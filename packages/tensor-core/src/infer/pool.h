// The plans of poolings: their geometry, checked by inference, worked out for kernels by the same code.
#pragma once
#include "infer/windows.h"
#include "taeda/small_vec.h"

namespace taeda::infer {

/// The moving window of both dimensions, of arguments that inference has let through.
struct Window {
  Pair kernel, stride, padding, dilation;
  Window(IntSpan kernel_size, IntSpan stride, IntSpan padding, IntSpan dilation)
      : kernel(both(kernel_size)),
        stride(both(stride, kernel)),
        padding(both(padding)),
        dilation(both(dilation, {1, 1})) {}
};

/// Input (n, c, h, w), output (oh, ow). Windows of adaptive poolings are their own: see adaptive_ranges().
struct PoolPlan {
  int64_t n, c, h, w, oh, ow;
};

/// Of arguments that inference has let through: arithmetic alone.
PoolPlan pool_plan(const Tensor& input, const Window& window, bool ceil_mode);
PoolPlan adaptive_plan(const Tensor& input, const Pair& output_size);

/// The windows of one dimension: begin and end clipped to the input, the unclipped begin, and the length that averages
/// divide by.
struct Ranges {
  SmallVec<int32_t, 32> begin, end, first, length;  // on the stack for small images
};
Ranges window_ranges(int64_t size, int64_t out, const Window& window, size_t dimension, bool count_padding);
Ranges adaptive_ranges(int64_t size, int64_t out);

/// Maxima are of whole numbers too.
void expect_ordered(const char* op, const Tensor& input);
PoolPlan checked_pool(const char* op, const Tensor& input, IntSpan kernel_size, IntSpan stride, IntSpan padding,
                      IntSpan dilation, bool ceil_mode);
/// The quotients of whole numbers, rounded to 0, that means in float64 stand for; none was divided by more than `most`.
Tensor whole_means(const Tensor& mean, int64_t most);
/// Sizes asked for by an adaptive operator.
Pair adaptive_size(const char* op, const Tensor& input, IntSpan output_size);

}  // namespace taeda::infer
