// Kernels of elements by their rank.
#include "kernels/rank.h"

#define TAEDA_FAMILY "rank"

namespace taeda::cuda {

TAEDA_KERNEL(rank_short_32, RankShort<uint32_t>)
TAEDA_KERNEL(rank_short_64, RankShort<uint64_t>)
TAEDA_KERNEL(rank_lines_32, RankLines<uint32_t>)
TAEDA_KERNEL(rank_lines_64, RankLines<uint64_t>)
TAEDA_KERNEL(rank_in_order, RankInOrder)

}  // namespace taeda::cuda
