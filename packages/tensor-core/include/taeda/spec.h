// Spec: what inference says of an output before anything is computed.
#pragma once
#include "taeda/tensor.h"

namespace taeda {

struct Spec {
  Shape sizes;
  DType dtype = DType::Float32;
  /// Empty: row-major. Otherwise dense strides to allocate with (channels-last, or the layout of the inputs).
  Shape strides;
};

/// Most operators have one output, a few two or three.
inline Spec spec(IntSpan sizes, DType dtype) { return Spec{Shape(sizes), dtype, {}}; }
/// Row-major, or channels-last strides when `like` has them and is of the same rank: how layout travels through a
/// network.
TAEDA_API Spec spec_like(IntSpan sizes, DType dtype, const Tensor& like);

}  // namespace taeda

#include "taeda/infer.h"  // IWYU pragma: export
