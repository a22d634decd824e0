// Kernels of random numbers, and of ranges.
#include "kernels/random.h"

#define TAEDA_FAMILY "random"

namespace taeda::cuda {

TAEDA_KERNEL(set_numbers, SetNumbers)
TAEDA_KERNEL(uniform, DrawUniform)
TAEDA_KERNEL(random_integers, DrawIntegers)
TAEDA_KERNEL(bernoulli, DrawTruths)
TAEDA_KERNEL(dropout_f, Dropout<float>)
TAEDA_KERNEL(dropout_d, Dropout<double>)
TAEDA_KERNEL(normal, DrawNormal)
TAEDA_KERNEL(exponential, DrawExponential)
TAEDA_KERNEL(cauchy, DrawCauchy)
TAEDA_KERNEL(trials, DrawTrials)
TAEDA_KERNEL(poisson, DrawPoisson)
TAEDA_KERNEL(arange, FillRange)

}  // namespace taeda::cuda
