// The type in which running totals are kept: what one step rounds stays in all later ones.
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

}  // namespace taeda
