// Reductions of rows and columns: one copy per instruction set.
#pragma once
#include "taeda/dtype.h"

namespace taeda::loops {

/// How one kind of reduction treats one input dtype; accumulators are of dtype `acc`.
struct Reducer {
  DType acc;
  /// Writes the neutral element n times.
  void (*start)(void* acc, int64_t n);
  /// acc = acc (+) the n elements at `in`, `stride` bytes apart.
  void (*row)(void* acc, const char* in, int64_t stride, int64_t n);
  /// acc[j] = acc[j] (+) column j of `rows` rows of contiguous elements.
  void (*columns)(void* acc, const char* in, int64_t row_stride, int64_t rows, int64_t columns);
  /// acc[j] = acc[j] (+) other[j].
  void (*join)(void* acc, const void* other, int64_t n);
  /// acc[r * acc_step] = acc[r * acc_step] (+) row r of `rows` rows of n contiguous elements.
  void (*rows)(void* acc, int64_t acc_step, const char* in, int64_t row_stride, int64_t rows, int64_t n);
};
/// Reducer::rows by the function for one row, of elements of `size` bytes.
template <auto Row, class Acc, int64_t size>
void rows_one_by_one(void* acc, int64_t acc_step, const char* in, int64_t row_stride, int64_t rows, int64_t n) {
  for (int64_t r = 0; r < rows; ++r) Row(static_cast<Acc*>(acc) + r * acc_step, in + r * row_stride, size, n);
}
enum Reduction {
  kReduceSum,
  kReduceProd,
  kReduceMax,
  kReduceMin,
  kReduceAny,
  kReduceAll,
  kReduceAbsSum,
  kReduceSquareSum,
  kReductionCount
};
/// First index of the extremum: of each row, and of each column.
struct ArgReducer {
  /// index[r * index_step] of row r of `rows` rows of n > 0 elements that lie `stride` bytes apart.
  void (*rows)(int64_t* index, int64_t index_step, const char* in, int64_t row_stride, int64_t rows, int64_t stride,
               int64_t n);
  /// best[j], index[j] from `rows` rows of contiguous elements; index counts rows.
  void (*columns)(void* best, int64_t* index, const char* in, int64_t row_stride, int64_t rows, int64_t columns);
};
struct ReduceTable {
  Reducer by_dtype[kReductionCount][kDTypeCount];
  ArgReducer extremum[2][kDTypeCount];  // maximum, minimum
};

/// Declares the copy of one instruction set.
#define TAEDA_REDUCE_LOOPS(ISA)    \
  namespace ISA {                  \
  extern const ReduceTable reduce; \
  }
#ifdef TAEDA_ISA
TAEDA_REDUCE_LOOPS(TAEDA_ISA)
#endif

/// Those for this machine (src/cpu/isa.cpp).
const ReduceTable& reduce_table() noexcept;

}  // namespace taeda::loops
