// The plans of poolings: their geometry, checked by inference, worked out for kernels by the same code.
#pragma once
#include <memory>
#include <span>

#include "infer/windows.h"

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
class Ranges {
 public:
  explicit Ranges(int64_t count) : count_(size_t(count)), heap_(count_ > kInline ? new int32_t[4 * count_] : nullptr) {}
  std::span<int32_t> begin() { return list(0); }
  std::span<int32_t> end() { return list(1); }
  std::span<int32_t> first() { return list(2); }
  std::span<int32_t> length() { return list(3); }
  std::span<const int32_t> begin() const { return list(0); }
  std::span<const int32_t> end() const { return list(1); }
  std::span<const int32_t> length() const { return list(3); }

 private:
  static constexpr size_t kInline = 32;  // small images need no heap
  int32_t* at(size_t which) { return (heap_ ? heap_.get() : inline_) + which * count_; }
  std::span<int32_t> list(size_t which) { return {at(which), count_}; }
  std::span<const int32_t> list(size_t which) const { return const_cast<Ranges*>(this)->list(which); }
  size_t count_;
  std::unique_ptr<int32_t[]> heap_;
  int32_t inline_[4 * kInline];
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
