// The total order that sorting and searching use: NaN after everything.
#pragma once
#include <cmath>
#include <type_traits>

#include "taeda/dtype.h"
#include "taeda/error.h"

namespace taeda::cpu {

template <class T>
inline constexpr bool is_half = std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;

/// The rank of a half among all of them, by its bits: -0 and +0 have one, and so have all NaNs, the last.
template <class T>
uint16_t half_rank(T value) {
  constexpr uint16_t infinity = std::is_same_v<T, Half> ? 0x7c00 : 0x7f80;
  const uint16_t size = uint16_t(value.bits & 0x7fff), bits = size ? value.bits : uint16_t(0);
  return size > infinity ? uint16_t(0xffff) : uint16_t(bits & 0x8000 ? ~bits : bits | 0x8000);
}

/// a before b in ascending order.
template <class T>
bool before(T a, T b) {
  if constexpr (std::is_same_v<T, Half>) return half_rank(a) < half_rank(b);
  else if constexpr (is_half<T>) return before<float>(float(a), float(b));  // a shift, which vectorises
  else if constexpr (std::is_floating_point_v<T>) return (a < b) | ((b != b) & (a == a));
  else return a < b;
}

/// Visits real dtypes; complex is refused by inference.
template <class Body>
void visit_ordered(DType dtype, const char* op, Body&& body) {
  visit_dtype(dtype, [&]<class T>() {
    if constexpr (std::is_same_v<T, Complex64> || std::is_same_v<T, Complex128>)
      fail(ErrorKind::Type, op, ": complex numbers have no order");
    else body.template operator()<T>();
  });
}

}  // namespace taeda::cpu
