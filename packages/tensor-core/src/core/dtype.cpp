// Names, promotion lattice, half-precision conversion, default dtype.
#include "taeda/dtype.h"

#include <array>
#include <atomic>
#include <cmath>

#include "taeda/custom_dtype.h"
#include "taeda/error.h"

namespace taeda {
namespace {

std::atomic<DType> the_default{DType::Float32};

constexpr std::string_view kNames[kBuiltInDTypes] = {
    "bool",       "int8",          "int16",       "int32",           "int64",           "uint8",         "uint16",
    "uint32",     "uint64",        "float16",     "bfloat16",        "float32",         "float64",       "complex64",
    "complex128", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu"};
/// In the lattice: the two have no common dtype.
constexpr DType kNone = DType(kDTypeCount);

/// Smallest signed type holding every value of both; uint64 beside a signed type has none and goes to float32.
DType promote_integers(DType a, DType b) {
  if (a == DType::Bool) return b;
  if (b == DType::Bool) return a;
  const int64_t wa = item_size(a), wb = item_size(b);
  if (is_signed(a) == is_signed(b)) return wa >= wb ? a : b;
  const DType with_sign = is_signed(a) ? a : b;
  const DType without = is_signed(a) ? b : a;
  if (item_size(with_sign) > item_size(without)) return with_sign;
  switch (item_size(without)) {
    case 1: return DType::Int16;
    case 2: return DType::Int32;
    case 4: return DType::Int64;
    default: return DType::Float32;
  }
}

DType promote_slow(DType a, DType b) {
  if (a == b) return a;
  if (is_float8(a) || is_float8(b)) return kNone;
  const Category ca = category(a), cb = category(b);
  if (ca < cb) return promote_slow(b, a);
  switch (ca) {
    case Category::Bool:
    case Category::Integral: return promote_integers(a, b);
    case Category::Floating:
      if (cb != Category::Floating) return a;
      if ((a == DType::Float16 && b == DType::BFloat16) || (a == DType::BFloat16 && b == DType::Float16))
        return DType::Float32;
      return item_size(a) >= item_size(b) ? a : b;
    case Category::Complex:
      return a == DType::Complex128 || b == DType::Complex128 || b == DType::Float64 ? DType::Complex128
                                                                                     : DType::Complex64;
  }
  return a;
}

using Lattice = std::array<std::array<DType, kDTypeCount>, kDTypeCount>;
const Lattice lattice = [] {
  Lattice table;
  for (int a = 0; a < kDTypeCount; ++a)
    for (int b = 0; b < kDTypeCount; ++b) table[a][b] = promote_slow(DType(a), DType(b));
  return table;
}();

}  // namespace

std::string_view name(DType d) noexcept { return is_custom(d) ? custom_name(d) : kNames[int(d)]; }
DType promote(DType a, DType b) {
  const DType common = lattice[int(a)][int(b)];
  check(common != kNone, ErrorKind::Runtime, "promotion of ",
        is_custom(a) || is_custom(b) ? "dtypes of plug-ins" : "float8 types", " is not supported, found ", name(a),
        " and ", name(b), "; convert one of them first");
  return common;
}
void refuse_float8(DType d) {
  fail(ErrorKind::NotImplemented, "not implemented for dtype ", name(d), "; convert with .to(taeda.float32) first");
}

bool can_cast(DType from, DType to) noexcept {
  const Category cf = category(from), ct = category(to);
  if (cf == Category::Bool) return true;
  return cf <= ct;
}

DType default_dtype() noexcept { return the_default.load(std::memory_order_relaxed); }
void set_default_dtype(DType d) {
  check(is_floating(d) && !is_float8(d), ErrorKind::Type,
        "set_default_dtype: argument 'dtype' must be a floating-point dtype, got ", name(d));
  the_default.store(d);
}

Half::Half(float value) noexcept {
  const uint32_t raw = std::bit_cast<uint32_t>(value);
  const uint32_t sign = (raw >> 16) & 0x8000u;
  const uint32_t magnitude = raw & 0x7fffffffu;
  if (magnitude > 0x7f800000u) {  // NaN keeps its top mantissa bits and stays quiet
    bits = uint16_t(sign | 0x7e00u | ((magnitude >> 13) & 0x3ffu));
  } else if (magnitude >= 0x477ff000u) {  // rounds to infinity
    bits = uint16_t(sign | 0x7c00u);
  } else if (magnitude < 0x38800000u) {  // subnormal: let the FPU round by adding a power of two
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    bits = uint16_t(sign | (std::bit_cast<uint32_t>(shifted) - 0x3f000000u));
  } else {
    const uint32_t rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1u);
    bits = uint16_t(sign | ((rounded - 0x38000000u) >> 13));
  }
}

Half::operator float() const noexcept {
  const uint32_t sign = uint32_t(bits & 0x8000u) << 16;
  const uint32_t magnitude = bits & 0x7fffu;
  if (magnitude >= 0x7c00u) return std::bit_cast<float>(sign | 0x7f800000u | ((magnitude & 0x3ffu) << 13));
  if (magnitude >= 0x0400u) return std::bit_cast<float>(sign | ((magnitude << 13) + 0x38000000u));
  const float value = float(magnitude) * 0x1p-24f;
  return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(value));
}

}  // namespace taeda
