// Stable order of lines, by radix. See Note [Dealing out].
#pragma once
#include "kernels/order.h"
#include "ops/call.h"

namespace taeda::cuda {

/// How many bits tell the keys of a dtype apart.
int bits_of(const Keys& keys);
/// What is turned of keys of so many bits for the largest to come first.
uint64_t turned_of(int bits);
/// Writes the places along lines of `length` in the order of row-major keys; those that are places below a limit take
/// fewer steps.
void put_in_order(const Call& call, const Array& given, int64_t count, int64_t length, bool descending, Address order,
                  int64_t limit = 0);
/// The same, of places below a limit, in memory of its own.
Tensor order_of(const Call& call, const Tensor& keys, int64_t length, int64_t limit);

}  // namespace taeda::cuda
