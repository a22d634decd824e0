// Conversion between float32 and the floating-point numbers of 8 bits; other dtypes go by way of float32.
#include "taeda/float8.h"

#include <array>

#include "cpu/float8.h"

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

}  // namespace

Loop float8_from_float32(DType to) {
  return visit_float8(to, []<auto To, auto From>() -> Loop { return &narrow<To>; });
}
Loop float8_to_float32(DType from) {
  return visit_float8(from, []<auto To, auto From>() -> Loop { return &widen<From>; });
}

}  // namespace taeda::cpu
