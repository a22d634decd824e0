// Conversion between any two dtypes.
#include <algorithm>
#include <bit>

#include "cpu/loops/types.h"
#include "cpu/loops/cast.h"

namespace taeda::loops::TAEDA_ISA {
namespace {

inline float widen(Half h) {
  // Exponent and mantissa move into place; a multiplication by 2^112 rebuilds the exponent, subnormals included.
  const uint32_t magnitude = uint32_t(h.bits & 0x7fff) << 13, sign = uint32_t(h.bits & 0x8000) << 16;
  const float scaled = std::bit_cast<float>(magnitude) * std::bit_cast<float>(0x77800000u);
  const uint32_t special = magnitude >= 0x0f800000u ? magnitude | 0x7f800000u : std::bit_cast<uint32_t>(scaled);
  return std::bit_cast<float>(special | sign);
}
inline float widen(BFloat16 b) { return std::bit_cast<float>(uint32_t(b.bits) << 16); }

inline Half narrow_half(float value) {
  const uint32_t raw = std::bit_cast<uint32_t>(value), sign = (raw >> 16) & 0x8000u, magnitude = raw & 0x7fffffffu;
  const uint32_t nan = 0x7e00u | ((magnitude >> 13) & 0x3ffu);
  const uint32_t tiny = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - 0x3f000000u;
  const uint32_t normal = (magnitude + 0xfffu + ((magnitude >> 13) & 1u) - 0x38000000u) >> 13;
  const uint32_t bits = magnitude > 0x7f800000u    ? nan
                        : magnitude >= 0x477ff000u ? 0x7c00u
                        : magnitude < 0x38800000u  ? tiny
                                                   : normal;
  Half h;
  h.bits = uint16_t(bits | sign);
  return h;
}
inline BFloat16 narrow_bfloat(float value) {
  const uint32_t raw = std::bit_cast<uint32_t>(value);
  BFloat16 b;
  b.bits = (raw & 0x7fffffffu) > 0x7f800000u ? uint16_t((raw >> 16) | 0x40)
                                             : uint16_t((raw + 0x7fffu + ((raw >> 16) & 1)) >> 16);
  return b;
}

/// A bool as a byte, of which all but 0 are true: see Note [Bytes of truth values].
enum class Truth : uint8_t {};

template <class To, class From>
inline To convert(From v) {
  if constexpr (std::is_same_v<To, From>) return v;
  else if constexpr (std::is_same_v<From, Truth>)
    return convert<To, uint8_t>(std::min(uint8_t(v), uint8_t(1)));  // vectorises
  else if constexpr (is_half_v<From>) return convert<To, float>(widen(v));
  else if constexpr (is_complex_v<To> && is_complex_v<From>)
    return To(typename To::value_type(v.real()), typename To::value_type(v.imag()));
  else if constexpr (is_complex_v<To>) return To(convert<typename To::value_type>(v), 0);
  else if constexpr (std::is_same_v<To, bool>) return v != From(0);
  else if constexpr (is_complex_v<From>) return convert<To>(v.real());
  else if constexpr (std::is_same_v<To, Half>) return narrow_half(float(v));
  else if constexpr (std::is_same_v<To, BFloat16>) return narrow_bfloat(float(v));
  // Through a wide signed integer: negative numbers wrap in unsigned types instead of being undefined.
  else if constexpr (std::is_same_v<To, uint64_t> && std::is_floating_point_v<From>)
    return v >= From(9223372036854775808.0) ? uint64_t(int64_t(v - From(9223372036854775808.0))) ^ (uint64_t(1) << 63)
                                            : uint64_t(int64_t(v));
  else if constexpr (std::is_integral_v<To> && sizeof(To) <= 2 && std::is_floating_point_v<From>) return To(int32_t(v));
  else if constexpr (std::is_same_v<To, uint32_t> && std::is_floating_point_v<From>) return To(int64_t(v));
  else return To(v);
}

/// Integers of one size, whose bits are the same whatever the sign.
template <size_t Size>
using Bytes = std::conditional_t<
    Size == 1, int8_t,
    std::conditional_t<Size == 2, int16_t,
                       std::conditional_t<Size == 4, int32_t, std::conditional_t<Size == 8, int64_t, Complex128>>>>;

template <class To, class From>
void loop(char* const* p, const int64_t* s, int64_t n, const LoopParams*) {
  if (std::is_same_v<To, From> && s[0] == sizeof(To) && s[1] == -int64_t(sizeof(From))) {
    To* const out = reinterpret_cast<To*>(p[0]);
    const From* const last = reinterpret_cast<const From*>(p[1]) - (n - 1);
    for (int64_t i = 0; i < n; ++i) out[i] = convert<To>(last[n - 1 - i]);
    return;
  }
  if (s[0] == sizeof(To) && s[1] == sizeof(From)) {
    To* out = reinterpret_cast<To*>(p[0]);
    const From* in = reinterpret_cast<const From*>(p[1]);
    int64_t i = 0;
#ifdef __AVX512F__
    if constexpr (std::is_same_v<To, float> && std::is_same_v<From, Half>)
      for (; i + 16 <= n; i += 16)
        _mm512_storeu_ps(out + i, _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(in + i))));
    if constexpr (std::is_same_v<To, Half> && std::is_same_v<From, float>)
      for (; i + 16 <= n; i += 16)
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + i), _mm512_cvtps_ph(_mm512_loadu_ps(in + i), 0));
#endif
#ifdef __F16C__
    if constexpr (std::is_same_v<To, float> && std::is_same_v<From, Half>)
      for (; i + 8 <= n; i += 8)
        _mm256_storeu_ps(out + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(in + i))));
    if constexpr (std::is_same_v<To, Half> && std::is_same_v<From, float>)
      for (; i + 8 <= n; i += 8)
        _mm_storeu_si128(reinterpret_cast<__m128i*>(out + i), _mm256_cvtps_ph(_mm256_loadu_ps(in + i), 0));
