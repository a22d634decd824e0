// Kernels of cross entropy, and of recurrent cells.
#include "kernels/loss.h"

#define TAEDA_FAMILY "loss"

namespace taeda::cuda {

TAEDA_KERNEL(cross_entropy_f, CrossEntropy<float>)
TAEDA_KERNEL(cross_entropy_d, CrossEntropy<double>)
TAEDA_KERNEL(join_losses_f, JoinLosses<float>)
TAEDA_KERNEL(join_losses_d, JoinLosses<double>)
TAEDA_KERNEL(cross_entropy_gradient_f, CrossEntropyGradient<float>)
TAEDA_KERNEL(cross_entropy_gradient_d, CrossEntropyGradient<double>)
TAEDA_KERNEL(nll_losses_f, NllLosses<float>)
TAEDA_KERNEL(nll_losses_d, NllLosses<double>)
TAEDA_KERNEL(nll_gradient_f, NllGradient<float>)
TAEDA_KERNEL(nll_gradient_d, NllGradient<double>)
TAEDA_KERNEL(lstm_gates_f, LstmGates<float>)
TAEDA_KERNEL(lstm_gates_d, LstmGates<double>)
TAEDA_KERNEL(lstm_gates_gradient_f, LstmGatesGradient<float>)
TAEDA_KERNEL(lstm_gates_gradient_d, LstmGatesGradient<double>)
TAEDA_KERNEL(gru_gates_f, GruGates<float>)
TAEDA_KERNEL(gru_gates_d, GruGates<double>)
TAEDA_KERNEL(gru_gates_gradient_f, GruGatesGradient<float>)
TAEDA_KERNEL(gru_gates_gradient_d, GruGatesGradient<double>)

}  // namespace taeda::cuda
