// Layout of the results of sliding windows: a question to the backend.
#include "infer/windows.h"

#include "infer/memory_format.h"
#include "taeda/image_layout.h"

namespace taeda::infer {
namespace {

ImageLayout layout_of(const Tensor& t, const Tensor& weight) {
  if (channels_come_last(t) || (weight.defined() && t.numel() > 0 && channels_come_last(weight)))
    return ImageLayout::ChannelsLast;
  return t.contiguous() ? ImageLayout::RowMajor : ImageLayout::Other;
}

}  // namespace

Spec image_result(const char* op, const Tensor& input, const Shape& sizes, DType dtype, IntSpan kernel, int64_t groups,
                  const Tensor& weight) {
  Spec out{sizes, dtype, {}};
  if (input.dim() != 4) return out;
  const ImageResult result{op, dtype, layout_of(input, weight), input.sizes(), sizes, kernel, groups};
  if (wants_channels_last(input.device(), result)) out.strides = channels_last_strides(sizes);
  return out;
}

}  // namespace taeda::infer
