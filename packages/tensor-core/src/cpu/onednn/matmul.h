// float32 and bfloat16 matrix products by oneDNN's brgemm on one thread, with a small cache of primitives per thread.
#pragma once
#include <cstdint>

#include "taeda/dtype.h"

namespace taeda::onednn {

/// Row-major c (m, n) = a (m, k) @ b (k, n), added to c when `accumulate`, or to `row` in each of its rows where that
/// is given; ld* are row lengths in elements, ta/tb say that an operand is stored transposed. False when oneDNN is not
/// built in or cannot do it.
bool matmul(int64_t m, int64_t n, int64_t k, const float* a, int64_t lda, bool ta, const float* b, int64_t ldb, bool tb,
            bool accumulate, const float* row, float* c, int64_t ldc);
/// The same for bfloat16 operands, summed in float32.
bool matmul(int64_t m, int64_t n, int64_t k, const BFloat16* a, int64_t lda, bool ta, const BFloat16* b, int64_t ldb,
            bool tb, bool accumulate, float* c, int64_t ldc);
/// Whether the processor and oneDNN together multiply bfloat16 faster than float32.
bool has_bfloat16();

}  // namespace taeda::onednn
