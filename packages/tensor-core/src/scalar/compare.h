// Functions of the compare family's lines.
#pragma once
#include "scalar/exact.h"

namespace taeda::loops::TAEDA_ISA {

template <class T>
TAEDA_HD inline T bit_not(T x) {
  // As a byte, which vectorises where bool does not.
  if constexpr (is_same<T, bool>) return bit_cast<uint8_t>(x) == 0;
  else return T(~x);
}
template <class T>
TAEDA_HD inline bool infinite(T x) {
  if constexpr (is_complex_number<T>) return infinite(x.re) | infinite(x.im);
  else return magnitude(x) == kInfinity<T>;
}
template <class T>
TAEDA_HD inline bool finite(T x) {
  if constexpr (is_complex_number<T>) return finite(x.re) & finite(x.im);
  else return magnitude(x) < kInfinity<T>;
}
template <class T>
TAEDA_HD inline bool negative(T x) {
  if constexpr (is_real<T>) return sign_bit(x);
  else return x < T(0);
}
/// a moved by the lowest bits of b: short integers by constants, as the least instruction set has no vectors of others.
template <bool kLeft, class T>
TAEDA_HD inline T moved(T a, T b) {
  if constexpr (sizeof(T) > 2) {
    const T by = T(b & T(sizeof(T) * 8 - 1));
    return kLeft ? T(a << by) : T(a >> by);
  } else {
    a = T(b & 1) ? T(kLeft ? a << 1 : a >> 1) : a;
    a = T(b & 2) ? T(kLeft ? a << 2 : a >> 2) : a;
    a = T(b & 4) ? T(kLeft ? a << 4 : a >> 4) : a;
    if constexpr (sizeof(T) == 2) a = T(b & 8) ? T(kLeft ? a << 8 : a >> 8) : a;
    return a;
  }
}
template <class T>
TAEDA_HD inline T shift_left(T a, T b) {
  const T most = T(sizeof(T) * 8 - 1), shifted = moved<true>(a, b);
  return (b < T(0)) | (b > most) ? T(0) : shifted;
}
template <class T>
TAEDA_HD inline T shift_right(T a, T b) {
  const T most = T(sizeof(T) * 8 - 1);
  const bool beyond = (b < T(0)) | (b > most);
  const T shifted = moved<false>(a, b), sign = a < T(0) ? T(-1) : T(0);
  return beyond ? sign : shifted;
}
template <class T>
TAEDA_HD inline double size_of(T x) {
  if constexpr (is_complex_number<T>) {
    const double squares = double(x.re) * x.re + double(x.im) * x.im;
    return squares > 0x1p-900 && squares < 0x1p1000 ? std::sqrt(squares) : exact_abs(x);
  } else {
    return magnitude(x);
  }
}
template <class T>
TAEDA_HD inline bool is_close(T a, T b, double relative, double absolute, bool equal_nan) {
  if (a == b) return true;
  if constexpr (is_real<T> || is_complex_number<T>) {
    if (a != a || b != b) return equal_nan && a != a && b != b;
    const double gap = size_of(a - b);
    return std::isfinite(gap) && gap <= absolute + std::abs(relative * size_of(b));
  } else {
    const double x = double(a), y = double(b);
    return std::abs(x - y) <= absolute + std::abs(relative * y);
  }
}

}  // namespace taeda::loops::TAEDA_ISA
