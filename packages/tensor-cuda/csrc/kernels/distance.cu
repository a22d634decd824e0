// Kernels of distances between rows.
#include "kernels/distance.h"

#define TAEDA_FAMILY "distance"

namespace taeda::cuda {

TAEDA_KERNEL(distances_f, Distances<float>)
TAEDA_KERNEL(distances_d, Distances<double>)
TAEDA_KERNEL(pair_distances_f, PairDistances<float>)
TAEDA_KERNEL(pair_distances_d, PairDistances<double>)
TAEDA_KERNEL(distance_gradient_f, DistanceGradient<float>)
TAEDA_KERNEL(distance_gradient_d, DistanceGradient<double>)

}  // namespace taeda::cuda
