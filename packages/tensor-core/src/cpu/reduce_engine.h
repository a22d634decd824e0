// Runs a Reducer over any layout: by rows or by columns, in fixed pieces.
#pragma once
#include "cpu/loops/tables.h"
#include "taeda/tensor.h"

namespace taeda::cpu {

/// Reduces the dimensions in `reduced` of `self` (dtype as the reducer expects) into the contiguous `acc`, one element for each kept index
/// in row-major order.
void reduce_into(const loops::Reducer& reducer, const Tensor& self, uint64_t reduced, const Tensor& acc);
/// First indices of the extremum along `dim` into the contiguous int64 `index`.
void arg_reduce_into(const loops::ArgReducer& reducer, const Tensor& self, int64_t dim, int64_t* index);

}  // namespace taeda::cpu
