// Kernels of windows.
#include "kernels/windows.h"

#define TAEDA_FAMILY "windows"

namespace taeda::cuda {

TAEDA_KERNEL(unfold, Unfold)
TAEDA_KERNEL(fold_columns_f, FoldColumns<float>)
TAEDA_KERNEL(fold_columns_d, FoldColumns<double>)
TAEDA_KERNEL(fold_columns_c, FoldColumns<Complex128>)
TAEDA_KERNEL(mean_pool, MeanPool)
TAEDA_KERNEL(mean_pool_backward, MeanPoolBackward)
TAEDA_KERNEL(max_pool_i, MaxPool<int64_t>)
TAEDA_KERNEL(max_pool_d, MaxPool<double>)
TAEDA_KERNEL(max_pool_backward, MaxPoolBackward)

}  // namespace taeda::cuda
