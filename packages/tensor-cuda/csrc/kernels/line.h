// What the functors of lines are made of (kernels/functors.inc).
#pragma once
#include "kernels/elementwise.h"

namespace taeda::loops::TAEDA_ISA {

/// The numbers that a line may use.
template <class T>
struct LineNumbers {
  T p, q, r;
  const double* real;
  TAEDA_HD LineNumbers(const taeda::cuda::Number* n, const double* real)
      : p(n[0].as<T>()), q(n[1].as<T>()), r(n[2].as<T>()), real(real) {}
};
template <class V, class E>
TAEDA_HD inline auto line_result(E value) {
  if constexpr (is_same<E, bool> || is_complex_number<V>) return value;
  else return V(value);
}

TAEDA_HD inline bool holds(Always) { return true; }
TAEDA_HD inline bool holds(bool plain) { return plain; }

}  // namespace taeda::loops::TAEDA_ISA
