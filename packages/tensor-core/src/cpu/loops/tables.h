// The tables of inner loops: one copy per instruction set, picked at start.
#pragma once
#include "taeda/elementwise.h"

namespace taeda::loops {

/// The loops of one line of arithmetic by computing dtype, and the dtypes of their results.
struct ElementRow {
  Loop fn[kDTypeCount] = {};
  DType result[kDTypeCount] = {};
  constexpr void set(DType d, Loop loop, DType gives) {
    fn[int(d)] = loop;
    result[int(d)] = gives;
  }
};
/// Row-wise softmax kernels on contiguous rows: out, in (or grad), output (gradients only), rows, row length.
using RowFn = void (*)(void* out, const void* in, const void* output, int64_t rows, int64_t n);
enum RowCode { kSoftmax, kLogSoftmax, kSoftmaxBackward, kLogSoftmaxBackward, kRowCount };

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
};
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
/// First index of the extremum: of one row, and of each column.
struct ArgReducer {
  int64_t (*row)(const char* in, int64_t stride, int64_t n);
  /// best[j], index[j] from `rows` rows of contiguous elements; index counts rows.
  void (*columns)(void* best, int64_t* index, const char* in, int64_t row_stride, int64_t rows, int64_t columns);
};
struct ReduceTable {
  Reducer by_dtype[kReductionCount][kDTypeCount];
  ArgReducer extremum[2][kDTypeCount];  // maximum, minimum
};

/// Random numbers by groups of 64 Philox blocks: a group has 256 numbers (128 of eight bytes), and number k of group g
/// depends on (seed, offset + 64 g, k) alone.
inline constexpr int kGroupBlocks = 64;
enum Distribution {
  kUniformFloat,
  kUniformDouble,
  kNormalFloat,
  kNormalDouble,
  kBernoulliByte,
  kExponentialFloat,
  kExponentialDouble,
  kInteger64,
  kDistributionCount
};
/// Fills one group; only the first `count` numbers need be right. Parameters by distribution: (low, high), (mean, std),
/// (p), (rate), (integer low, integer count).
using GroupFn = void (*)(void* out, uint64_t seed, uint64_t offset, const LoopParams& params, int64_t count);
struct RandomTable {
  GroupFn fill[kDistributionCount];
};

/// One optimizer step over n contiguous elements.
struct SgdStep {
  double lr, momentum, dampening, weight_decay;
  bool nesterov, maximize, first_step;
};
struct AdamStep {
  double beta1, beta2, eps, weight_decay, lr, correction1, root_correction2;
  bool maximize, decoupled;
};
struct OptimTable {
  /// float32, float64; `buffer` null without momentum.
  void (*sgd[2])(void* param, const void* grad, void* buffer, int64_t n, const SgdStep& step);
  /// `largest` null without amsgrad.
  void (*adam[2])(void* param, const void* grad, void* average, void* square, void* largest, int64_t n,
                  const AdamStep& step);
};

/// The same along the first dimension of (n, columns), at most kColumns of them, `stride` elements from row to row;
/// `scratch` holds n * kColumns elements.
using ColumnFn = void (*)(void* out, const void* in, const void* output, int64_t n, int64_t stride, int64_t columns,
                          void* scratch);
inline constexpr int64_t kColumns = 64;

struct SoftmaxTable {
  ColumnFn column_fns[kRowCount][2];
  RowFn row_fns[kRowCount][2];  // float32, float64
};
/// out = condition ? a : b by item size: 1, 2, 4, 8, 16 bytes.
struct SelectTable {
  Loop by_size[5];
};
struct CastTable {
  Loop rows[kDTypeCount][kDTypeCount];  // [to][from]
};

/// Declares the copy of one instruction set.
#define TAEDA_LOOP_TABLES(ISA)               \
  namespace ISA {                            \
  extern const ElementRow arith_rows[];      \
  extern const ElementRow unary_rows[];      \
  extern const ElementRow compare_rows[];    \
  extern const ElementRow activation_rows[]; \
  extern const SelectTable select;           \
  extern const CastTable cast;               \
  extern const SoftmaxTable softmax;         \
  extern const ReduceTable reduce;           \
  extern const RandomTable random;           \
  extern const OptimTable optim;             \
  }
#ifdef TAEDA_ISA
TAEDA_LOOP_TABLES(TAEDA_ISA)
#endif

struct Tables {
  const ElementRow *arith, *unary, *compare, *activation;  // a row for each line of the family
  const SelectTable& select;
  const CastTable& cast;
  const SoftmaxTable& softmax;
  const ReduceTable& reduce;
  const RandomTable& random;
  const OptimTable& optim;
};
/// Those for this machine (src/cpu/isa.cpp).
const Tables& tables() noexcept;
/// Those of the least instruction set, which alone have the loops that are compiled once.
const Tables& least_tables() noexcept;

}  // namespace taeda::loops
