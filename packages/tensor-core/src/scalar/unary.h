// Functions of the unary family's lines.
#pragma once
#include "scalar/arith.h"
#include "scalar/bessel.h"
#include "scalar/cylinder.h"
#include "scalar/error.h"
#include "scalar/gamma.h"
#include "scalar/normal.h"
#include "scalar/special.h"

namespace taeda::loops::TAEDA_ISA {

TAEDA_HD inline float tan_value(float x) { return vtan(x); }
TAEDA_HD inline double tan_value(double x) { return tan_precise(x); }
/// A function of real numbers x and of complex ones z.
#define TAEDA_FUNCTION(NAME, REAL, COMPLEX)     \
  template <class T>                            \
  TAEDA_HD inline T NAME(T x) {                 \
    if constexpr (is_complex_number<T>) {       \
      const Wide z = wide(x);                   \
      return narrow<typename T::Real>(COMPLEX); \
    } else {                                    \
      return T(REAL);                           \
    }                                           \
  }
/// The same where complex numbers are left to the host's library.
#define TAEDA_REAL_FUNCTION(NAME, REAL, COMPLEX)        \
  template <class T>                                    \
  TAEDA_HD inline T NAME(T x) {                         \
    if constexpr (is_complex_number<T>) return COMPLEX; \
    else return T(REAL);                                \
  }
/// Where a function of complex numbers is right; that of real ones is everywhere.
#define TAEDA_DOMAIN(NAME, COMPLEX)                     \
  template <class T>                                    \
  TAEDA_HD inline auto NAME(T x) {                      \
    if constexpr (is_complex_number<T>) return COMPLEX; \
    else return Always();                               \
  }
// In float64 for float32 too, where it says so: results are then right to half an ulp.
TAEDA_REAL_FUNCTION(acos_of, vacos(x), exact_acos(x))
TAEDA_REAL_FUNCTION(acosh_of, vacosh(double(x)), exact_acosh(x))
TAEDA_REAL_FUNCTION(asin_of, vasin(x), exact_asin(x))
TAEDA_REAL_FUNCTION(asinh_of, vasinh(double(x)), exact_asinh(x))
TAEDA_REAL_FUNCTION(atan_of, vatan(x), exact_atan(x))
TAEDA_REAL_FUNCTION(atanh_of, vatanh(x), exact_atanh(x))
TAEDA_FUNCTION(cos_of, vcos(x), wide_cos(z))
TAEDA_FUNCTION(cosh_of, vcosh(x), wide_cos(turned(z)))
TAEDA_FUNCTION(exp_of, vexp(x), wide_exp(z))
TAEDA_FUNCTION(exp2_of, vexp2(x), wide_exp({z.re * 0.69314718055994530942, z.im * 0.69314718055994530942}))
TAEDA_FUNCTION(expm1_of, exact_expm1(x), wide_exp(z) - Wide(1.0))
TAEDA_FUNCTION(log_of, vlog(x), wide_log(z))
TAEDA_FUNCTION(log10_of, vlog10(x), 0.43429448190325182765 * wide_log(z))
TAEDA_FUNCTION(log1p_of, vlog1p(x), wide_log(Wide(1.0) + z))
TAEDA_FUNCTION(log2_of, vlog2(x), 1.44269504088896340736 * wide_log(z))
TAEDA_FUNCTION(sigmoid_of, vsigmoid(x), wide_sigmoid(z))
TAEDA_FUNCTION(sin_of, vsin(x), wide_sin(z))
TAEDA_FUNCTION(sinh_of, vsinh(x), turned_back(wide_sin(turned(z))))
TAEDA_FUNCTION(tan_of, tan_value(x), turned_back(wide_tanh(turned(z))))
TAEDA_FUNCTION(tanh_of, vtanh(x), wide_tanh(z))
TAEDA_DOMAIN(exp_domain, exp_plain(x))
TAEDA_DOMAIN(log_domain, log_plain(x))
TAEDA_DOMAIN(sigmoid_domain, sigmoid_plain(x))
TAEDA_DOMAIN(tanh_domain, tanh_plain(x))
#undef TAEDA_FUNCTION
#undef TAEDA_REAL_FUNCTION
#undef TAEDA_DOMAIN

/// Sines and cosines.
template <class T>
TAEDA_HD inline bool sin_domain(T x) {
  if constexpr (is_complex_number<T>) return sin_plain(x);
  else if constexpr (is_same<T, float>) return !(magnitude(x) > single_turn_limit);
  else return !(magnitude(x) > trig_limit);
}
/// Beyond it: of float32 numbers by float64, as far as that goes.
template <class T>
TAEDA_HD inline T sin_beyond(T x) {
  if constexpr (is_same<T, float>)
    if (magnitude(x) < float(trig_limit)) return float(vsin(double(x)));
  return exact_sin(x);
}
template <class T>
TAEDA_HD inline T cos_beyond(T x) {
  if constexpr (is_same<T, float>)
    if (magnitude(x) < float(trig_limit)) return float(vcos(double(x)));
  return exact_cos(x);
}
template <class T>
TAEDA_HD inline bool tan_domain(T x) {
  if constexpr (is_complex_number<T>) return tanh_plain(T(-x.im, x.re));
  else return !(magnitude(x) > T(trig_limit));
}
template <class R>
TAEDA_HD inline Complex<R> exact_exp2(Complex<R> x) {
  return exact_exp(R(0.69314718055994530942) * x);
}
template <class R>
TAEDA_HD inline Complex<R> exact_log2(Complex<R> x) {
  return R(1.44269504088896340736) * exact_log(x);
}

template <class T>
TAEDA_HD inline auto argument(T x) {
  if constexpr (is_complex_number<T>) return vatan2(x.im, x.re);
  else return x != x ? x : x < T(0) ? T(kPi) : T(0);
}
template <class R>
TAEDA_HD inline Complex<R> conjugate(Complex<R> x) {
  return {x.re, -x.im};
}
template <class T>
TAEDA_HD inline T log_gamma(T x) {
  if constexpr (is_same<T, float>) return vlgamma(x);
  else return x >= 8 && x < 1e300 ? stirling_precise(x) : log_gamma_of(x);
}
template <class T>
TAEDA_HD inline T sinc_of(T x) {
  if (x == T(0)) return T(1);
  if constexpr (is_complex_number<T>) {
    const auto y = host(x) * typename T::Real(kPi);
    return from_host<T>(sin(y) / y);
  } else {
    // Without the half turns, whose rounding would be an error beside small sines.
    const double turns = double(x), whole = std::nearbyint(turns), half = 0.5 * whole, y = kPi * (turns - whole);
    const double sign = half == std::nearbyint(half) ? 1 : -1;
    if constexpr (is_same<T, float>) return T(sign * vsin(y) / (kPi * turns));
    const Pair pi{3.141592653589793, 1.2246467991473532e-16}, angle = pi * (turns - whole);
    const Pair sine = ordered_sum(std::sin(angle.high), std::cos(angle.high) * angle.low);
    return T(sign * rounded(sine / (pi * turns)));
  }
}
/// Of float32 numbers everywhere.
template <class T>
TAEDA_HD inline auto erfinv_domain(T x) {
  if constexpr (is_same<T, float>) return Always();
  else return magnitude(x) <= kCentral;
}
TAEDA_HD inline double erfinv_of(double x) { return rounded(central_slope(x) * x); }
/// `low` below zero: no bounds.
template <class T>
TAEDA_HD inline T logit_of(T x, T low) {
  const T high = T(1) - low, bounded = x < low ? low : x > high ? high : x;
  const T y = low >= T(0) ? bounded : x;
  if constexpr (is_same<T, float>) {
    const double odds = double(y) / (1.0 - double(y));
    return log_of_single(log2_core(odds) * 0.69314718055994530942, float(odds));
  }
  // Around a half the numerator is exact, so that nothing is lost where the result is small. Zero has no sign here.
  const bool below = y < T(0.5);
  const T size = vlog1p((below ? T(1) - T(2) * y : T(2) * y - T(1)) / (below ? y + T(0) : T(1) - y));
  return below ? -size : size;
}
template <class T>
TAEDA_HD inline T rounded(T x, T scale, bool divide) {
  return divide ? nearbyint(x / scale) * scale : nearbyint(x * scale) / scale;
}
template <class T>
TAEDA_HD inline T with_numbers_for(T x, T nan, T high, T low) {
  if constexpr (is_complex_number<T>)
    return {with_numbers_for(x.re, nan.re, high.re, low.re), with_numbers_for(x.im, nan.re, high.re, low.re)};
  else return x != x ? nan : x == kInfinity<T> ? high : x == -kInfinity<T> ? low : x;
}

}  // namespace taeda::loops::TAEDA_ISA
