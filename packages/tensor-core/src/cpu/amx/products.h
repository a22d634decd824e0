// bfloat16 matrix products on tile registers (AMX).
#pragma once
#include "cpu/blas.h"

namespace taeda::amx {

/// Whether this processor has tile registers for bfloat16 and they may be used.
bool has_tiles();

/// What a product is added to: c itself, a row of n numbers, or nothing.
struct Onto {
  const float* row = nullptr;
  bool result = false;
};

/// c = a @ b with a (m, k), b (k, n) and dense c (m, n), summed in float32; c float or BFloat16, the latter rounded at
/// the end and not added to. On this thread alone when `alone`. The result does not depend on the number of threads.
template <class C>
void multiply(int64_t m, int64_t n, int64_t k, blas::Operand<BFloat16> a, blas::Operand<BFloat16> b, Onto onto, C* c,
              bool alone = false);

}  // namespace taeda::amx
