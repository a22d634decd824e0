// Kernels of reductions.
#include "kernels/reduce.h"

#define TAEDA_FAMILY "reduce"

namespace taeda::cuda {

#define TAEDA_FOLD(NAME, ...)                           \
  TAEDA_KERNEL(NAME##_each, FoldEach<__VA_ARGS__>)      \
  TAEDA_KERNEL(NAME##_block, FoldBlock<__VA_ARGS__, 1>) \
  TAEDA_KERNEL(NAME##_short, FoldBlock<__VA_ARGS__, 8>) \
  TAEDA_KERNEL(NAME##_tile, FoldTile<__VA_ARGS__>)      \
  TAEDA_KERNEL(NAME##_parts, FoldParts<__VA_ARGS__>)

TAEDA_FOLD(sum_i, Sum<int64_t>)
TAEDA_FOLD(sum_d, Sum<double>)
TAEDA_FOLD(sum_c, Sum<Complex128>)
TAEDA_FOLD(prod_i, Product<int64_t>)
TAEDA_FOLD(prod_d, Product<double>)
TAEDA_FOLD(prod_c, Product<Complex128>)
TAEDA_FOLD(prod_s, Product<Complex64>)
TAEDA_FOLD(any, Truth<false>)
TAEDA_FOLD(all, Truth<true>)
TAEDA_FOLD(max_i, Extreme<int64_t, true>)
TAEDA_FOLD(max_u, Extreme<uint64_t, true>)
TAEDA_FOLD(max_d, Extreme<double, true>)
TAEDA_FOLD(min_i, Extreme<int64_t, false>)
TAEDA_FOLD(min_u, Extreme<uint64_t, false>)
TAEDA_FOLD(min_d, Extreme<double, false>)

#define TAEDA_SCAN(NAME, ...)                                \
  TAEDA_KERNEL(NAME##_each, ScanEach<__VA_ARGS__>)           \
  TAEDA_KERNEL(NAME##_block, ScanBlock<__VA_ARGS__, false>)  \
  TAEDA_KERNEL(NAME##_totals, ScanBlock<__VA_ARGS__, true>)  \
  TAEDA_KERNEL(NAME##_parts, StartsOfParts<__VA_ARGS__>)

TAEDA_SCAN(cumsum_i, Sum<int64_t>)
TAEDA_SCAN(cumsum_d, Sum<double>)
TAEDA_SCAN(cumsum_c, Sum<Complex128>)
TAEDA_SCAN(cumprod_i, Product<int64_t>)
TAEDA_SCAN(cumprod_d, Product<double>)
TAEDA_SCAN(cumprod_c, Product<Complex128>)
TAEDA_SCAN(logcumsumexp_d, LogSum<double>)
TAEDA_SCAN(logcumsumexp_c, LogSum<Complex128>)
TAEDA_SCAN(cummax_i, Extreme<int64_t, true, true>)
TAEDA_SCAN(cummax_u, Extreme<uint64_t, true, true>)
TAEDA_SCAN(cummax_d, Extreme<double, true, true>)
TAEDA_SCAN(cummin_i, Extreme<int64_t, false, true>)
TAEDA_SCAN(cummin_u, Extreme<uint64_t, false, true>)
TAEDA_SCAN(cummin_d, Extreme<double, false, true>)

}  // namespace taeda::cuda
