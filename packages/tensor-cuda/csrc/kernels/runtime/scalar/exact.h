// What stands in the place of the tensor core's scalar/exact.h when NVRTC compiles: functions of CUDA's library. Those
// of complex numbers, which chains have none of, are declared and not there.
#pragma once
#include "scalar/complex.h"

namespace taeda::loops::TAEDA_ISA {

TAEDA_HD inline double host(double x) { return x; }
template <class R>
TAEDA_HD Complex<R> host(Complex<R> z);
template <class T, class V>
TAEDA_HD inline T from_host(V v) {
  return T(v);
}

#define TAEDA_EXACT(NAME)                 \
  template <class T>                      \
  TAEDA_HD inline T exact_##NAME(T x) {   \
    static_assert(!is_complex_number<T>); \
    return T(::NAME(double(x)));          \
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
TAEDA_HD R exact_abs(Complex<R> z);
template <class R>
TAEDA_HD Complex<R> exact_quotient(Complex<R> a, Complex<R> b);

}  // namespace taeda::loops::TAEDA_ISA
