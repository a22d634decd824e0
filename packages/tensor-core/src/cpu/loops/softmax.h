// Softmax over rows and along columns: one copy per instruction set.
#pragma once
#include <cstdint>

namespace taeda::loops {

/// Row-wise softmax kernels on contiguous rows: out, in (or grad), output (gradients only), rows, row length.
using RowFn = void (*)(void* out, const void* in, const void* output, int64_t rows, int64_t n);
enum RowCode { kSoftmax, kLogSoftmax, kSoftmaxBackward, kLogSoftmaxBackward, kRowCount };

/// The same along the first dimension of (n, columns), at most kColumns of them, `stride` elements from row to row;
/// `scratch` holds n * columns elements.
using ColumnFn = void (*)(void* out, const void* in, const void* output, int64_t n, int64_t stride, int64_t columns,
                          void* scratch);
inline constexpr int64_t kColumns = 64;
/// Rows of n scores: x = exp(x - greatest), whose sum is 1 / factor and the exponential of lse. Of a row of -infinity,
/// or of none at all, the exponentials are 0, the factor 1 and lse -infinity.
using WeighFn = void (*)(void* x, int64_t rows, int64_t n, void* lse, void* factors);
/// x = -infinity where the byte is 0; bytes lie `step` apart.
using ForbidFn = void (*)(void* x, int64_t n, const uint8_t* allowed, int64_t step);

struct SoftmaxTable {
  ColumnFn column_fns[kRowCount][2];
  RowFn row_fns[kRowCount][2];  // float32, float64
  WeighFn weigh[2];
  ForbidFn forbid[2];
};

/// Declares the copy of one instruction set.
#define TAEDA_SOFTMAX_LOOPS(ISA)     \
  namespace ISA {                    \
  extern const SoftmaxTable softmax; \
  }
#ifdef TAEDA_ISA
TAEDA_SOFTMAX_LOOPS(TAEDA_ISA)
#endif

/// Those for this machine (src/cpu/isa.cpp).
const SoftmaxTable& softmax_table() noexcept;

}  // namespace taeda::loops
