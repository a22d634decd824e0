// Kernels of copies that turn matrices.
#include "kernels/transpose.h"

#define TAEDA_FAMILY "transpose"

namespace taeda::cuda {

TAEDA_KERNEL(transpose_1, Transpose<1>)
TAEDA_KERNEL(transpose_2, Transpose<2>)
TAEDA_KERNEL(transpose_4, Transpose<4>)
TAEDA_KERNEL(transpose_8, Transpose<8>)
TAEDA_KERNEL(transpose_16, Transpose<16>)

}  // namespace taeda::cuda
