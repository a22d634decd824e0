// Kernels of connectionist temporal classification.
#include "kernels/ctc.h"

#define TAEDA_FAMILY "ctc"

namespace taeda::cuda {

TAEDA_KERNEL(ctc_forward_f, CtcForward<float>)
TAEDA_KERNEL(ctc_forward_d, CtcForward<double>)
TAEDA_KERNEL(ctc_backward_f, CtcBackward<float>)
TAEDA_KERNEL(ctc_backward_d, CtcBackward<double>)
TAEDA_KERNEL(ctc_chains, CtcChains)
TAEDA_KERNEL(ctc_gradient_f, CtcGradient<float>)
TAEDA_KERNEL(ctc_gradient_d, CtcGradient<double>)

}  // namespace taeda::cuda
