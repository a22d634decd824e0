// Kernels of windows.
#include "kernels/windows.h"

#define TAEDA_FAMILY "windows"

namespace taeda::cuda {

TAEDA_KERNEL(unfold, Unfold)
TAEDA_KERNEL(fold_columns_i, FoldColumns<int64_t>)
TAEDA_KERNEL(fold_columns_f, FoldColumns<float>)
TAEDA_KERNEL(fold_columns_d, FoldColumns<double>)
TAEDA_KERNEL(fold_columns_c, FoldColumns<Complex128>)

}  // namespace taeda::cuda
