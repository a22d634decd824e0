// Gradients of special functions.
#include "taeda/autograd/formulas.h"

namespace taeda::formulas {

Tensor minus_ratio(const Tensor& value, const Tensor& above, const Tensor& below, double at_zero) {
  const Tensor zero = ops::eq(below, 0), safe = ops::where(zero, Tensor(1), below);
  return ops::where(zero, Tensor(at_zero), value - above / safe);
}

Tensor spherical_slope(const Tensor& x, const Tensor& result) {
  const Tensor zero = ops::eq(x, 0), safe = ops::where(zero, Tensor(1), x);
  return masked((ops::cos(x) - result) / safe, ops::logical_not(zero));
}

}  // namespace taeda::formulas
