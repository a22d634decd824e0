// Matrix products on raw memory: OpenBLAS and oneDNN where built in, plain loops otherwise; cut into fixed pieces.
#pragma once
#include <memory>

#include "taeda/dtype.h"
#include "taeda/scalar.h"
#include "taeda/tensor.h"

namespace taeda::blas {

/// One operand: element (i, j) lies at data[i * ld + j], or at data[j * ld + i] when transposed.
template <class T>
struct Operand {
  const T* data;
  int64_t ld;
  bool transposed = false;
  bool streamed = false;  // set by gemm(): part of a matrix that the caches do not hold
};

/// c = alpha * a @ b + beta * c with a (m, k), b (k, n) and row-major c (m, n); beta 0 does not read c.
/// With `row` (n numbers, and beta 0) it is added to each row. T: float, double, Complex64, Complex128 and the integer
/// types. The result does not depend on the number of threads.
template <class T>
void gemm(int64_t m, int64_t n, int64_t k, T alpha, Operand<T> a, Operand<T> b, T beta, T* c, int64_t ldc,
          const T* row = nullptr);
/// The same, alpha 1, on this thread alone and in one piece: for products of which several threads make many. T: float
/// and double.
template <class T>
void gemm_whole(int64_t m, int64_t n, int64_t k, Operand<T> a, Operand<T> b, T beta, T* c, int64_t ldc);

/// A right operand (k, n) of many products by m rows, laid out for them once where oneDNN is built in. Without it `b`
/// is used as it is, so it must live as long.
class Packed {
 public:
  Packed(int64_t m, int64_t n, int64_t k, Operand<float> b);
  ~Packed();
  /// c (m, n) = a (m, k) @ b, with `row` as of gemm().
  void multiply(int64_t m, const float* a, int64_t lda, float* c, const float* row = nullptr) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Whether gemm_bfloat16() is faster than a product of float32 copies: with the instructions, and not for small ones.
bool worth_bfloat16(int64_t m, int64_t n, int64_t k, int64_t batch = 1);
/// c = a @ b of bfloat16 operands, summed in float32, added to c when `accumulate`; c (m, n) dense.
void gemm_bfloat16(int64_t m, int64_t n, int64_t k, Operand<BFloat16> a, Operand<BFloat16> b, bool accumulate,
                   float* c);
/// ... and rounded at the end; `row` (n numbers), where given, is added to each row.
void gemm_bfloat16(int64_t m, int64_t n, int64_t k, Operand<BFloat16> a, Operand<BFloat16> b, const float* row,
                   BFloat16* c);
/// Many of either kind, without rows, on this thread alone; operands lie `step_*` elements apart, results together.
/// False, and nothing is written, where one by one they take no longer.
template <class C>
bool gemm_bfloat16(int64_t batch, int64_t m, int64_t n, int64_t k, Operand<BFloat16> a, int64_t step_a,
                   Operand<BFloat16> b, int64_t step_b, C* c);
/// The first on this thread alone and in one piece.
void gemm_whole_bfloat16(int64_t m, int64_t n, int64_t k, Operand<BFloat16> a, Operand<BFloat16> b, bool accumulate,
                         float* c);

/// As Packed, of bfloat16: for products of m rows that are summed in float32.
class PackedBFloat16 {
 public:
  PackedBFloat16(int64_t m, int64_t n, int64_t k, Operand<BFloat16> b);
  ~PackedBFloat16();
  /// c (m, n) = a (m, k) @ b, added to c when `accumulate`.
  void multiply(int64_t m, const BFloat16* a, int64_t lda, bool accumulate, float* c) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// y = alpha * a @ x + beta * y with a (m, k).
template <class T>
void gemv(int64_t m, int64_t k, T alpha, Operand<T> a, const T* x, int64_t incx, T beta, T* y, int64_t incy);

/// sum of x[i] * y[i].
template <class T>
T dot(int64_t n, const T* x, int64_t incx, const T* y, int64_t incy);

/// Whether products above this many multiplications give up the host lock.
inline constexpr int64_t kUnlockFlops = 1 << 18;

/// Calls `body.operator()<T>()` for the dtypes that have a product of their own: all but bool and the short floats.
template <class Body>
void visit_numeric(const char* op, DType dtype, const Body& body) {
  const auto refuse = [&] { fail(ErrorKind::NotImplemented, op, ": not implemented for dtype ", name(dtype)); };
  if (is_float8(dtype)) refuse();
  visit_dtype(dtype, [&]<class T>() {
    if constexpr (std::is_same_v<T, bool> || std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>) refuse();
    else body.template operator()<T>();
  });
}

}  // namespace taeda::blas
