// Gradients of fused recurrent cells. The activated gates are results with history: a gradient that arrives there is
// beyond the fused operators.
#include "taeda/autograd/formulas.h"
#include "taeda/decompose/recurrent.h"
#include "taeda/half.h"

namespace taeda::formulas {

Three lstm_gates_grads(TensorList grads, const Tensor& gates, const Tensor& c, const Tensor& c_out) {
  const auto [to_gates, to_c] = grads[2].defined() ? decompose::lstm_step(grads[0], grads[1], grads[2], gates, c, c_out)
                                                   : ops::lstm_gates_backward(grads[0], grads[1], gates, c, c_out);
  return {to_gates, to_gates, to_c};
}

Three gru_gates_grads(TensorList grads, const Tensor& gates, const Tensor& h) {
  return grads[1].defined() ? decompose::gru_step(grads[0], grads[1], gates, h)
                            : ops::gru_gates_backward(grads[0], gates, h);
}

Five lstm_sequence_grads(TensorList grads, const Tensor& h, const Tensor& c, const Tensor& w_hh, const Tensor& output,
                         const Tensor& gates, const Tensor& cells, bool reverse) {
  if (grads[3].defined() || grads[4].defined())
    return from_float32(decompose::lstm_steps(in_float32(grads), in_float32(h), in_float32(c), in_float32(w_hh),
                                              in_float32(output), gates, cells, reverse),
                        w_hh.dtype());
  return ops::lstm_sequence_backward(grads[0], grads[1], grads[2], h, c, w_hh, output, gates, cells, reverse);
}

}  // namespace taeda::formulas
