// The host library's functions: values where those without branches do not reach, and functions that have no such form.
// This is the part of scalar arithmetic that a compiler for devices replaces by its own library.
#pragma once
#include <complex>

#include "scalar/complex.h"

namespace taeda::loops::TAEDA_ISA {

/// As the library takes it; float32 goes through float64.
inline double host(double x) { return x; }
template <class R>
inline std::complex<R> host(Complex<R> z) {
  return {z.re, z.im};
}
template <class T, class V>
inline T from_host(V v) {
  if constexpr (is_complex_number<T>) return T(v.real(), v.imag());
  else return T(v);
}

#define TAEDA_EXACT(NAME, EXPRESSION)   \
  template <class T>                    \
  inline T exact_##NAME(T x) {          \
    const auto v = host(x);             \
    using V = decltype(v);              \
    return from_host<T>(V(EXPRESSION)); \
  }
TAEDA_EXACT(acos, std::acos(v))
TAEDA_EXACT(acosh, std::acosh(v))
TAEDA_EXACT(asin, std::asin(v))
TAEDA_EXACT(asinh, std::asinh(v))
TAEDA_EXACT(atan, std::atan(v))
TAEDA_EXACT(atanh, std::atanh(v))
TAEDA_EXACT(cos, std::cos(v))
TAEDA_EXACT(cosh, std::cosh(v))
TAEDA_EXACT(exp, std::exp(v))
TAEDA_EXACT(log, std::log(v))
TAEDA_EXACT(log10, std::log10(v))
TAEDA_EXACT(sin, std::sin(v))
TAEDA_EXACT(sinh, std::sinh(v))
TAEDA_EXACT(sqrt, std::sqrt(v))
TAEDA_EXACT(tan, std::tan(v))
TAEDA_EXACT(tanh, std::tanh(v))
#undef TAEDA_EXACT

template <class R>
inline R exact_hypot(R a, R b) {
  return std::hypot(a, b);
}
/// The function that knows no global sign.
inline double log_gamma_of(double x) {
  int sign;
  return lgamma_r(x, &sign);
}
template <class R>
inline R exact_abs(Complex<R> z) {
  return std::abs(host(z));
}
template <class R>
inline Complex<R> exact_quotient(Complex<R> a, Complex<R> b) {
  return from_host<Complex<R>>(host(a) / host(b));
}

}  // namespace taeda::loops::TAEDA_ISA
