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
template <class T>
TAEDA_HD inline T shift_left(T a, T b) {
  const T most = T(sizeof(T) * 8 - 1);
  const T shifted = T(a << (b & most));
  return (b < T(0)) | (b > most) ? T(0) : shifted;
}
template <class T>
TAEDA_HD inline T shift_right(T a, T b) {
  const T most = T(sizeof(T) * 8 - 1);
  const bool beyond = (b < T(0)) | (b > most);
  const T shifted = T(a >> (b & most)), sign = a < T(0) ? T(-1) : T(0);
  return beyond ? sign : shifted;
}
template <class T>
TAEDA_HD inline double size_of(T x) {
  if constexpr (is_complex_number<T>) return exact_abs(x);
  else return magnitude(x);
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
