// Kernels of variances and norms.
#include "kernels/reduce.h"

#define TAEDA_FAMILY "moments"

namespace taeda::cuda {

#define TAEDA_FOLD(NAME, ...)                           \
  TAEDA_KERNEL(NAME##_each, FoldEach<__VA_ARGS__>)      \
  TAEDA_KERNEL(NAME##_block, FoldBlock<__VA_ARGS__, 1>) \
  TAEDA_KERNEL(NAME##_short, FoldBlock<__VA_ARGS__, 8>) \
  TAEDA_KERNEL(NAME##_tile, FoldTile<__VA_ARGS__>)      \
  TAEDA_KERNEL(NAME##_parts, FoldParts<__VA_ARGS__>)

TAEDA_FOLD(moments, Moments)
TAEDA_FOLD(norm_sizes, NormSum<OfSizes>)
TAEDA_FOLD(norm_squares, NormSum<OfSquares>)
TAEDA_FOLD(norm_powers, NormSum<OfPowers>)
TAEDA_FOLD(norm_truths, NormSum<OfTruths>)
TAEDA_FOLD(norm_largest, NormExtreme<true>)
TAEDA_FOLD(norm_smallest, NormExtreme<false>)

}  // namespace taeda::cuda
