// Functions of the arith family's lines.
#pragma once
#include "scalar/exact.h"
#include "scalar/log_add.h"
#include "scalar/power.h"

namespace taeda::loops::TAEDA_ISA {

template <class T>
TAEDA_HD inline auto absolute(T x) {
  if constexpr (is_real<T>) return magnitude(x);
  else return T(x < T(0) ? -x : x);
}
/// In float64, where squares of float32 numbers neither overflow nor vanish.
TAEDA_HD inline float hypotenuse(float a, float b) {
  const double x = double(a), y = double(b);
  const float root = float(sqrt(x * x + y * y));
  return (magnitude(a) == kInfinity<float>) | (magnitude(b) == kInfinity<float>) ? kInfinity<float> : root;
}
TAEDA_HD inline double hypotenuse(double a, double b) { return wide_abs({a, b}); }
template <class R>
TAEDA_HD inline R absolute(Complex<R> z) {
  return hypotenuse(z.re, z.im);
}
TAEDA_HD inline Always hypot_plain(float, float) { return {}; }
TAEDA_HD inline bool hypot_plain(double a, double b) { return moderate(Wide(a, b)); }
template <class T>
TAEDA_HD inline auto abs_plain(T x) {
  if constexpr (is_complex_number<T>) return hypot_plain(x.re, x.im);
  else return Always();
}

template <class T>
TAEDA_HD inline auto divide_plain(T a, T b) {
  if constexpr (is_complex_number<T>) return quotient_plain(a, b);
  else return Always();
}
template <class T>
TAEDA_HD inline T divide(T a, T b) {
  if constexpr (is_complex_number<T>) return quotient(a, b);
  else return a / b;
}

template <class T>
TAEDA_HD inline auto sqrt_plain(T x) {
  if constexpr (is_complex_number<T>) return moderate(x);
  else return Always();
}
template <class T>
TAEDA_HD inline T sqrt_of(T x) {
  if constexpr (is_complex_number<T>) return narrow<typename T::Real>(wide_sqrt(wide(x)));
  else return sqrt(x);
}
template <class T>
TAEDA_HD inline T rsqrt_of(T x) {
  if constexpr (is_complex_number<T>) {
    const Wide root = wide_sqrt(wide(x));
    const double scale = 1.0 / (root.re * root.re + root.im * root.im);
    return narrow<typename T::Real>({root.re * scale, (0.0 - root.im) * scale});
  } else {
    return T(1) / sqrt(x);
  }
}

template <class T>
TAEDA_HD inline T sign_of(T x) {
  if constexpr (is_complex_number<T>) {
    const auto size = absolute(x);
    return {x.re / size, x.im / size};
  } else if constexpr (is_same<T, bool>) {
    return x;
  } else {
    return T(T(x > T(0)) - T(x < T(0)));
  }
}
template <class R>
TAEDA_HD inline Complex<R> exact_sign(Complex<R> x) {
  return x == Complex<R>(0) ? x : from_host<Complex<R>>(host(x) / abs(host(x)));
}

template <class T>
TAEDA_HD inline T larger(T a, T b) {
  if constexpr (is_real<T>) return a > b || a != a ? a : b;
  else if constexpr (is_same<T, bool>) return a | b;  // which vectorises
  else return a > b ? a : b;
}
template <class T>
TAEDA_HD inline T smaller(T a, T b) {
  if constexpr (is_real<T>) return a < b || a != a ? a : b;
  else if constexpr (is_same<T, bool>) return a & b;
  else return a < b ? a : b;
}
/// Of a number and NaN the number.
template <class T>
TAEDA_HD inline T larger_number(T a, T b) {
  if constexpr (is_real<T>) return a > b || b != b ? a : b;
  else return larger(a, b);
}
template <class T>
TAEDA_HD inline T smaller_number(T a, T b) {
  if constexpr (is_real<T>) return a < b || b != b ? a : b;
  else return smaller(a, b);
}
template <class T>
TAEDA_HD inline T bounded(T x, T low, T high) {
  x = x < low ? low : x;
  return x > high ? high : x;
}
/// From the nearer end, so that weight 1 gives `b` exactly.
template <class T>
TAEDA_HD inline T interpolated(T a, T b, T weight) {
  if constexpr (is_complex_number<T>) return a + weight * (b - a);
  else return weight < T(0.5) ? a + weight * (b - a) : b - (b - a) * (T(1) - weight);
}

/// Integers that are numbers of float64, all of them.
template <class T> inline constexpr bool is_short = !is_real<T> && sizeof(T) <= 4;
/// Where quotients of real numbers are not too large, and of integers below 2^50.
template <class T>
TAEDA_HD inline auto division_plain(T a, T b) {
  constexpr uint64_t half = uint64_t(1) << 50;
  if constexpr (is_real<T>) return bool(magnitude(a) < T(exact_quotient_limit) * magnitude(b));
  else if constexpr (is_same<T, int64_t>)
    return bool((uint64_t(a) + half < 2 * half) & (uint64_t(b) + half < 2 * half) & (b != 0));
  else if constexpr (is_short<T>) return bool(b != T(0));
  else return Always();
}
/// An integer below 2^51 as a number and back, by the low bits of what is large enough: any vectors can.
template <class T>
TAEDA_HD inline double from_whole(T x) {
  if constexpr (is_short<T>) return double(x);
  constexpr double magic = Format<double>::magic;
  return bit_cast<double>(uint64_t(x) + bit_cast<uint64_t>(magic)) - magic;
}
TAEDA_HD inline int64_t to_whole(double x) {
  constexpr double magic = Format<double>::magic;
  return int64_t(bit_cast<uint64_t>(x + magic) - bit_cast<uint64_t>(magic));
}
// No quotient of such integers is so near to a whole number that rounding would reach it.
template <class T>
TAEDA_HD inline T whole_floor_divide(T a, T b) {
  return T(to_whole(floor(from_whole(a) / from_whole(b))));
}
template <class T>
TAEDA_HD inline T whole_remainder(T a, T b) {
  const double x = from_whole(a), y = from_whole(b);
  return T(to_whole(x - floor(x / y) * y));
}
template <class T>
TAEDA_HD inline T whole_fmod(T a, T b) {
  const double x = from_whole(a), y = from_whole(b);
  return T(to_whole(x - trunc(x / y) * y));
}
template <class T>
TAEDA_HD inline T exact_fmod(T a, T b) {
  if constexpr (is_real<T>) return std::fmod(a, b);
  else if constexpr (is_signed_integer<T>) return b == T(-1) ? T(0) : T(a % b);
  else return T(a % b);
}
template <class T>
TAEDA_HD inline T exact_remainder(T a, T b) {
  if constexpr (is_same<T, float>) return float(exact_remainder(double(a), double(b)));
  const T rest = exact_fmod(a, b);
  if constexpr (is_real<T> || is_signed_integer<T>)
    return rest != T(0) && (rest < T(0)) != (b < T(0)) ? T(rest + b) : rest;
  else return rest;
}
template <class T>
TAEDA_HD inline T exact_floor_divide(T a, T b) {
  if constexpr (is_same<T, float>) {
    return float(exact_floor_divide(double(a), double(b)));
  } else if constexpr (is_real<T>) {
    if (b == T(0)) return a / b;
    const T rest = std::fmod(a, b);
    T quotient = (a - rest) / b;
    if (rest != T(0) && (b < T(0)) != (rest < T(0))) quotient -= T(1);
    if (quotient == T(0)) return with_sign_of(T(0), a / b);
    const T down = floor(quotient);
    return quotient - down > T(0.5) ? down + T(1) : down;
  } else if constexpr (is_signed_integer<T>) {
    if (b == T(-1)) return T(-a);  // the lowest number wraps instead of trapping
    const T quotient = T(a / b);
    return T(quotient - ((a % b != 0) && ((a < 0) != (b < 0))));
  } else {
    return T(a / b);
  }
}
#define TAEDA_DIVISION(NAME, FAST, WHOLE, EXACT)                               \
  template <class T>                                                           \
  TAEDA_HD inline T NAME(T a, T b) {                                           \
    if constexpr (is_real<T>) return T(FAST(double(a), double(b)));            \
    else if constexpr (is_same<T, int64_t> || is_short<T>) return WHOLE(a, b); \
    else return EXACT(a, b);                                                   \
  }
TAEDA_DIVISION(fmod_of, vfmod, whole_fmod, exact_fmod)
TAEDA_DIVISION(remainder_of, vremainder, whole_remainder, exact_remainder)
TAEDA_DIVISION(floor_divide_of, vfloor_divide, whole_floor_divide, exact_floor_divide)
#undef TAEDA_DIVISION
template <class T>
TAEDA_HD inline T trunc_divide_of(T a, T b) {
  if constexpr (is_real<T>) return trunc(a / b);
  else if constexpr (is_signed_integer<T>) return b == T(-1) ? T(-a) : T(a / b);
  else return T(a / b);
}

template <class T>
TAEDA_HD inline T power(T a, T b) {
  if constexpr (is_real<T>) {
    return vpow(a, b);
  } else if constexpr (is_complex_number<T>) {
    return b == T(0) ? T(1) : from_host<T>(pow(host(a), host(b)));
  } else {
    if constexpr (is_signed_integer<T>)
      if (b < 0) return a == T(1) ? T(1) : a == T(-1) ? (b & 1 ? T(-1) : T(1)) : T(0);
    T result = 1;
    for (; b; b = T(b >> 1)) {
      if (b & 1) result = T(result * a);
      a = T(a * a);
    }
    return result;
  }
}
/// The neighbour of `a` on the side of `b`: numbers of one sign are ordered as their bits are.
template <class T>
TAEDA_HD inline T next_after(T a, T b) {
  const Bits<T> from = bit_cast<Bits<T>>(a);
  const bool away = (a < b) == (a > T(0));  // from zero
  const T least = with_sign_of(bit_cast<T>(Bits<T>(1)), b), next = bit_cast<T>(away ? from + 1 : from - 1);
  const T moved = a == T(0) ? least : next;
  return (a != a) | (b != b) ? a + b : a == b ? b : moved;
}
template <class T>
TAEDA_HD inline T x_log_y(T x, T y) {
  return y != y ? y : x == T(0) ? T(0) : x * std::log(y);
}
template <class T>
TAEDA_HD inline T add_quotient(T x, T a, T b) {
  if constexpr (is_complex_number<T>) return x + exact_quotient(a, b);
  else return x + a / b;
}
/// Of complex numbers the one with the larger real part is taken out; the angle of infinite ones is that of the sum of
/// their directions.
template <class R>
TAEDA_HD inline Complex<R> log_add_exp(Complex<R> a, Complex<R> b) {
  const Wide high = wide(a.re > b.re ? a : b), low = wide(a.re > b.re ? b : a);
  if (a != a || b != b) return {R(NAN), R(NAN)};
  if (std::isinf(high.re) && high.re == low.re) {
    if (high.re < 0) return narrow<R>(low);
    return narrow<R>({high.re, std::atan2(std::sin(high.im) + std::sin(low.im), std::cos(high.im) + std::cos(low.im))});
  }
  const double size = std::exp(low.re - high.re), turn = low.im - high.im;
  const Wide e = size == 0 ? Wide(0.0) : Wide(size * std::cos(turn), size * std::sin(turn));
  return narrow<R>(high + Wide(0.5 * std::log1p(2.0 * e.re + size * size), std::atan2(e.im, 1.0 + e.re)));
}
template <class T>
TAEDA_HD inline T greatest_divisor(T a, T b) {
  // Magnitudes without sign, so that the lowest number has one.
  uint64_t x = a < 0 ? -uint64_t(a) : uint64_t(a), y = b < 0 ? -uint64_t(b) : uint64_t(b);
  while (y) {
    const uint64_t rest = x % y;
    x = y;
    y = rest;
  }
  return T(x);
}
template <class T>
TAEDA_HD inline T least_multiple(T a, T b) {
  const T g = greatest_divisor(a, b);
  if (g == 0) return 0;
  const T m = T(T(a / g) * b);
  return m < 0 ? T(-m) : m;
}

}  // namespace taeda::loops::TAEDA_ISA
