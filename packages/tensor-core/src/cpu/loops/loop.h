// Inner-loop templates: contiguous and broadcast variants that the compiler vectorises, and a strided one.
#pragma once
#include <complex>
#include <cstdint>
#include <type_traits>

#include "taeda/elementwise.h"

#if defined(__AVX512F__) || defined(__AVX2__) || defined(__SSE4_2__)
#include <immintrin.h>
#endif

namespace taeda::loops::TAEDA_ISA {

template <class T> inline constexpr bool is_complex_v = std::is_same_v<T, Complex64> || std::is_same_v<T, Complex128>;
template <class T> inline constexpr bool is_half_v = std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;

template <class... Ts> struct Types {};
using SignedInts = Types<int8_t, int16_t, int32_t, int64_t>;
using Ints = Types<int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t>;
using BoolInts = Types<bool, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t>;
using Floats = Types<float, double>;
using Complexes = Types<Complex64, Complex128>;
using Inexact = Types<float, double, Complex64, Complex128>;
using Numbers = Types<int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t, float, double, Complex64, Complex128>;
using Ordered = Types<int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t, float, double>;
using BoolOrdered = Types<bool, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t, float, double>;
using All = Types<bool, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t, float, double, Complex64, Complex128>;

// F is a functor class template: constructed from the parameters, called on elements of type T.

template <template <class> class F, class T>
void unary_loop(char* const* p, const int64_t* s, int64_t n, const LoopParams* params) {
  const F<T> f(params);
  using R = decltype(f(T{}));
  if (s[0] == sizeof(R) && s[1] == sizeof(T)) {
    R* out = reinterpret_cast<R*>(p[0]);
    const T* a = reinterpret_cast<const T*>(p[1]);
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) out[i] = f(a[i]);
    return;
  }
  char* out = p[0];
  const char* a = p[1];
  for (int64_t i = 0; i < n; ++i, out += s[0], a += s[1]) *reinterpret_cast<R*>(out) = f(*reinterpret_cast<const T*>(a));
}

template <template <class> class F, class T>
void binary_loop(char* const* p, const int64_t* s, int64_t n, const LoopParams* params) {
  const F<T> f(params);
  using R = decltype(f(T{}, T{}));
  if (s[0] == sizeof(R) && n > 1) {
    R* out = reinterpret_cast<R*>(p[0]);
    const T* a = reinterpret_cast<const T*>(p[1]);
    const T* b = reinterpret_cast<const T*>(p[2]);
    if (s[1] == sizeof(T) && s[2] == sizeof(T)) {
#pragma GCC ivdep
      for (int64_t i = 0; i < n; ++i) out[i] = f(a[i], b[i]);
      return;
    }
    if (s[1] == sizeof(T) && s[2] == 0) {
      const T y = *b;
#pragma GCC ivdep
      for (int64_t i = 0; i < n; ++i) out[i] = f(a[i], y);
      return;
    }
    if (s[1] == 0 && s[2] == sizeof(T)) {
      const T x = *a;
#pragma GCC ivdep
      for (int64_t i = 0; i < n; ++i) out[i] = f(x, b[i]);
      return;
    }
  }
  char* out = p[0];
  const char* a = p[1];
  const char* b = p[2];
  for (int64_t i = 0; i < n; ++i, out += s[0], a += s[1], b += s[2])
    *reinterpret_cast<R*>(out) = f(*reinterpret_cast<const T*>(a), *reinterpret_cast<const T*>(b));
}

/// The first input is of type A (a condition, or T itself).
template <template <class> class F, class T, class A = T>
void ternary_loop(char* const* p, const int64_t* s, int64_t n, const LoopParams* params) {
  const F<T> f(params);
  using R = decltype(f(A{}, T{}, T{}));
  if (s[0] == sizeof(R) && s[1] == sizeof(A) && (s[2] == sizeof(T) || s[2] == 0) && (s[3] == sizeof(T) || s[3] == 0) && n > 1) {
    R* out = reinterpret_cast<R*>(p[0]);
    const A* a = reinterpret_cast<const A*>(p[1]);
    const T* b = reinterpret_cast<const T*>(p[2]);
    const T* c = reinterpret_cast<const T*>(p[3]);
    if (s[2] && s[3]) {
#pragma GCC ivdep
      for (int64_t i = 0; i < n; ++i) out[i] = f(a[i], b[i], c[i]);
    } else if (s[3]) {
      const T y = *b;
#pragma GCC ivdep
      for (int64_t i = 0; i < n; ++i) out[i] = f(a[i], y, c[i]);
    } else if (s[2]) {
      const T z = *c;
#pragma GCC ivdep
      for (int64_t i = 0; i < n; ++i) out[i] = f(a[i], b[i], z);
    } else {
      const T y = *b, z = *c;
#pragma GCC ivdep
      for (int64_t i = 0; i < n; ++i) out[i] = f(a[i], y, z);
    }
    return;
  }
  char* out = p[0];
  const char *a = p[1], *b = p[2], *c = p[3];
  for (int64_t i = 0; i < n; ++i, out += s[0], a += s[1], b += s[2], c += s[3])
    *reinterpret_cast<R*>(out) = f(*reinterpret_cast<const A*>(a), *reinterpret_cast<const T*>(b), *reinterpret_cast<const T*>(c));
}

template <template <class> class F, class... Ts>
constexpr LoopRow unary_row(Types<Ts...>) {
  LoopRow row;
  ((row.fn[int(dtype_of<Ts>)] = &unary_loop<F, Ts>), ...);
  return row;
}
template <template <class> class F, class... Ts>
constexpr LoopRow binary_row(Types<Ts...>) {
  LoopRow row;
  ((row.fn[int(dtype_of<Ts>)] = &binary_loop<F, Ts>), ...);
  return row;
}
template <template <class> class F, class... Ts>
constexpr LoopRow ternary_row(Types<Ts...>) {
  LoopRow row;
  ((row.fn[int(dtype_of<Ts>)] = &ternary_loop<F, Ts>), ...);
  return row;
}

}  // namespace taeda::loops::TAEDA_ISA
