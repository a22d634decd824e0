// Floating-point numbers of 8 bits: their formats, conversions, and what operators do with them.
//
// Formats: "FP8 Formats for Deep Learning" (Micikevicius et al., 2022) for e4m3fn and e5m2, "8-bit Numerical Formats
// for Deep Neural Networks" (Noune et al., 2022) for the fnuz ones, which have neither infinities nor a negative zero,
// and OCP's "Microscaling Formats" (2023) for e8m0fnu, which has nothing but an exponent.
#pragma once
#include "taeda/dtype.h"

namespace taeda {

/// Sign, exponent and mantissa in one byte.
struct Float8Format {
  int mantissa;       // bits
  int bias;           // of the exponent
  uint32_t largest;   // code of the largest finite number
  uint32_t overflow;  // what is beyond it
  uint32_t nan;
  bool unsigned_zero;  // one zero, and one NaN in the place of the negative one
};
inline constexpr Float8Format kFloat8Formats[] = {
    {3, 7, 0x7e, 0x7e, 0x7f, false},   // e4m3fn: saturates
    {2, 15, 0x7b, 0x7c, 0x7f, false},  // e5m2: has infinities
    {3, 8, 0x7f, 0x80, 0x80, true},    // e4m3fnuz
    {2, 16, 0x7f, 0x80, 0x80, true},   // e5m2fnuz
};

/// The nearest number of the format, ties to even.
template <Float8Format F>
constexpr uint8_t to_float8(float value) noexcept {
  const uint32_t raw = std::bit_cast<uint32_t>(value), magnitude = raw & 0x7fffffffu, sign = (raw >> 24) & 0x80u;
  constexpr int dropped = 23 - F.mantissa;
  // Below the smallest normal number the processor rounds, by adding a power of two whose last place is theirs.
  constexpr uint32_t shift = uint32_t(127 + 24 - F.bias - F.mantissa) << 23, smallest = uint32_t(128 - F.bias) << 23;
  const uint32_t tiny = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + std::bit_cast<float>(shift)) - shift;
  const uint32_t half = (uint32_t(1) << (dropped - 1)) - 1 + ((magnitude >> dropped) & 1);
  const uint32_t normal = ((magnitude + half) >> dropped) - (uint32_t(127 - F.bias) << F.mantissa);
  uint32_t code = magnitude < smallest ? tiny : normal;
  code = code > F.largest ? F.overflow : code;
  code = magnitude > 0x7f800000u ? F.nan : code;
  if constexpr (F.unsigned_zero) return uint8_t(code - 1 < 0x7f ? code | sign : code);
  return uint8_t(code | sign);
}

template <Float8Format F>
constexpr float from_float8(uint8_t code) noexcept {
  const uint32_t sign = uint32_t(code & 0x80) << 24, magnitude = code & 0x7fu;
  if (F.unsigned_zero && code == F.nan) return std::bit_cast<float>(0x7fc00000u);
  if (!F.unsigned_zero && magnitude > F.overflow) return std::bit_cast<float>(sign | 0x7fc00000u);
  if (!F.unsigned_zero && magnitude > F.largest) return std::bit_cast<float>(sign | 0x7f800000u);
  if (magnitude >> F.mantissa)
    return std::bit_cast<float>(sign | ((magnitude << (23 - F.mantissa)) + (uint32_t(127 - F.bias) << 23)));
  const float least = std::bit_cast<float>(uint32_t(128 - F.bias - F.mantissa) << 23);
  return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(float(magnitude) * least));
}

/// e8m0fnu: a power of two; the sign is lost.
constexpr uint8_t to_exponent8(float value) noexcept {
  const uint32_t magnitude = std::bit_cast<uint32_t>(value) & 0x7fffffffu;
  if (magnitude >= 0x7f800000u) return 0xff;
  return uint8_t((magnitude + 0x3fffffu + (magnitude >= 0x00800000u)) >> 23);
}
constexpr float from_exponent8(uint8_t code) noexcept {
  return std::bit_cast<float>(code == 0xff ? 0x7fc00000u : code == 0 ? 0x00400000u : uint32_t(code) << 23);
}

/// Calls `body.template operator()<to, from>()` with the two conversions of a float8.
template <class Body>
decltype(auto) visit_float8(DType d, Body&& body) {
  switch (d) {
    case DType::Float8E4M3fn:
      return body.template operator()<&to_float8<kFloat8Formats[0]>, &from_float8<kFloat8Formats[0]>>();
    case DType::Float8E5M2:
      return body.template operator()<&to_float8<kFloat8Formats[1]>, &from_float8<kFloat8Formats[1]>>();
    case DType::Float8E4M3fnuz:
      return body.template operator()<&to_float8<kFloat8Formats[2]>, &from_float8<kFloat8Formats[2]>>();
    case DType::Float8E5M2fnuz:
      return body.template operator()<&to_float8<kFloat8Formats[3]>, &from_float8<kFloat8Formats[3]>>();
    default: return body.template operator()<&to_exponent8, &from_exponent8>();
  }
}

}  // namespace taeda
