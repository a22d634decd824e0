// Values of tensors of any device, for code that decides by them.
#pragma once
#include "taeda/levels.h"
#include "taeda/ops/cast.h"
#include "taeda/ops/shape.h"
#include "taeda/wrappers.h"

namespace taeda {

/// The elements where this code can read them, row by row.
inline Tensor on_host(const Tensor& tensor) {
  check_has_memory(tensor, "to_device");
  const Tensor here = ops::contiguous(ops::to_device(tensor, Device{}));
  if (here.device().backend != kCPU)
    fail(ErrorKind::Runtime,
         "to_device: the values of a tensor whose class answers for operators can't be read, found ", describe(tensor));
  return here;
}
/// A tensor that has a shape alone. One that wraps others counts as such, but its class knows elements.
inline bool is_shape_alone(const Tensor& tensor) { return tensor.device().backend == kMeta && !is_wrapper(tensor); }
/// Whether there are elements that can be read: none on meta, and none of a tensor that belongs to a level.
inline bool readable(const Tensor& tensor) { return tensor.device().backend != kMeta && !is_carrier(tensor); }
/// Whether elements can be read here without waiting for a device.
inline bool at_hand(const Tensor& tensor) {
  return tensor.device().backend == kCPU && tensor.numel() > 0 && !is_carrier(tensor);
}
/// The value of a tensor of one real element.
inline double number_of(const Tensor& tensor) {
  if (is_wrapper(tensor) && wrapper_api.item) return wrapper_api.item(tensor).to_double();
  return *on_host(ops::to_dtype(ops::detach(tensor), DType::Float64)).data<double>();
}

}  // namespace taeda
