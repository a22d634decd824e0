// Copies of matrices from one order of their elements to the other.
#pragma once
#include <cstdint>

namespace taeda::cpu {

/// out[r * out_step + c] = in[c * in_step + r] for elements of `item` bytes: 1, 2, 4, 8 or 16.
void copy_transposed(void* out, const void* in, int64_t rows, int64_t columns, int64_t out_step, int64_t in_step,
                     int64_t item);

}  // namespace taeda::cpu
