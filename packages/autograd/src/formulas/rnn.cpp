// Gradients of fused recurrent cells.
#include "taeda/autograd/formulas.h"

namespace taeda::formulas {

Three lstm_gates_grads(TensorList grads, const Tensor& gates, const Tensor& c, const Tensor& c_out) {
  const auto [to_gates, to_c] = ops::lstm_gates_backward(grads[0], grads[1], gates, c, c_out);
  return {to_gates, to_gates, to_c};
}

}  // namespace taeda::formulas
