// Matrix products in tiles of our own, where they are faster than the vendors' (cpu/loops/gemm.cpp).
#pragma once
#include "cpu/blas.h"

namespace taeda::blas {

/// Whether tiled_gemm() is the fastest routine for a product of these sizes by a right operand that stands transposed
/// or not.
template <class T>
bool worth_tiles(int64_t m, int64_t n, int64_t k, bool transposed);
/// Whether TiledRight is, for a right operand of many products by m rows.
bool worth_tiles_of_right(int64_t m, int64_t n, int64_t k);

/// As gemm(), in several threads. T: float and double.
template <class T>
void tiled_gemm(int64_t m, int64_t n, int64_t k, T alpha, Operand<T> a, Operand<T> b, T beta, T* c, int64_t ldc,
                const T* row);

/// A right operand (k, n) laid out in tiles once.
template <class T>
class TiledRight {
 public:
  TiledRight(int64_t n, int64_t k, Operand<T> b);
  /// c (m, n) = a (m, k) @ b, with `row` as of gemm().
  void multiply(int64_t m, const T* a, int64_t lda, T* c, const T* row) const;
  /// The strip of columns that begins with `column`, for a run of the inner dimension: see Note [Products in tiles].
  const T* strip(int64_t run, int64_t column) const;

 private:
  int64_t n_, k_, step_;
  Tensor packed_;
};

}  // namespace taeda::blas
