// Inference that operators of the compare family share, and that looks at the values of Python numbers.
#pragma once
#include "infer/numbers.h"
#include "taeda/spec.h"

namespace taeda::infer {

/// isclose, allclose: bool of the common shape; tolerances are not negative.
Spec close(const char* op, const Tensor& self, const Tensor& other, double rtol, double atol);

}  // namespace taeda::infer
