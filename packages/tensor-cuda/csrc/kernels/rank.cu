// Kernels of elements by their rank.
#include "kernels/rank.h"

#define TAEDA_FAMILY "rank"

namespace taeda::cuda {

TAEDA_KERNEL(rank_short_32, RankShort<uint32_t>)
TAEDA_KERNEL(rank_short_64, RankShort<uint64_t>)
TAEDA_KERNEL(rank_lines_32, RankLines<uint32_t, Sought>)
TAEDA_KERNEL(rank_lines_64, RankLines<uint64_t, Sought>)
TAEDA_KERNEL(first_of_lines_32, RankLines<uint32_t, FirstOfLines>)
TAEDA_KERNEL(first_of_lines_64, RankLines<uint64_t, FirstOfLines>)
TAEDA_KERNEL(rank_in_order, RankInOrder)
TAEDA_KERNEL(arrange_first, ArrangeFirst)

}  // namespace taeda::cuda
