// Kernels of pooling.
#include "kernels/pool.h"

#define TAEDA_FAMILY "pool"

namespace taeda::cuda {

TAEDA_KERNEL(mean_pool_i, MeanPool<int64_t>)
TAEDA_KERNEL(mean_pool_f, MeanPool<float>)
TAEDA_KERNEL(mean_pool_d, MeanPool<double>)
TAEDA_KERNEL(mean_pool_backward_f, MeanPoolBackward<float>)
TAEDA_KERNEL(mean_pool_backward_d, MeanPoolBackward<double>)
TAEDA_KERNEL(max_pool_i, MaxPoolPlaces<int64_t>)
TAEDA_KERNEL(max_pool_u, MaxPoolPlaces<uint64_t>)
TAEDA_KERNEL(max_pool_f, MaxPoolPlaces<float>)
TAEDA_KERNEL(max_pool_d, MaxPoolPlaces<double>)
TAEDA_KERNEL(max_pool_backward_f, MaxPoolPlacesBackward<float>)
TAEDA_KERNEL(max_pool_backward_d, MaxPoolPlacesBackward<double>)
TAEDA_KERNEL(max_offsets_i, MaxPoolOffsets<int64_t>)
TAEDA_KERNEL(max_offsets_u, MaxPoolOffsets<uint64_t>)
TAEDA_KERNEL(max_offsets_f, MaxPoolOffsets<float>)
TAEDA_KERNEL(max_offsets_d, MaxPoolOffsets<double>)
TAEDA_KERNEL(max_offsets_backward_f, MaxPoolOffsetsBackward<float>)
TAEDA_KERNEL(max_offsets_backward_d, MaxPoolOffsetsBackward<double>)
TAEDA_KERNEL(max_pool_cells, MaxPoolCells<false>)
TAEDA_KERNEL(max_offsets_cells, MaxPoolCells<true>)

}  // namespace taeda::cuda
