// Kernels of searches and draws.
#include "kernels/search.h"

#define TAEDA_FAMILY "search"

namespace taeda::cuda {

TAEDA_KERNEL(search_i, Search<int64_t>)
TAEDA_KERNEL(search_u, Search<uint64_t>)
TAEDA_KERNEL(search_d, Search<double>)
TAEDA_KERNEL(race, Race)
TAEDA_KERNEL(draw_places, DrawPlaces)
TAEDA_KERNEL(check_weights, CheckWeights)

}  // namespace taeda::cuda
