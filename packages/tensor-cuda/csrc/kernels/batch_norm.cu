// Kernels of normalisation over a batch.
#include "kernels/batch_norm.h"

#define TAEDA_FAMILY "batch_norm"

namespace taeda::cuda {

using MomentsF = Moments<float>;
using MomentsD = Moments<double>;
using SlopesF = Slopes<float>;
using SlopesD = Slopes<double>;

TAEDA_KERNEL(tile_moments_f, FoldTiles<MomentsF, float>)
TAEDA_KERNEL(tile_moments_d, FoldTiles<MomentsD, double>)
TAEDA_KERNEL(tile_slopes_f, FoldTiles<SlopesF, float>)
TAEDA_KERNEL(tile_slopes_d, FoldTiles<SlopesD, double>)
TAEDA_KERNEL(plane_moments_f, FoldPlanes<MomentsF, float>)
TAEDA_KERNEL(plane_moments_d, FoldPlanes<MomentsD, double>)
TAEDA_KERNEL(plane_slopes_f, FoldPlanes<SlopesF, float>)
TAEDA_KERNEL(plane_slopes_d, FoldPlanes<SlopesD, double>)
TAEDA_KERNEL(statistics_f, BatchStatistics<float>)
TAEDA_KERNEL(statistics_d, BatchStatistics<double>)
TAEDA_KERNEL(kept_statistics_f, KeptStatistics<float>)
TAEDA_KERNEL(kept_statistics_d, KeptStatistics<double>)
TAEDA_KERNEL(slope_means_f, SlopeMeans<float>)
TAEDA_KERNEL(slope_means_d, SlopeMeans<double>)
TAEDA_KERNEL(normalise_channels_f, NormaliseChannels<float>)
TAEDA_KERNEL(normalise_channels_d, NormaliseChannels<double>)
TAEDA_KERNEL(normalise_tiles_f, NormaliseTiles<float>)
TAEDA_KERNEL(normalise_tiles_d, NormaliseTiles<double>)

}  // namespace taeda::cuda
