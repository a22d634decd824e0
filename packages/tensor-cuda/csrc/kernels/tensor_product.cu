// Kernels of products of matrices on tensor cores.
#include "kernels/tensor_product.h"

#define TAEDA_FAMILY "tensor_product"

namespace taeda::cuda {

TAEDA_KERNEL(tensor_product_h, TensorProduct<Half>)
TAEDA_KERNEL(tensor_product_b, TensorProduct<BFloat16>)

}  // namespace taeda::cuda
