// Inference of the arith family that looks at the values of Python numbers.
#pragma once
#include "infer/numbers.h"
#include "taeda/spec.h"

namespace taeda::infer {

/// binary_ordered whose result is not modular: a Python integer must lie in the range of the dtype.
TAEDA_API Spec binary_exact(const char* op, const Tensor& a, const Tensor& b);
TAEDA_API Spec binary_int_exact(const char* op, const Tensor& a, const Tensor& b);
/// binary_float; complex is refused.
TAEDA_API Spec binary_float_ordered(const char* op, const Tensor& a, const Tensor& b);
Spec lerp(const Tensor& self, const Tensor& end, const Tensor& weight);
Spec addcmul(const Tensor& self, const Tensor& a, const Tensor& b, const Scalar& value);
Spec addcdiv(const Tensor& self, const Tensor& a, const Tensor& b, const Scalar& value);

}  // namespace taeda::infer
