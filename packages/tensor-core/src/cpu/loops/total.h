// Running totals: the type in which they are kept, as what one step rounds stays in all later ones, and their products.
#pragma once
#include "taeda/dtype.h"

namespace taeda {

template <class T> struct TotalOf {
  using type = T;
};
template <> struct TotalOf<Half> {
  using type = double;
};
template <> struct TotalOf<BFloat16> {
  using type = double;
};
template <> struct TotalOf<float> {
  using type = double;
};
template <> struct TotalOf<Complex64> {
  using type = Complex128;
};
template <class T> using Total = typename TotalOf<T>::type;

/// The textbook's product, without the library's care for infinities of complex numbers. Always in line, since it is
/// compiled for several instruction sets.
template <class T>
[[gnu::always_inline]] inline T times(T a, T b) noexcept {
  if constexpr (requires { a.imag(); })
    return T(a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real());
  else return T(a * b);
}

}  // namespace taeda
