// Kernels of order.
#include "kernels/order.h"

#define TAEDA_FAMILY "order"

namespace taeda::cuda {

TAEDA_KERNEL(order_short_32, OrderShort<uint32_t>)
TAEDA_KERNEL(order_short_64, OrderShort<uint64_t>)
TAEDA_KERNEL(order_lines_32, OrderLines<uint32_t>)
TAEDA_KERNEL(order_lines_64, OrderLines<uint64_t>)
TAEDA_KERNEL(order_counts_32, OrderCounts<uint32_t>)
TAEDA_KERNEL(order_counts_64, OrderCounts<uint64_t>)
TAEDA_KERNEL(order_starts, StartsOfParts<Occurrences>)
TAEDA_KERNEL(order_deal_32, OrderDeal<uint32_t>)
TAEDA_KERNEL(order_deal_64, OrderDeal<uint64_t>)
TAEDA_KERNEL(arrange, Arrange)

}  // namespace taeda::cuda
