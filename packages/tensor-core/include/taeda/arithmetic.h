// Formulas on tensors as they are written on paper; numbers convert to wrapped 0-d tensors.
#pragma once
#include "taeda/ops/arith.h"
#include "taeda/ops/compare.h"
#include "taeda/ops/unary.h"

namespace taeda {

inline Tensor operator+(const Tensor& a, const Tensor& b) { return ops::add(a, b); }
inline Tensor operator-(const Tensor& a, const Tensor& b) { return ops::sub(a, b); }
inline Tensor operator*(const Tensor& a, const Tensor& b) { return ops::mul(a, b); }
inline Tensor operator/(const Tensor& a, const Tensor& b) { return ops::div(a, b); }
inline Tensor operator-(const Tensor& a) { return ops::neg(a); }

/// `t` where the mask holds, else 0 of the same dtype.
inline Tensor masked(const Tensor& t, const Tensor& mask) { return ops::where(mask, t, Tensor(0)); }
/// Conjugate; real tensors as they are.
inline Tensor conj_of(const Tensor& t) { return is_complex(t.dtype()) ? ops::conj(t) : t; }

}  // namespace taeda
