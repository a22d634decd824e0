// The plan of losses over classes: their geometry, checked by inference, worked out for kernels by the same code.
#pragma once
#include "taeda/tensor.h"

namespace taeda::infer {

/// Input (n, c, inner): classes in dimension 1 (or 0 of a vector), `inner` positions behind it; one target each.
struct ClassPlan {
  int64_t n, c, inner;
};
/// Of arguments that inference has let through: arithmetic alone.
ClassPlan class_plan(const Tensor& input);

}  // namespace taeda::infer
