// The total order that sorting and searching use: NaN after everything. What loops use is always in line, since they
// are compiled for several instruction sets.
#pragma once
#include <bit>
#include <cmath>
#include <type_traits>

#include "taeda/dtype.h"
#include "taeda/error.h"

namespace taeda::cpu {

template <class T>
inline constexpr bool is_half = std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;

/// The rank of a half among all of them, by its bits: -0 and +0 have one, and so have all NaNs, the last.
template <class T>
[[gnu::always_inline]] inline uint16_t half_rank(T value) {
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

/// Unsigned integers in the same order as the values, so that one sort serves all dtypes of a width: NaN is the
/// largest, -0 and +0 are equal.
template <class T>
[[gnu::always_inline]] inline auto order_key(const T& value) {
  if constexpr (is_half<T>) {
    return half_rank(value);
  } else if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>) {
    using U = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
    constexpr int last = sizeof(U) * 8 - 1;
    const U bits = std::bit_cast<U>(value + T(0));  // without branches, which random signs would mislead
    const U key = bits ^ (U(U(0) - (bits >> last)) | U(1) << last);
    return value != value ? U(~U(0)) : key;
  } else if constexpr (std::is_same_v<T, bool>) {
    return uint8_t(std::bit_cast<uint8_t>(value) != 0);  // where it lies: see Note [Bytes of truth values]
  } else {
    using U = std::make_unsigned_t<T>;
    return std::is_signed_v<T> ? U(U(value) ^ (U(1) << (sizeof(U) * 8 - 1))) : U(value);
  }
}
template <class T> using KeyOf = decltype(order_key(T()));
/// What order_key gives, inverted where the largest come first.
template <class T>
[[gnu::always_inline]] inline KeyOf<T> key_of(const T& value, bool descending) {
  const KeyOf<T> key = order_key(value);
  return descending ? KeyOf<T>(~key) : key;
}

/// Visits real dtypes; complex is refused by inference.
template <class Body>
void visit_ordered(DType dtype, const char* op, Body&& body) {
  visit_dtype(dtype, [&]<class T>() {
    if constexpr (std::is_same_v<T, Complex64> || std::is_same_v<T, Complex128>)
      fail(ErrorKind::NotImplemented, op, ": complex numbers have no order");
    else body.template operator()<T>();
  });
}

}  // namespace taeda::cpu
