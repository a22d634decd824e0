// Conversion between float32 and the floating-point numbers of 8 bits; other dtypes go by way of float32.
#include "taeda/float8.h"

#include <array>
#include <utility>

#include "cpu/float8.h"
#include "taeda/custom_dtype.h"

namespace taeda::cpu {
namespace {

template <auto To>
void narrow(char* const* p, const int64_t* s, int64_t n, const LoopParams*) {
  if (s[0] == 1 && s[1] == int64_t(sizeof(float))) {
    auto* out = reinterpret_cast<uint8_t*>(p[0]);
    const auto* in = reinterpret_cast<const float*>(p[1]);
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) out[i] = To(in[i]);
    return;
  }
  for (int64_t i = 0; i < n; ++i)
    *reinterpret_cast<uint8_t*>(p[0] + i * s[0]) = To(*reinterpret_cast<const float*>(p[1] + i * s[1]));
}

template <auto From>
void widen(char* const* p, const int64_t* s, int64_t n, const LoopParams*) {
  static constexpr std::array<float, 256> values = [] {
    std::array<float, 256> all{};
    for (int code = 0; code < 256; ++code) all[size_t(code)] = From(uint8_t(code));
    return all;
  }();
  for (int64_t i = 0; i < n; ++i)
    *reinterpret_cast<float*>(p[0] + i * s[0]) = values[*reinterpret_cast<const uint8_t*>(p[1] + i * s[1])];
}

/// Loops are not told of dtypes: each place of a plug-in's format has its own pair, which looks the format up.
template <int Place>
void narrow_custom(char* const* p, const int64_t* s, int64_t n, const LoopParams*) {
  const CustomDType& format = custom_dtype(DType(Place));
  auto* out = reinterpret_cast<uint8_t*>(p[0]);
  const auto* in = reinterpret_cast<const float*>(p[1]);
  if (s[0] == 1 && s[1] == int64_t(sizeof(float))) return format.encode(in, out, n);
  for (int64_t i = 0; i < n; ++i)
    format.encode(reinterpret_cast<const float*>(p[1] + i * s[1]), reinterpret_cast<uint8_t*>(p[0] + i * s[0]), 1);
}
template <int Place>
void widen_custom(char* const* p, const int64_t* s, int64_t n, const LoopParams*) {
  const CustomDType& format = custom_dtype(DType(Place));
  auto* out = reinterpret_cast<float*>(p[0]);
  const auto* in = reinterpret_cast<const uint8_t*>(p[1]);
  if (s[0] == int64_t(sizeof(float)) && s[1] == 1) return format.decode(in, out, n);
  for (int64_t i = 0; i < n; ++i)
    format.decode(reinterpret_cast<const uint8_t*>(p[1] + i * s[1]), reinterpret_cast<float*>(p[0] + i * s[0]), 1);
}
struct Pair {
  Loop narrow, widen;
};
template <int... Place>
constexpr std::array<Pair, sizeof...(Place)> custom_loops(std::integer_sequence<int, Place...>) {
  return {Pair{&narrow_custom<kBuiltInDTypes + Place>, &widen_custom<kBuiltInDTypes + Place>}...};
}
constexpr auto kCustom = custom_loops(std::make_integer_sequence<int, kDTypeCount - kBuiltInDTypes>());
const Pair& custom(DType d) { return kCustom[size_t(d) - kBuiltInDTypes]; }

}  // namespace

Loop float8_from_float32(DType to) {
  if (is_custom(to)) return custom(to).narrow;
  return visit_float8(to, []<auto To, auto From>() -> Loop { return &narrow<To>; });
}
Loop float8_to_float32(DType from) {
  if (is_custom(from)) return custom(from).widen;
  return visit_float8(from, []<auto To, auto From>() -> Loop { return &widen<From>; });
}

}  // namespace taeda::cpu
