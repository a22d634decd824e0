// What scalar arithmetic is written with: in C++ alone, so that compilers for devices take the same text.
#pragma once
// Compilers for devices define TAEDA_HD, TAEDA_TABLE, and TAEDA_FREESTANDING where there is no standard library.
#ifndef TAEDA_HD
#define TAEDA_HD
#endif
#ifndef TAEDA_TABLE
#define TAEDA_TABLE inline constexpr
#endif

#ifndef TAEDA_FREESTANDING
#include <cmath>
#include <cstdint>
#endif

namespace taeda::loops::TAEDA_ISA {

#ifndef TAEDA_FREESTANDING
using std::ceil;
using std::floor;
using std::fma;
using std::nearbyint;
using std::sqrt;
using std::trunc;
#endif

template <class A, class B> inline constexpr bool is_same = false;
template <class A> inline constexpr bool is_same<A, A> = true;
template <class T> inline constexpr bool is_real = is_same<T, float> || is_same<T, double>;
template <class T> inline constexpr bool is_signed_integer = !is_real<T> && T(-1) < T(0);

/// The domain of an expression that is right everywhere.
struct Always {};

template <class To, class From>
TAEDA_HD inline constexpr To bit_cast(From value) {
  return __builtin_bit_cast(To, value);
}

template <class T> inline constexpr T kInfinity = T(__builtin_inf());
template <class T> inline constexpr T kNan = T(__builtin_nan(""));

/// How numbers of a floating-point type are laid out, and constants that go with it.
template <class T>
struct Format;
template <>
struct Format<float> {
  using Bits = uint32_t;
  static constexpr int mantissa = 23, bias = 127;
  static constexpr float smallest = 0x1p-126f;
  static constexpr float magic = 0x1.8p23f;                    // adding it leaves a rounded integer in the low bits
  static constexpr float power_magic = magic + bias;           // and this a number's biased exponent
  static constexpr float two_powers_magic = magic + 2 * bias;  // and this the sum of two of them
  static constexpr float ln2_high = 0x1.62ep-1f, ln2_low = 0x1.0bfbe8e7bcd5ep-15f;
  static constexpr float exp_min = -110.f, exp_max = 90.f;
};
template <>
struct Format<double> {
  using Bits = uint64_t;
  static constexpr int mantissa = 52, bias = 1023;
  static constexpr double smallest = 0x1p-1022;
  static constexpr double magic = 0x1.8p52, power_magic = magic + bias, two_powers_magic = magic + 2 * bias;
  static constexpr double ln2_high = 0x1.62e42fefp-1, ln2_low = 0x1.473de6af278edp-34;
  static constexpr double exp_min = -760., exp_max = 720.;
};
template <class T> using Bits = typename Format<T>::Bits;

template <class T>
TAEDA_HD inline T with_sign_of(T magnitude, T sign) {
  constexpr Bits<T> top = Bits<T>(1) << (sizeof(T) * 8 - 1);
  return bit_cast<T>((bit_cast<Bits<T>>(magnitude) & ~top) | (bit_cast<Bits<T>>(sign) & top));
}
template <class T>
TAEDA_HD inline T magnitude(T x) {
  return bit_cast<T>(bit_cast<Bits<T>>(x) & ~(Bits<T>(1) << (sizeof(T) * 8 - 1)));
}
template <class T>
TAEDA_HD inline bool sign_bit(T x) {
  return bit_cast<Bits<T>>(x) >> (sizeof(T) * 8 - 1);
}

}  // namespace taeda::loops::TAEDA_ISA
