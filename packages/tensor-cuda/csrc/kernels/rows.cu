// Kernels of whole rows, and of optimizers.
#include "kernels/rows.h"

#define TAEDA_FAMILY "rows"

namespace taeda::cuda {

TAEDA_KERNEL(softmax_f, Softmax<float>)
TAEDA_KERNEL(softmax_d, Softmax<double>)
TAEDA_KERNEL(softmax_backward_f, SoftmaxBackward<float>)
TAEDA_KERNEL(softmax_backward_d, SoftmaxBackward<double>)
TAEDA_KERNEL(layer_norm_f, LayerNorm<float>)
TAEDA_KERNEL(layer_norm_d, LayerNorm<double>)
TAEDA_KERNEL(adam_f, StepOfMany<AdamStep<float>>)
TAEDA_KERNEL(adam_d, StepOfMany<AdamStep<double>>)
TAEDA_KERNEL(adam_c, StepOfMany<AdamStep<Complex128>>)
TAEDA_KERNEL(sgd_f, StepOfMany<SgdStep<float>>)
TAEDA_KERNEL(sgd_d, StepOfMany<SgdStep<double>>)
TAEDA_KERNEL(sgd_c, StepOfMany<SgdStep<Complex128>>)

}  // namespace taeda::cuda
