// Gradients of recurrent steps in differentiable operators. Their activated gates are results too, so a gradient may
// arrive there as well.
#pragma once
#include <tuple>

#include "taeda/tensor.h"

namespace taeda::decompose {

/// Of the sum of the gates and of c. Each of the first three may be undefined, but not both of `grad_h` and `grad_c`.
TAEDA_API std::tuple<Tensor, Tensor> lstm_step(const Tensor& grad_h, const Tensor& grad_c, const Tensor& grad_gates,
                                               const Tensor& gates, const Tensor& c, const Tensor& c_out);
/// Of input_gates, hidden_gates and h. `grad` or `grad_gates` may be undefined.
TAEDA_API std::tuple<Tensor, Tensor, Tensor> gru_step(const Tensor& grad, const Tensor& grad_gates, const Tensor& gates,
                                                      const Tensor& h);
/// Of input_gates, h, c, w_hh and b_hh; `grads` are of output, h, c, gates and cells, where any may be undefined.
TAEDA_API std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor> lstm_steps(TensorList grads, const Tensor& h,
                                                                        const Tensor& c, const Tensor& w_hh,
                                                                        const Tensor& output, const Tensor& gates,
                                                                        const Tensor& cells, bool reverse);

}  // namespace taeda::decompose