#endif
#pragma GCC ivdep
    for (; i < n; ++i) out[i] = convert<To>(in[i]);
    return;
  }
  if (s[0] == sizeof(To) && s[1] == 0) {
    // As an integer, since structures are not stored by vectors.
    using Whole = Bytes<sizeof(To)>;
    Whole* const out = reinterpret_cast<Whole*>(p[0]);
    const Whole value = std::bit_cast<Whole>(convert<To>(*reinterpret_cast<const From*>(p[1])));
    for (int64_t i = 0; i < n; ++i) out[i] = value;
    return;
  }
  char* out = p[0];
  const char* in = p[1];
  for (int64_t i = 0; i < n; ++i, out += s[0], in += s[1])
    *reinterpret_cast<To*>(out) = convert<To>(*reinterpret_cast<const From*>(in));
}

template <class T> inline constexpr bool is_integer = std::is_integral_v<T> && !std::is_same_v<T, bool>;
/// Pairs that share a loop: copies go by size, as do integers that lose or keep their bits.
template <class To, class From>
constexpr Loop shared_loop() {
  if constexpr (std::is_same_v<To, From>) return &loop<Bytes<sizeof(To)>, Bytes<sizeof(To)>>;
  else if constexpr (std::is_same_v<From, bool>) return &loop<To, Truth>;
  else if constexpr (is_integer<To> && is_integer<From> && sizeof(To) <= sizeof(From))
    return &loop<Bytes<sizeof(To)>, Bytes<sizeof(From)>>;
  else if constexpr (is_integer<To> && is_integer<From>) return &loop<Bytes<sizeof(To)>, From>;
  else return &loop<To, From>;
}
/// What has loops for every instruction set; others are converted by those of the base one.
template <class T> inline constexpr bool frequent = std::is_same_v<T, bool> || std::is_same_v<T, uint8_t> ||
                                                    std::is_same_v<T, int32_t> || std::is_same_v<T, int64_t> ||
                                                    is_half_v<T> || std::is_floating_point_v<T>;
/// Samples of sound and quantized weights, which become numbers to compute with and come from them.
template <class T> inline constexpr bool sample = std::is_same_v<T, int8_t> || std::is_same_v<T, int16_t>;
template <class T> inline constexpr bool computed = std::is_same_v<T, float> || is_half_v<T>;
template <class To, class From>
constexpr Loop loop_here() {
  if constexpr (everything || std::is_same_v<To, From> || (frequent<To> && frequent<From>) ||
                (sample<To> && computed<From>) || (computed<To> && sample<From>))
    return shared_loop<To, From>();
  else return nullptr;
}

template <class To>
struct Row {
  template <class... From>
  static constexpr void fill(Loop (&row)[kDTypeCount], Types<From...>) {
    ((row[int(dtype_of<From>)] = loop_here<To, From>()), ...);
  }
};
using Every = Types<bool, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t, Half, BFloat16,
                    float, double, Complex64, Complex128>;

template <class... To>
constexpr CastTable make(Types<To...>) {
  CastTable grid{};
  (Row<To>::fill(grid.rows[int(dtype_of<To>)], Every{}), ...);
  return grid;
}

}  // namespace

constinit const CastTable cast = make(Every{});

}  // namespace taeda::loops::TAEDA_ISA
