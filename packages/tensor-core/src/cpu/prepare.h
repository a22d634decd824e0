// Operands made ready for kernels that want one dtype and row-major (or channels-last) bytes.
#pragma once
#include "taeda/ops/cast.h"
#include "taeda/tensor.h"

namespace taeda::cpu {

/// Calls `body` for double where that is the dtype that is computed in, else for float.
template <class Body>
void visit_float(DType dtype, const Body& body) {
  if (dtype == DType::Float64) body.template operator()<double>();
  else body.template operator()<float>();
}

/// `t` itself when it is row-major and of `dtype`, else a converted copy.
inline Tensor row_major(const Tensor& t, DType dtype) {
  if (t.contiguous() && t.dtype() == dtype) return t;
  Tensor copy = empty(t.sizes(), dtype);
  ops::copy_(copy, t);
  return copy;
}
inline Tensor row_major(const Tensor& t) { return row_major(t, t.dtype()); }
/// As above for optional arguments.
inline Tensor row_major_or_none(const Tensor& t, DType dtype) { return t.defined() ? row_major(t, dtype) : Tensor(); }

/// Dense in channels-last order.
inline Tensor channels_last(const Tensor& t, DType dtype) {
  if (t.channels_last() && t.dtype() == dtype) return t;
  Tensor copy = empty_strided(t.sizes(), channels_last_strides(t.sizes()), dtype);
  ops::copy_(copy, t);
  return copy;
}

/// A place for results: `out` itself when it is dense row-major of `dtype`, else a temporary that finish() copies back.
class Target {
 public:
  Target(const Tensor& out, DType dtype)
      : out_(out), tensor_(out.contiguous() && out.dtype() == dtype ? out : empty(out.sizes(), dtype)) {}
  explicit Target(const Tensor& out) : Target(out, out.dtype()) {}
  const Tensor& tensor() const { return tensor_; }
  template <class T>
  T* data() const {
    return tensor_.data<T>();
  }
  void finish() const {
    if (!tensor_.same(out_)) ops::copy_(out_, tensor_);
  }

 private:
  const Tensor& out_;
  Tensor tensor_;
};

}  // namespace taeda::cpu
