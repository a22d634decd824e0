// Kernels beside factors of matrices.
#include "kernels/factor.h"

#define TAEDA_FAMILY "factor"

namespace taeda::cuda {

TAEDA_KERNEL(determinant_d, Determinant<double>)
TAEDA_KERNEL(determinant_c, Determinant<Complex128>)
TAEDA_KERNEL(small_lu_f, SmallLu<float>)
TAEDA_KERNEL(small_lu_d, SmallLu<double>)
TAEDA_KERNEL(small_lu_c, SmallLu<Complex128>)
TAEDA_KERNEL(small_systems_f, SmallSystems<float>)
TAEDA_KERNEL(small_systems_d, SmallSystems<double>)
TAEDA_KERNEL(small_systems_c, SmallSystems<Complex128>)
TAEDA_KERNEL(triangular_block_f, TriangularBlock<float>)
TAEDA_KERNEL(triangular_block_d, TriangularBlock<double>)
TAEDA_KERNEL(triangular_block_c, TriangularBlock<Complex128>)
TAEDA_KERNEL(places, Places)
TAEDA_KERNEL(pivots, Pivots)

}  // namespace taeda::cuda
