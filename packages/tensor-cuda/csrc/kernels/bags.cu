// Kernels of bags of rows.
#include "kernels/bags.h"

#define TAEDA_FAMILY "bags"

namespace taeda::cuda {

TAEDA_KERNEL(fill_bags, FillBags)
TAEDA_KERNEL(describe_bags, DescribeBags)

}  // namespace taeda::cuda
