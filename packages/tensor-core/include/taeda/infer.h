// Inference shared by families: shape, dtype and layout of results before anything is computed.
#pragma once
#include <array>
#include <optional>
#include <string_view>

#include "taeda/spec.h"

namespace taeda::infer {

// Operators without an entry for a dtype raise NotImplementedError (a RuntimeError), as in PyTorch.

// --- Element-wise, one operand. ---

/// Same dtype.
TAEDA_API Spec unary(const char* op, const Tensor& self);
/// Same dtype; complex is refused.
TAEDA_API Spec unary_ordered(const char* op, const Tensor& self);
/// Same dtype; bool becomes int64.
TAEDA_API Spec unary_number(const char* op, const Tensor& self);
/// Integers and bool become the default floating dtype.
TAEDA_API Spec unary_float(const char* op, const Tensor& self);
TAEDA_API Spec unary_float_ordered(const char* op, const Tensor& self);
/// Complex becomes real.
TAEDA_API Spec unary_real(const char* op, const Tensor& self);
/// Integers to the default floating dtype, complex to real.
TAEDA_API Spec unary_angle(const char* op, const Tensor& self);
/// Integers and bool only.
TAEDA_API Spec unary_bits(const char* op, const Tensor& self);
/// Anything but bool.
TAEDA_API Spec negation(const char* op, const Tensor& self);
/// Floating dtypes only.
TAEDA_API Spec activation(const char* op, const Tensor& self);
/// bool of the same shape.
TAEDA_API Spec predicate(const char* op, const Tensor& self);
TAEDA_API Spec predicate_ordered(const char* op, const Tensor& self);

// --- Element-wise, two or three operands: broadcast shape, promoted dtype. ---

TAEDA_API Spec binary_slow(const char* op, const Tensor& a, const Tensor& b);
TAEDA_API Spec binary_ordered(const char* op, const Tensor& a, const Tensor& b);
TAEDA_API Spec binary_float(const char* op, const Tensor& a, const Tensor& b);
TAEDA_API Spec binary_int(const char* op, const Tensor& a, const Tensor& b);
TAEDA_API Spec binary_bits(const char* op, const Tensor& a, const Tensor& b);
TAEDA_API Spec compare(const char* op, const Tensor& a, const Tensor& b);
TAEDA_API Spec compare_any(const char* op, const Tensor& a, const Tensor& b);
TAEDA_API Spec ternary(const char* op, const Tensor& a, const Tensor& b, const Tensor& c);
TAEDA_API Spec where(const Tensor& condition, const Tensor& a, const Tensor& b);
TAEDA_API Spec masked_fill(const Tensor& self, const Tensor& mask, const Tensor& value);
TAEDA_API Spec add(const Tensor& a, const Tensor& b, const Scalar& alpha);
TAEDA_API Spec sub(const Tensor& a, const Tensor& b, const Scalar& alpha);
TAEDA_API Spec pow(const Tensor& a, const Tensor& b);
TAEDA_API Spec addcdiv(const Tensor& self, const Tensor& a, const Tensor& b);
TAEDA_API Spec clamp(const Tensor& self, const std::optional<Scalar>& min, const std::optional<Scalar>& max);
TAEDA_API Spec clamp_bound(const char* op, const Tensor& self, const Tensor& bound);

/// Promoted dtype of two operands.
TAEDA_API DType common_dtype(const Tensor& a, const Tensor& b);

inline bool same_shape(const Tensor& a, const Tensor& b) noexcept {
  if (a.dim() != b.dim()) return false;
  const int64_t *x = a.impl()->dims, *y = b.impl()->dims;
  for (int64_t d = 0; d < a.dim(); ++d)
    if (x[d] != y[d]) return false;
  return true;
}

/// The common case (equal dtypes and shapes, row-major) without a call.
inline Spec binary(const char* op, const Tensor& a, const Tensor& b) {
  if (a.dtype() == b.dtype() && a.contiguous() && same_shape(a, b) && !b.is_wrapped_number()) [[likely]]
    return Spec{Shape(a.sizes()), a.dtype(), {}};
  return binary_slow(op, a, b);
}

// --- Reductions over `dim` (absent or empty: all). ---

using Dims = std::optional<IntSpan>;
/// Bit d is set when dimension d is reduced; IndexError and repeated dimensions are reported here.
TAEDA_API uint64_t reduced_dims(const char* op, const Tensor& self, const Dims& dim);
TAEDA_API Shape reduced_shape(const Tensor& self, uint64_t reduced, bool keepdim);
TAEDA_API Spec sum(const char* op, const Tensor& self, const Dims& dim, bool keepdim, std::optional<DType> dtype);
TAEDA_API Spec mean(const char* op, const Tensor& self, const Dims& dim, bool keepdim, std::optional<DType> dtype);
TAEDA_API Spec variance(const Tensor& self, const Dims& dim, bool keepdim);
TAEDA_API Spec extremum(const char* op, const Tensor& self, const Dims& dim, bool keepdim);
TAEDA_API std::array<Spec, 2> extremum_dim(const char* op, const Tensor& self, int64_t dim, bool keepdim);
TAEDA_API Spec arg_extremum(const char* op, const Tensor& self, std::optional<int64_t> dim, bool keepdim);
TAEDA_API Spec truth(const char* op, const Tensor& self, const Dims& dim, bool keepdim);
TAEDA_API Spec vector_norm(const Tensor& self, const Scalar& ord, const Dims& dim, bool keepdim,
                           std::optional<DType> dtype);
TAEDA_API Spec scan(const char* op, const Tensor& self, int64_t dim, std::optional<DType> dtype);
TAEDA_API Spec scan_float(const char* op, const Tensor& self, int64_t dim);
TAEDA_API std::array<Spec, 2> scan_indices(const char* op, const Tensor& self, int64_t dim);
TAEDA_API Spec softmax(const char* op, const Tensor& self, int64_t dim, std::optional<DType> dtype);

// --- Others. ---

TAEDA_API Spec cast(const Tensor& self, DType dtype);
TAEDA_API Spec clone(const Tensor& self, std::optional<std::string_view> memory_format);
TAEDA_API std::array<Spec, 2> native_dropout(const Tensor& self, double p);

}  // namespace taeda::infer
