// Functions of the activation family's lines.
#pragma once
#include "scalar/math.h"

namespace taeda::loops::TAEDA_ISA {

template <class T>
TAEDA_HD inline T tanh_of_softplus(T x) {
  // tanh(log(1 + e)) = (e^2 + 2e) / (e^2 + 2e + 2)
  const T e = vexp(x > T(20) ? T(20) : x), n = e * (e + T(2));
  return n / (n + T(2));
}
/// log(1 + exp(x)), however large x is.
template <class T>
TAEDA_HD inline T softplus_of(T x) {
  return (x < T(0) ? T(0) : x) + vlog1p_of_small(vexp(-magnitude(x)));
}
/// Without a branch about the exponential, which would keep the loop from vectorising.
template <class T>
TAEDA_HD inline T elu_of(T x, T size, T slope, T rate) {
  const bool above = x > T(0);
  const T below = vexpm1((above ? T(0) : x) * rate);
  return above ? x * slope : below * size;
}
template <class T>
TAEDA_HD inline T relu6(T x) {
  x = x < T(0) ? T(0) : x;
  return x > T(6) ? T(6) : x;
}
template <class T>
TAEDA_HD inline T gelu_by_tanh(T x) {
  return T(0.5) * x * (T(1) + vtanh(T(0.79788456080286535588) * (x + T(0.044715) * x * x * x)));
}
template <class T>
TAEDA_HD inline T gelu_slope(T g, T x) {
  const Normal<T> n = normal(x);
  return g * (n.below + x * n.density);
}
template <class T>
TAEDA_HD inline T gelu_by_tanh_slope(T g, T x) {
  const T b = T(0.79788456080286535588), c = T(0.044715);
  const T t = vtanh(b * (x + c * x * x * x));
  return g * (T(0.5) * (T(1) + t) + T(0.5) * x * (T(1) - t * t) * b * (T(1) + T(3) * c * x * x));
}
template <class T>
TAEDA_HD inline T silu_slope(T g, T x) {
  const T s = vsigmoid(x);
  return g * s * (T(1) + x * (T(1) - s));
}
template <class T>
TAEDA_HD inline T mish_slope(T g, T x) {
  const T t = tanh_of_softplus(x);
  return g * (t + x * vsigmoid(x) * (T(1) - t * t));
}

}  // namespace taeda::loops::TAEDA_ISA
