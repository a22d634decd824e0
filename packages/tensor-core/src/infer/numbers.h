// Whether a Python number fits the dtype it meets: asked before dispatch, so that every device answers alike.
#pragma once
#include "taeda/tensor.h"

namespace taeda::infer {

/// -1 below the range of the integer dtype, 1 above it, 0 inside; floating numbers count as truncated.
TAEDA_API int side_of(const Scalar& value, DType dtype);

/// OverflowError "op: argument 'x' is 300, out of range for dtype uint8".
[[noreturn]] TAEDA_API void out_of_range(const char* op, const char* argument, const Scalar& value, DType dtype);

// A number that is stored. OverflowError beyond the range of an integer dtype (a negative integer may stand for its
// two's complement in an unsigned dtype, as in PyTorch), ValueError for NaN and infinities, RuntimeError for a complex
// number where `dtype` is real. Floating dtypes take every real number, bool takes every number.
TAEDA_API void check_number_slow(const char* op, const char* argument, const Scalar& value, DType dtype);
inline void check_number(const char* op, const char* argument, const Scalar& value, DType dtype) {
  if (is_integral(dtype) || value.is_complex()) check_number_slow(op, argument, value, dtype);
}
TAEDA_API void check_wrapped_slow(const char* op, const char* argument, const Tensor& value, DType dtype);
/// Only wrapped numbers are checked; tensors convert as they always do.
inline void check_number(const char* op, const char* argument, const Tensor& value, DType dtype) {
  if (value.is_wrapped_number() && (is_integral(dtype) || is_complex(value.dtype())))
    check_wrapped_slow(op, argument, value, dtype);
}

/// OverflowError unless the wrapped number lies in the range of the integer dtype: for results that are not modular.
TAEDA_API void check_exact_slow(const char* op, const char* argument, const Tensor& value, DType dtype);
inline void check_exact(const char* op, const char* argument, const Tensor& value, DType dtype) {
  if (value.is_wrapped_number() && is_integral(dtype)) check_exact_slow(op, argument, value, dtype);
}

// What an Operand goes on as. `room` holds a number that takes the place of the given one.

TAEDA_API const Tensor& compared_slow(const Tensor& number, const Tensor& beside, Tensor& room);
/// An integer beyond the dtype it is compared with becomes an infinity of its sign, which compares alike.
inline const Tensor& compared(const Tensor& number, const Tensor& beside, Tensor&& room) {
  return number.is_wrapped_number() && is_integral(beside.dtype()) ? compared_slow(number, beside, room) : number;
}
/// A bound that no element can pass becomes the end of the dtype's range; one that none can meet is an OverflowError.
TAEDA_API const Tensor& upper_bound(const char* op, const Tensor& bound, const Tensor& self, Tensor&& room);
TAEDA_API const Tensor& lower_bound(const char* op, const Tensor& bound, const Tensor& self, Tensor&& room);
/// A count outside [0, 64], which the dtype of the result may not hold, becomes 64: every bit is shifted out.
TAEDA_API const Tensor& shift_count(const Tensor& count, Tensor&& room);

}  // namespace taeda::infer
