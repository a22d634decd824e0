// What stands in the place of the tensor core's scalar/exact.h when nvcc compiles for devices: its library's functions.
#pragma once
#include <cuda/std/complex>

#include "scalar/complex.h"

namespace taeda::loops::TAEDA_ISA {

/// As the library takes it; float32 goes through float64, and so does complex64.
TAEDA_HD inline double host(double x) { return x; }
template <class R>
TAEDA_HD inline ::cuda::std::complex<R> host(Complex<R> z) {
  return {z.re, z.im};
}
template <class T, class V>
TAEDA_HD inline T from_host(V v) {
  if constexpr (is_complex_number<T>) return T(v.real(), v.imag());
  else return T(v);
}

#define TAEDA_EXACT(NAME)                                                                \
  template <class T>                                                                     \
  TAEDA_HD inline T exact_##NAME(T x) {                                                  \
    if constexpr (is_complex_number<T>) return from_host<T>(::cuda::std::NAME(host(x))); \
    else return T(::NAME(double(x)));                                                    \
  }
TAEDA_EXACT(acos)
TAEDA_EXACT(acosh)
TAEDA_EXACT(asin)
TAEDA_EXACT(asinh)
TAEDA_EXACT(atan)
TAEDA_EXACT(atanh)
TAEDA_EXACT(cos)
TAEDA_EXACT(cosh)
TAEDA_EXACT(exp)
TAEDA_EXACT(log)
TAEDA_EXACT(log10)
TAEDA_EXACT(sin)
TAEDA_EXACT(sinh)
TAEDA_EXACT(sqrt)
TAEDA_EXACT(tan)
TAEDA_EXACT(tanh)
#undef TAEDA_EXACT

TAEDA_HD inline float exact_hypot(float a, float b) { return ::hypotf(a, b); }
TAEDA_HD inline double exact_hypot(double a, double b) { return ::hypot(a, b); }
TAEDA_HD inline double log_gamma_of(double x) { return ::lgamma(x); }
template <class R>
TAEDA_HD inline R exact_abs(Complex<R> z) {
  return R(::hypot(double(z.re), double(z.im)));
}
template <class R>
TAEDA_HD inline Complex<R> exact_quotient(Complex<R> a, Complex<R> b) {
  return from_host<Complex<R>>(host(a) / host(b));
}

}  // namespace taeda::loops::TAEDA_ISA
