// Kernels of pooling.
#include "kernels/pool.h"

#define TAEDA_FAMILY "pool"

namespace taeda::cuda {

TAEDA_KERNEL(mean_pool_f, MeanPool<float>)
TAEDA_KERNEL(mean_pool_d, MeanPool<double>)
TAEDA_KERNEL(mean_pool_backward_f, MeanPoolBackward<float>)
TAEDA_KERNEL(mean_pool_backward_d, MeanPoolBackward<double>)
TAEDA_KERNEL(max_pool_i, MaxPool<int64_t>)
TAEDA_KERNEL(max_pool_f, MaxPool<float>)
TAEDA_KERNEL(max_pool_d, MaxPool<double>)
TAEDA_KERNEL(max_pool_backward_f, MaxPoolBackward<float>)
TAEDA_KERNEL(max_pool_backward_d, MaxPoolBackward<double>)

}  // namespace taeda::cuda
