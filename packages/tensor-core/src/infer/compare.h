// Inference that operators of the compare family share.
#pragma once
#include "taeda/spec.h"

namespace taeda::infer {

/// isclose, allclose: bool of the common shape; tolerances are not negative.
Spec close(const char* op, const Tensor& self, const Tensor& other, double rtol, double atol);

}  // namespace taeda::infer
