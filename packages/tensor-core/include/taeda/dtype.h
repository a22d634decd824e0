// Element types: identifiers, C++ types, sizes, categories and PyTorch's promotion lattice.
#pragma once
#include <bit>
#include <complex>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "taeda/export.h"

namespace taeda {

enum class DType : uint8_t {
  Bool,
  Int8,
  Int16,
  Int32,
  Int64,
  UInt8,
  UInt16,
  UInt32,
  UInt64,
  Float16,
  BFloat16,
  Float32,
  Float64,
  Complex64,
  Complex128,
  Float8E4M3fn,
  Float8E5M2,
  Float8E4M3fnuz,
  Float8E5M2fnuz,
  Float8E8M0fnu,
};
inline constexpr int kBuiltInDTypes = 20;
/// Behind the built-in ones stand those that plug-ins define (taeda/custom_dtype.h).
inline constexpr int kDTypeCount = 32;
/// Floating-point numbers of 8 bits, those of plug-ins among them: kept, moved and converted, but not computed in
/// (taeda/float8.h).
constexpr bool is_float8(DType d) noexcept { return d >= DType::Float8E4M3fn; }
constexpr bool is_custom(DType d) noexcept { return int(d) >= kBuiltInDTypes; }

/// IEEE binary16 held as bits; arithmetic happens in float32.
struct Half {
  uint16_t bits;
  Half() = default;
  TAEDA_API explicit Half(float value) noexcept;
  TAEDA_API operator float() const noexcept;
};

/// bfloat16: the upper half of a float32, rounded to nearest even.
struct BFloat16 {
  uint16_t bits;
  BFloat16() = default;
  explicit BFloat16(float value) noexcept {
    uint32_t raw = std::bit_cast<uint32_t>(value);
    // NaN must stay NaN: rounding could carry its mantissa away.
    bits = (raw & 0x7fffffffu) > 0x7f800000u ? uint16_t((raw >> 16) | 0x40)
                                             : uint16_t((raw + 0x7fffu + ((raw >> 16) & 1)) >> 16);
  }
  operator float() const noexcept { return std::bit_cast<float>(uint32_t(bits) << 16); }
};

using Complex64 = std::complex<float>;
using Complex128 = std::complex<double>;

enum class Category : uint8_t { Bool, Integral, Floating, Complex };

template <class T> struct DTypeOf;
template <DType D> struct CTypeOf;
// clang-format off
#define TAEDA_DTYPE(NAME, TYPE)                                             \
  template <> struct DTypeOf<TYPE> { static constexpr DType value = DType::NAME; }; \
  template <> struct CTypeOf<DType::NAME> { using type = TYPE; };
TAEDA_DTYPE(Bool, bool) TAEDA_DTYPE(Int8, int8_t) TAEDA_DTYPE(Int16, int16_t) TAEDA_DTYPE(Int32, int32_t)
TAEDA_DTYPE(Int64, int64_t) TAEDA_DTYPE(UInt8, uint8_t) TAEDA_DTYPE(UInt16, uint16_t) TAEDA_DTYPE(UInt32, uint32_t)
TAEDA_DTYPE(UInt64, uint64_t) TAEDA_DTYPE(Float16, Half) TAEDA_DTYPE(BFloat16, taeda::BFloat16)
TAEDA_DTYPE(Float32, float) TAEDA_DTYPE(Float64, double) TAEDA_DTYPE(Complex64, taeda::Complex64)
TAEDA_DTYPE(Complex128, taeda::Complex128)
#undef TAEDA_DTYPE
    // clang-format on
    template <class T> inline constexpr DType dtype_of = DTypeOf<T>::value;

inline constexpr uint8_t kItemSize[kDTypeCount] = {1, 1, 2, 4, 8, 1, 2, 4, 8, 2, 2, 4, 8, 8, 16, 1,
                                                   1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,  1};
constexpr int64_t item_size(DType d) noexcept { return kItemSize[int(d)]; }
constexpr Category category(DType d) noexcept {
  return d == DType::Bool      ? Category::Bool
         : d <= DType::UInt64  ? Category::Integral
         : d <= DType::Float64 ? Category::Floating
         : is_float8(d)        ? Category::Floating
                               : Category::Complex;
}
constexpr bool is_floating(DType d) noexcept { return category(d) == Category::Floating; }
constexpr bool is_complex(DType d) noexcept { return category(d) == Category::Complex; }
/// Integer types and bool.
constexpr bool is_integral(DType d) noexcept { return d <= DType::UInt64; }
constexpr bool is_signed(DType d) noexcept {
  return !(d == DType::Bool || (d >= DType::UInt8 && d <= DType::UInt64) || d == DType::Float8E8M0fnu);
}
/// Only these can carry gradients.
constexpr bool is_differentiable(DType d) noexcept { return d >= DType::Float16; }
/// complex64 -> float32, complex128 -> float64, others unchanged.
constexpr DType real_of(DType d) noexcept {
  return d == DType::Complex64 ? DType::Float32 : d == DType::Complex128 ? DType::Float64 : d;
}
constexpr DType complex_of(DType d) noexcept {
  return d == DType::Float64 || d == DType::Complex128 ? DType::Complex128 : DType::Complex64;
}

/// "float32"; empty for a place that no plug-in has taken.
TAEDA_API std::string_view name(DType d) noexcept;
/// Least common type of two dimensioned operands (PyTorch's lattice; uint16-64 with signed ints go to the next larger
/// signed type, int64 at the top; uint64 with signed to float32 as in PyTorch's default float). RuntimeError for a
/// float8 beside another dtype.
TAEDA_API DType promote(DType a, DType b);
/// Whether a result of type `from` may be stored in-place into `to` (no drop of category).
TAEDA_API bool can_cast(DType from, DType to) noexcept;
TAEDA_API DType default_dtype() noexcept;
TAEDA_API void set_default_dtype(DType d);

[[noreturn]] TAEDA_API void refuse_float8(DType d);
/// Calls `body.template operator()<T>()` with the C++ type of `d`. NotImplementedError for float8, which has none.
template <class Body>
decltype(auto) visit_dtype(DType d, Body&& body) {
  switch (d) {
    case DType::Bool: return body.template operator()<bool>();
    case DType::Int8: return body.template operator()<int8_t>();
    case DType::Int16: return body.template operator()<int16_t>();
    case DType::Int32: return body.template operator()<int32_t>();
    case DType::Int64: return body.template operator()<int64_t>();
    case DType::UInt8: return body.template operator()<uint8_t>();
    case DType::UInt16: return body.template operator()<uint16_t>();
    case DType::UInt32: return body.template operator()<uint32_t>();
    case DType::UInt64: return body.template operator()<uint64_t>();
    case DType::Float16: return body.template operator()<Half>();
    case DType::BFloat16: return body.template operator()<BFloat16>();
    case DType::Float32: return body.template operator()<float>();
    case DType::Float64: return body.template operator()<double>();
    case DType::Complex64: return body.template operator()<Complex64>();
    case DType::Complex128: return body.template operator()<Complex128>();
    default: refuse_float8(d);
  }
}

}  // namespace taeda
