// float32 matrix products in tiles of our own, where they are faster than the vendors' (cpu/loops/gemm.cpp).
#pragma once
#include "cpu/blas.h"

namespace taeda::blas {

/// Whether tiled_gemm() is the fastest routine for a product of these sizes by a right operand that stands transposed
/// or not.
bool worth_tiles(int64_t m, int64_t n, int64_t k, bool transposed);
/// Whether TiledRight is, for a right operand of many products by m rows.
bool worth_tiles_of_right(int64_t m, int64_t n, int64_t k);

/// As gemm<float>(), in several threads.
void tiled_gemm(int64_t m, int64_t n, int64_t k, float alpha, Operand<float> a, Operand<float> b, float beta, float* c,
                int64_t ldc, const float* row);

/// A right operand (k, n) laid out in tiles once.
class TiledRight {
 public:
  TiledRight(int64_t n, int64_t k, Operand<float> b);
  /// c (m, n) = a (m, k) @ b, with `row` as of gemm().
  void multiply(int64_t m, const float* a, int64_t lda, float* c, const float* row) const;
  /// The strip of columns that begins with `column`, for a run of the inner dimension: see Note [Products in tiles].
  const float* strip(int64_t run, int64_t column) const;

 private:
  int64_t n_, k_, step_;
  Tensor packed_;
};

}  // namespace taeda::blas
