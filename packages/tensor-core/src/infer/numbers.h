// Whether a Python number fits the dtype it meets: asked before dispatch, so that every device answers alike.
#pragma once
#include <cmath>
#include <limits>
#include <utility>

#include "taeda/elementwise.h"
#include "taeda/half.h"
#include "taeda/tensor.h"

namespace taeda::infer {

/// -1 below the range of the integer dtype, 1 above it, 0 inside; floating numbers count as truncated.
TAEDA_API int side_of(const Scalar& value, DType dtype);

/// OverflowError "op: argument 'x' is 300, out of range for dtype uint8".
[[noreturn]] TAEDA_API void out_of_range(const char* op, const char* argument, const Scalar& value, DType dtype);

/// The largest finite number of a floating dtype, of either part of a complex one; infinity where every number fits.
constexpr double largest_of(DType dtype) noexcept {
  switch (dtype) {
    case DType::Float16: return 65504.0;
    case DType::BFloat16: return 0x1.fep127;
    case DType::Float32:
    case DType::Complex64: return std::numeric_limits<float>::max();
    case DType::Float8E4M3fn: return 448.0;
    case DType::Float8E5M2:
    case DType::Float8E5M2fnuz: return 57344.0;
    case DType::Float8E4M3fnuz: return 240.0;
    case DType::Float8E8M0fnu: return 0x1p127;
    default: return std::numeric_limits<double>::infinity();
  }
}

/// What a number computes in, or passes through, on its way to a tensor of the dtype.
constexpr DType computing(DType dtype) noexcept { return is_float8(dtype) ? DType::Float32 : compute_dtype(dtype); }

// A number that is stored. OverflowError beyond the range of the dtype (a negative integer may stand for its two's
// complement in an unsigned dtype, as in PyTorch; infinities are numbers of the floating dtypes that have them, and of
// no integer dtype, nor is NaN), RuntimeError for a number with an imaginary part where `dtype` is real. Bool takes
// every number. Where the number takes part in a computation or goes through a tensor, `dtype` is `computing` of it:
// 1e9 becomes infinity in a float16 result.
TAEDA_API void check_number_slow(const char* op, const char* argument, const Scalar& value, DType dtype);
inline void check_number(const char* op, const char* argument, const Scalar& value, DType dtype) {
  if (is_integral(dtype) || value.is_complex() || !(std::abs(value.to_double()) <= largest_of(dtype)))
    check_number_slow(op, argument, value, dtype);
}
TAEDA_API void check_wrapped_slow(const char* op, const char* argument, const Tensor& value, DType dtype);
/// Whether an element surely fits a floating dtype.
inline bool surely_fits(const Tensor& number, DType dtype) {
  if (number.dtype() == DType::Float64) return std::abs(*number.data<double>()) <= largest_of(dtype);
  if (number.dtype() == DType::Int64) return std::abs(double(*number.data<int64_t>())) <= largest_of(dtype);
  return false;
}
/// Only wrapped numbers are checked; tensors convert as they always do.
inline void check_number(const char* op, const char* argument, const Tensor& value, DType dtype) {
  if (value.is_wrapped_number() && (is_integral(dtype) || !surely_fits(value, dtype)))
    check_wrapped_slow(op, argument, value, dtype);
}

/// OverflowError unless the wrapped number lies in the range of the integer dtype: for results that are not modular.
TAEDA_API void check_exact_slow(const char* op, const char* argument, const Tensor& value, DType dtype);
inline void check_exact(const char* op, const char* argument, const Tensor& value, DType dtype) {
  if (value.is_wrapped_number() && is_integral(dtype)) check_exact_slow(op, argument, value, dtype);
}

// What an Operand goes on as. `room` holds a number that takes the place of the given one.

TAEDA_API const Tensor& rounded_slow(const Tensor& number, const Tensor& beside, Tensor& room);
/// A number, or a tensor that is one, beside elements of 16 bits is rounded to their dtype, which loops that compute in
/// float32 do not see.
inline const Tensor& rounded(const Tensor& number, const Tensor& beside, Tensor&& room) {
  return is_half(beside.dtype()) && number.dim() == 0 ? rounded_slow(number, beside, room) : number;
}
TAEDA_API Scalar rounded_slow(const Scalar& number, DType dtype);
inline Scalar rounded(const Scalar& number, const Tensor& beside, Tensor&&) {
  return is_half(beside.dtype()) ? rounded_slow(number, beside.dtype()) : number;
}
TAEDA_API const Tensor& compared_slow(const Tensor& number, const Tensor& beside, Tensor& room);
/// Rounded, and an integer beyond the dtype it is compared with becomes an infinity of its sign, which compares alike.
inline const Tensor& compared(const Tensor& number, const Tensor& beside, Tensor&& room) {
  if (!is_integral(beside.dtype())) return rounded(number, beside, std::move(room));
  return number.is_wrapped_number() ? compared_slow(number, beside, room) : number;
}
/// A bound that no element can pass becomes the end of the dtype's range; one that none can meet is an OverflowError.
TAEDA_API const Tensor& upper_bound(const char* op, const Tensor& bound, const Tensor& self, Tensor&& room);
TAEDA_API const Tensor& lower_bound(const char* op, const Tensor& bound, const Tensor& self, Tensor&& room);
/// A count outside [0, 64], which the dtype of the result may not hold, becomes 64: every bit is shifted out.
TAEDA_API const Tensor& shift_count(const Tensor& count, Tensor&& room);

}  // namespace taeda::infer
