// Inference of the compare family that looks at the values of Python numbers.
#pragma once
#include "infer/numbers.h"
#include "taeda/spec.h"

namespace taeda::infer {

Spec isclose(const Tensor& a, const Tensor& b);

}  // namespace taeda::infer
