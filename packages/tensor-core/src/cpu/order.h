// The total order that sorting and searching use: NaN after everything, halves by their float value.
#pragma once
#include <cmath>
#include <type_traits>

#include "taeda/dtype.h"
#include "taeda/error.h"

namespace taeda::cpu {

template <class T>
inline constexpr bool is_half = std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;

/// a before b in ascending order.
template <class T>
bool before(T a, T b) {
  if constexpr (is_half<T>) return before<float>(float(a), float(b));
  else if constexpr (std::is_floating_point_v<T>) return (a < b) | ((b != b) & (a == a));
  else return a < b;
}

/// Visits real dtypes; complex is refused by inference.
template <class Body>
void visit_ordered(DType dtype, const char* op, Body&& body) {
  visit_dtype(dtype, [&]<class T>() {
    if constexpr (std::is_same_v<T, Complex64> || std::is_same_v<T, Complex128>)
      fail(ErrorKind::Type, op, ": complex numbers have no order");
    else body.template operator()<T>();
  });
}

}  // namespace taeda::cpu
