// In which layout results of convolutions and poolings are allocated: a question to the backend.
#pragma once
#include "taeda/tensor.h"

namespace taeda {

/// How the elements of images (N, C, H, W) lie in memory.
enum class ImageLayout : uint8_t { RowMajor, ChannelsLast, Other };

/// A convolution or pooling whose result is about to be allocated.
struct ImageResult {
  const char* op;
  DType dtype;
  ImageLayout input_layout;
  IntSpan input, sizes;  // (N, C, H, W), of the input and of the result
  IntSpan kernel;        // height and width of the window; none where windows differ
  int64_t groups = 1;    // of convolutions
};

/// The answer of backends that have none of their own.
inline bool lies_as_input(const ImageResult& result) { return result.input_layout == ImageLayout::ChannelsLast; }

/// What a Backend also is that answers for its devices; the others get the layout of the input.
class TAEDA_API ImageLayouts {
 public:
  virtual ~ImageLayouts() = default;
  /// Whether the result gets channels-last strides, else row-major ones. Kernels fill both.
  virtual bool wants_channels_last(Device device, const ImageResult& result) const = 0;
};

/// The answer for `device`.
TAEDA_API bool wants_channels_last(Device device, const ImageResult& result);

}  // namespace taeda
