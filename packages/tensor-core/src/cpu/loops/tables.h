// The tables of inner loops: one copy per instruction set, picked at start.
#pragma once
#include "taeda/elementwise.h"
#include "taeda/isa.h"

namespace taeda::loops {

/// Rows of the binary table.
enum Binary {
  kAdd, kAddAlpha, kSub, kMul, kDiv, kMaximum, kMinimum, kPow, kAtan2, kHypot, kFmod, kRemainder, kFloorDivide,
  kEq, kNe, kLt, kLe, kLogicalAnd, kLogicalOr, kLogicalXor, kBitAnd, kBitOr, kBitXor,
  kThresholdBackward, kSigmoidBackward, kTanhBackward, kGeluBackward, kGeluTanhBackward, kSiluBackward, kLeakyReluBackward,
  kBinaryCount
};
enum Unary {
  kNeg, kAbs, kSquare, kSqrt, kRsqrt, kReciprocal, kCube,
  kExp, kExp2, kExpm1, kLog, kLog1p, kLog2, kLog10, kSin, kCos, kTan, kAtan, kAsin, kAcos, kAsinh, kAcosh, kAtanh, kSinh, kCosh, kTanh, kSigmoid, kErf, kLgamma,
  kFloor, kCeil, kTrunc, kRound, kClamp,
  kLogicalNot, kBitNot, kIsNan, kIsInf, kIsFinite,
  kRelu, kLeakyRelu, kGelu, kGeluTanh, kSilu,
  kUnaryCount
};
enum Ternary { kAddcmul, kAddcdiv, kLerp, kWhere, kTernaryCount };

/// Activations and their gradients (float32 and float64), of one or two operands.
enum Activation {
  kElu, kSoftplus, kMish, kHardswish, kHardsigmoid, kHardshrink, kSoftshrink, kThreshold, kLogsigmoid,
  kMishBackward, kSoftplusBackward, kEluBackward, kHardtanhBackward, kHardswishBackward, kHardsigmoidBackward, kShrinkBackward,
  kLogsigmoidBackward, kDropoutBackward,
  kActivationCount
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
enum Reduction { kReduceSum, kReduceProd, kReduceMax, kReduceMin, kReduceAny, kReduceAll, kReduceAbsSum, kReduceSquareSum, kReductionCount };
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

/// Random numbers by groups of 64 Philox blocks: a group has 256 numbers (128 of eight bytes), and number k of group g depends on
/// (seed, offset + 64 g, k) alone.
inline constexpr int kGroupBlocks = 64;
enum Distribution { kUniformFloat, kUniformDouble, kNormalFloat, kNormalDouble, kBernoulliByte, kExponentialFloat, kExponentialDouble, kInteger64, kDistributionCount };
/// Fills one group; only the first `count` numbers need be right. Parameters by distribution: (low, high), (mean, std), (p), (rate), (integer low, integer count).
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
  void (*adam[2])(void* param, const void* grad, void* average, void* square, void* largest, int64_t n, const AdamStep& step);
};

/// The same along the first dimension of (n, columns), at most kColumns of them, `stride` elements from row to row;
/// `scratch` holds n * kColumns elements.
using ColumnFn = void (*)(void* out, const void* in, const void* output, int64_t n, int64_t stride, int64_t columns, void* scratch);
inline constexpr int64_t kColumns = 64;

struct ActivationTable {
  LoopRow rows[kActivationCount];
  ColumnFn column_fns[kRowCount][2];
  RowFn row_fns[kRowCount][2];  // float32, float64
};
struct BinaryTable {
  LoopRow rows[kBinaryCount];
};
struct UnaryTable {
  LoopRow rows[kUnaryCount];
};
struct TernaryTable {
  LoopRow rows[kTernaryCount];
};
struct CastTable {
  Loop rows[kDTypeCount][kDTypeCount];  // [to][from]
};

#define TAEDA_DECLARE(ISA)           \
  namespace ISA {                    \
  extern const BinaryTable binary;   \
  extern const UnaryTable unary;     \
  extern const TernaryTable ternary; \
  extern const CastTable cast;       \
  extern const ActivationTable activation; \
  extern const ReduceTable reduce;   \
  extern const RandomTable random;   \
  extern const OptimTable optim;     \
  }
TAEDA_DECLARE(base)
TAEDA_DECLARE(avx2)
TAEDA_DECLARE(avx512)
#undef TAEDA_DECLARE

#ifdef TAEDA_HAVE_ISA_avx2
#define TAEDA_AVX2(NAME) avx2::NAME
#else
#define TAEDA_AVX2(NAME) base::NAME
#endif
#ifdef TAEDA_HAVE_ISA_avx512
#define TAEDA_AVX512(NAME) avx512::NAME
#else
#define TAEDA_AVX512(NAME) TAEDA_AVX2(NAME)
#endif
/// The variant of a per-instruction-set object for this machine.
#define TAEDA_PICK(NAME)                                                              \
  (::taeda::isa() == ::taeda::Isa::AVX512 ? ::taeda::loops::TAEDA_AVX512(NAME)        \
   : ::taeda::isa() == ::taeda::Isa::AVX2 ? ::taeda::loops::TAEDA_AVX2(NAME)          \
                                          : ::taeda::loops::base::NAME)

}  // namespace taeda::loops
