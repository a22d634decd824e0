// float32 and bfloat16 matrix products by oneDNN's brgemm on one thread, with a small cache of primitives per thread.
#pragma once
#include <cstdint>
#include <memory>

#include "taeda/dtype.h"

namespace taeda::onednn {

class Scratch;

/// Row-major c (m, n) = a (m, k) @ b (k, n), added to c when `accumulate`, or to `row` in each of its rows where that
/// is given; ld* are row lengths in elements, ta/tb say that an operand is stored transposed. False when oneDNN is not
/// built in or cannot do it.
bool matmul(int64_t m, int64_t n, int64_t k, const float* a, int64_t lda, bool ta, const float* b, int64_t ldb, bool tb,
            bool accumulate, const float* row, float* c, int64_t ldc);
/// The same for bfloat16 operands, summed in float32.
bool matmul(int64_t m, int64_t n, int64_t k, const BFloat16* a, int64_t lda, bool ta, const BFloat16* b, int64_t ldb,
            bool tb, bool accumulate, float* c, int64_t ldc);
/// ... and rounded at the end.
bool matmul(int64_t m, int64_t n, int64_t k, const BFloat16* a, int64_t lda, bool ta, const BFloat16* b, int64_t ldb,
            bool tb, const float* row, BFloat16* c, int64_t ldc);
/// Many of either kind, whose operands lie `step_*` elements apart and whose results lie together.
template <class C>
bool matmul(int64_t batch, int64_t m, int64_t n, int64_t k, const BFloat16* a, int64_t step_a, int64_t lda, bool ta,
            const BFloat16* b, int64_t step_b, int64_t ldb, bool tb, C* c);
/// A right operand that is laid out once for products of many rows, or of a few rows many times.
class Packed {
 public:
  /// b as of matmul(), for products of `rows` rows for preference.
  Packed(int64_t rows, int64_t n, int64_t k, const float* b, int64_t ldb, bool tb);
  Packed(int64_t rows, int64_t n, int64_t k, const BFloat16* b, int64_t ldb, bool tb);
  Packed(Packed&&) noexcept;
  ~Packed();
  /// False when oneDNN is not built in or cannot do it: then there is nothing to multiply by.
  explicit operator bool() const { return bool(state_); }
  /// As matmul(), with this right operand and a left one of its dtype that is not transposed.
  bool multiply(int64_t m, const float* a, int64_t lda, bool accumulate, const float* row, float* c, int64_t ldc) const;
  bool multiply(int64_t m, const BFloat16* a, int64_t lda, bool accumulate, float* c, int64_t ldc) const;
  bool multiply(int64_t m, const BFloat16* a, int64_t lda, const float* row, BFloat16* c, int64_t ldc) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// A row-major copy of a matrix (m, k) that is stored transposed; none where oneDNN cannot make it.
class Turned {
 public:
  Turned(int64_t m, int64_t k, const float* from, int64_t ld);
  ~Turned();
  const float* data() const;

 private:
  std::unique_ptr<Scratch> block_;
};

/// Whether the processor and oneDNN together multiply bfloat16 faster than float32.
bool has_bfloat16();

}  // namespace taeda::onednn
