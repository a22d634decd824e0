// Kernels of products of matrices.
#include "kernels/matrix.h"

#define TAEDA_FAMILY "matrix"

namespace taeda::cuda {

TAEDA_KERNEL(product_i, MatrixProduct<int64_t>)
TAEDA_KERNEL(product_b, MatrixProduct<bool>)
TAEDA_KERNEL(product_f, MatrixProduct<float>)
TAEDA_KERNEL(product_d, MatrixProduct<double>)
TAEDA_KERNEL(product_c, MatrixProduct<Complex128>)

}  // namespace taeda::cuda
