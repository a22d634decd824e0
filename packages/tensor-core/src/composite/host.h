// Values of tensors of any device, for code that decides by them.
#pragma once
#include "taeda/ops/cast.h"
#include "taeda/ops/shape.h"

namespace taeda {

/// The elements where this code can read them, row by row.
inline Tensor on_host(const Tensor& tensor) { return ops::contiguous(ops::to_device(tensor, Device{})); }
/// The value of a tensor of one real element.
inline double number_of(const Tensor& tensor) {
  return *on_host(ops::to_dtype(ops::detach(tensor), DType::Float64)).data<double>();
}

}  // namespace taeda
