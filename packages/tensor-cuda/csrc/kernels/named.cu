// Kernels of elements that index tensors name together.
#include "kernels/named.h"

#define TAEDA_FAMILY "named"

namespace taeda::cuda {

TAEDA_KERNEL(name_places, NamePlaces)
TAEDA_KERNEL(pick_named, PickNamed)
TAEDA_KERNEL(put_each, PutEach<PutValue>)
TAEDA_KERNEL(put_few, PutFew<PutValue>)
TAEDA_KERNEL(put_last, PutLast)

#define TAEDA_SUMS(NAME, ...)                                   \
  TAEDA_KERNEL(add_each_##NAME, PutEach<AddValue<__VA_ARGS__>>) \
  TAEDA_KERNEL(add_few_##NAME, PutFew<AddValue<__VA_ARGS__>>)   \
  TAEDA_KERNEL(sum_tiles_##NAME, SumTiles<__VA_ARGS__>)         \
  TAEDA_KERNEL(join_tiles_##NAME, JoinTiles<__VA_ARGS__>)

TAEDA_SUMS(b, bool)
TAEDA_SUMS(i, int64_t)
TAEDA_SUMS(d, double)
TAEDA_SUMS(c, Complex128)

}  // namespace taeda::cuda
