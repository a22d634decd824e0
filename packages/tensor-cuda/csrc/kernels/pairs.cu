// Kernels of losses of pairs of numbers.
#include "kernels/pairs.h"

#define TAEDA_FAMILY "pairs"

namespace taeda::cuda {

TAEDA_KERNEL(pair_losses_f, PairLosses<float>)
TAEDA_KERNEL(pair_losses_d, PairLosses<double>)
TAEDA_KERNEL(sum_pair_losses_f, SumPairLosses<float>)
TAEDA_KERNEL(sum_pair_losses_d, SumPairLosses<double>)
TAEDA_KERNEL(join_pair_losses, JoinPairLosses)
TAEDA_KERNEL(pair_slopes_f, PairSlopes<float>)
TAEDA_KERNEL(pair_slopes_d, PairSlopes<double>)

}  // namespace taeda::cuda
