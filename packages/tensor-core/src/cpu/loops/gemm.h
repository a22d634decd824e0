// Tiles of matrix products, from operands that are laid out for them, and products of integers.
#pragma once
#include <cstdint>

namespace taeda::loops {

/// Rows and columns of a tile of the result.
template <class T> inline constexpr int64_t kTileRows = 6;
template <> inline constexpr int64_t kTileRows<double> = 12;
inline constexpr int64_t kTileColumns = 16;

/// The tiles of a left operand (m, k) stand this many numbers apart, in each the columns of its rows one after the
/// other; what is written in whole vectors ends before the next.
template <class T>
constexpr int64_t left_tile(int64_t k) {
  return kTileRows<T> * k + 8;
}

/// Operands of a product of integers: a (m, k), b (k, n) and c (m, n), each with its leading dimension.
template <class U>
struct IntegerProduct {
  int64_t m, n, k;
  U alpha, beta;
  const U* a;
  int64_t lda;
  bool a_transposed;
  const U* b;
  int64_t ldb;
  bool b_transposed;
  U* c;
  int64_t ldc;
};

/// c = alpha * a @ b + beta * c modulo 2^bits, so that signs do not matter.
template <class U> using IntegerGemm = void (*)(const IntegerProduct<U>&);
/// The sum of x[i] * y[i], likewise.
template <class U> using IntegerDot = U (*)(int64_t n, const U* x, const U* y);

/// A routine for each width of integers.
template <template <class> class Routine>
struct OfWidths {
  Routine<uint8_t> bytes;
  Routine<uint16_t> halves;
  Routine<uint32_t> words;
  Routine<uint64_t> longs;
  template <class U>
  auto of() const {
    if constexpr (sizeof(U) == 1) return bytes;
    else if constexpr (sizeof(U) == 2) return halves;
    else if constexpr (sizeof(U) == 4) return words;
    else return longs;
  }
};

/// Products of operands in tiles; empty where the vendors' routines are faster.
template <class T>
struct TileTable {
  /// A left operand (m, k), `ld` from row to row (from column to column when transposed), to tiles. The last one has
  /// the rows that remain.
  void (*pack_left)(const T* a, int64_t ld, bool transposed, int64_t m, int64_t k, T* to) = nullptr;
  /// Up to kTileColumns columns of a right operand (k, n), to k rows of kTileColumns numbers.
  void (*pack_right)(const T* b, int64_t ld, bool transposed, int64_t k, int64_t n, T* to) = nullptr;
  /// c (m, n) = row + alpha * a @ b, and beta * c + alpha * a @ b without `row`, of packed operands; n is at most
  /// kTileColumns. Beta 0 does not read c.
  void (*multiply)(int64_t m, int64_t n, int64_t k, T alpha, const T* a, const T* b, const T* row, T beta, T* c,
                   int64_t ldc) = nullptr;
};

struct GemmTable {
  OfWidths<IntegerGemm> integers;
  OfWidths<IntegerDot> integer_dots;
  TileTable<float> singles;
  TileTable<double> doubles;

  template <class T>
  const TileTable<T>& tiles() const {
    if constexpr (sizeof(T) == sizeof(float)) return singles;
    else return doubles;
  }
};

/// Declares the copy of one instruction set.
#define TAEDA_GEMM_LOOPS(ISA)  \
  namespace ISA {              \
  extern const GemmTable gemm; \
  }
#ifdef TAEDA_ISA
TAEDA_GEMM_LOOPS(TAEDA_ISA)
#endif

/// Those for this machine (src/cpu/isa.cpp).
const GemmTable& gemm_table() noexcept;

}  // namespace taeda::loops
