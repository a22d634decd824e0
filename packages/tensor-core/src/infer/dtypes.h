// Dtypes that follow from a dtype: of results, and of what is kept for gradients.
#pragma once
#include <cfloat>

#include "taeda/tensor.h"

namespace taeda::infer {

/// Of operators that have no result in integers.
inline DType float_of(DType d) { return is_integral(d) ? default_dtype() : d; }

/// Of sums of numbers of dtype `d`: wide enough not to overflow early.
constexpr DType accumulated(DType d) noexcept {
  if (!is_integral(d)) return d;
  return d == DType::UInt64 ? DType::UInt64 : DType::Int64;
}

/// Of sums and moments kept for the gradient: never a half, whose rounding would come back multiplied.
constexpr DType statistics_dtype(DType d) noexcept { return d == DType::Float64 ? DType::Float64 : DType::Float32; }

/// The largest finite number of a floating dtype, of each part of a complex one.
constexpr double largest_number(DType d) noexcept {
  switch (real_of(d)) {
    case DType::Float16: return 65504;
    case DType::BFloat16: return 0x1.fep127;
    case DType::Float32: return FLT_MAX;
    default: return DBL_MAX;
  }
}

/// RuntimeError naming the argument where a tensor is of another dtype; `like`: the argument that has the expected one.
void expect_dtype(const char* op, const char* argument, const Tensor& t, DType expected, const char* like = nullptr);

}  // namespace taeda::infer
