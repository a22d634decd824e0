// What the decompositions share: arithmetic on tensors, and registration by name.
#pragma once
#include "taeda/decompose.h"
#include "taeda/ops.h"

#define DECOMPOSE(operation) static const AddDecomposition operation##_entry(#operation, &Boxed<&operation>::call, erased<taeda::op::operation>(&operation));

namespace taeda::decompose {

using Two = std::tuple<Tensor, Tensor>;
using Three = std::tuple<Tensor, Tensor, Tensor>;
using Five = std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor>;

inline Tensor operator+(const Tensor& a, const Tensor& b) { return ops::add(a, b); }
inline Tensor operator-(const Tensor& a, const Tensor& b) { return ops::sub(a, b); }
inline Tensor operator*(const Tensor& a, const Tensor& b) { return ops::mul(a, b); }
inline Tensor operator/(const Tensor& a, const Tensor& b) { return ops::div(a, b); }
inline Tensor operator-(const Tensor& a) { return ops::neg(a); }

/// `t` where the mask holds, else 0 of the same dtype.
inline Tensor masked(const Tensor& mask, const Tensor& t) { return ops::where(mask, t, Tensor(0)); }
inline Tensor conj_of(const Tensor& t) { return is_complex(t.dtype()) ? ops::conj(t) : t; }
/// (C) so that it broadcasts against (N, C, ...).
inline Tensor by_channel(const Tensor& t, int64_t ndim) {
  Shape sizes(size_t(ndim), 1);
  sizes[1] = -1;
  return ops::reshape(t, sizes);
}

}  // namespace taeda::decompose
