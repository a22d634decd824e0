// What the special family shares with arithmetic.
#pragma once
#include "infer/arith.h"  // IWYU pragma: export

namespace taeda::infer {

/// binary_float_ordered of operands of which one at least is a tensor.
inline Spec beside_tensor(const char* op, const Tensor& a, const Tensor& b) {
  check(!(a.is_wrapped_number() && b.is_wrapped_number()), ErrorKind::Type, op,
        ": both arguments are numbers, expected at least one Tensor");
  return binary_float_ordered(op, a, b);
}

}  // namespace taeda::infer
