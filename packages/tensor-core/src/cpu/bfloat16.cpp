// Products of bfloat16 matrices: on tile registers where the processor has them, by oneDNN otherwise.
#include <optional>
#include <vector>

#include "cpu/amx/products.h"
#include "cpu/blas.h"
#include "cpu/onednn/matmul.h"
#include "cpu/pieces.h"
#include "taeda/interrupt.h"

namespace taeda::blas {
namespace {

/// `onto`: whether a float32 c is added to, or the row that is added to each row of a bfloat16 c.
template <class Onto, class C>
void bfloat16_piece(int64_t m, int64_t n, int64_t k, Operand<BFloat16> a, Operand<BFloat16> b, Onto onto, C* c,
                    int64_t ldc) {
  poll_signals();
  check(onednn::matmul(m, n, k, a.data, a.ld, a.transposed, b.data, b.ld, b.transposed, onto, c, ldc),
        ErrorKind::Runtime, "matmul: oneDNN could not multiply bfloat16 matrices (", m, ", ", k, ") and (", k, ", ", n,
        ")");
}
bool columns_of(bool accumulate, int64_t) { return accumulate; }
const float* columns_of(const float* row, int64_t j) { return row ? row + j : row; }

/// The columns of each piece of a right operand, laid out for tiles; empty where that does not pay or oneDNN cannot.
/// Measured: (1024, 1024) matrices are multiplied in 2.5 instead of 3.3 ms, a tenth of which is the laying out. Turning
/// a transposed left operand takes as long as it would save.
std::vector<std::optional<onednn::Packed>> packed_for(const Grid& grid, int64_t k, const Operand<BFloat16>& a,
                                                      const Operand<BFloat16>& b) {
  if (a.transposed || b.transposed || grid.m < kManyRows || grid.n * k > kMostPacked) return {};
  std::vector<std::optional<onednn::Packed>> packed(size_t(grid.count_n()));
  parallel_for(grid.count_n(), 1, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
      const int64_t j = p * grid.step_n;
      packed[size_t(p)].emplace(grid.step_m, grid.columns_at(j), k, b.data + j, b.ld, false);
    }
  });
  if (!std::ranges::all_of(packed, [](const auto& one) { return bool(*one); })) packed.clear();
  return packed;
}

template <class Onto, class C>
void bfloat16_pieces(int64_t m, int64_t n, int64_t k, Operand<BFloat16> a, Operand<BFloat16> b, Onto onto, C* c) {
  const int64_t work = m * n * k;
  if (work <= kPieceFlops) return bfloat16_piece(m, n, k, a, b, onto, c, n);
  const Grid grid(m, n, count_pieces(work), 256);
  const auto packed = packed_for(grid, k, a, b);
  grid.each([&](int64_t i, int64_t j, int64_t rows, int64_t columns) {
    const Onto added = columns_of(onto, j);
    C* const to = c + i * n + j;
    poll_signals();
    if (packed.empty() || !packed[size_t(j / grid.step_n)]->multiply(rows, a.data + i * a.ld, a.ld, added, to, n))
      bfloat16_piece(rows, columns, k, rows_from(a, i), columns_from(b, j), added, to, n);
  });
}

/// Few rows take the time in which the right operand is read, which oneDNN lays out in less.
bool worth_tiles(int64_t m) { return amx::has_tiles() && m > 16; }

}  // namespace

bool worth_bfloat16(int64_t m, int64_t n, int64_t k, int64_t batch) {
  if (amx::has_tiles()) return m * n * k >= 16 * 16 * 16;
  // Few results of long sums are cut along the sum.
  const bool wide = m * n > 128 * 128 || std::max(m, n) >= 1024 || k < 4096;
  return wide && m * n * k > (batch > 1 ? 16 * 16 * 16 : 64 * 64 * 64) && onednn::has_bfloat16();
}

void gemm_bfloat16(int64_t m, int64_t n, int64_t k, Operand<BFloat16> a, Operand<BFloat16> b, bool accumulate,
                   float* c) {
  if (worth_tiles(m)) return amx::multiply(m, n, k, a, b, {nullptr, accumulate}, c);
  bfloat16_pieces(m, n, k, a, b, accumulate, c);
}
void gemm_bfloat16(int64_t m, int64_t n, int64_t k, Operand<BFloat16> a, Operand<BFloat16> b, const float* row,
                   BFloat16* c) {
  if (worth_tiles(m)) return amx::multiply(m, n, k, a, b, {row}, c);
  bfloat16_pieces(m, n, k, a, b, row, c);
}
template <class C>
bool gemm_bfloat16(int64_t batch, int64_t m, int64_t n, int64_t k, Operand<BFloat16> a, int64_t step_a,
                   Operand<BFloat16> b, int64_t step_b, C* c) {
  poll_signals();
  if (!amx::has_tiles())
    return onednn::matmul(batch, m, n, k, a.data, step_a, a.ld, a.transposed, b.data, step_b, b.ld, b.transposed, c);
  for (int64_t i = 0; i < batch; ++i, a.data += step_a, b.data += step_b, c += m * n)
    amx::multiply(m, n, k, a, b, {}, c, true);
  return true;
}
template bool gemm_bfloat16(int64_t, int64_t, int64_t, int64_t, Operand<BFloat16>, int64_t, Operand<BFloat16>, int64_t,
                            float*);
template bool gemm_bfloat16(int64_t, int64_t, int64_t, int64_t, Operand<BFloat16>, int64_t, Operand<BFloat16>, int64_t,
                            BFloat16*);
void gemm_whole_bfloat16(int64_t m, int64_t n, int64_t k, Operand<BFloat16> a, Operand<BFloat16> b, bool accumulate,
                         float* c) {
  if (amx::has_tiles()) return amx::multiply(m, n, k, a, b, {nullptr, accumulate}, c, true);
  bfloat16_piece(m, n, k, a, b, accumulate, c, n);
}

struct PackedBFloat16::State {
  int64_t n, k, step;
  Operand<BFloat16> b;
  std::vector<onednn::Packed> pieces;  // empty where it is multiplied as it is
};

PackedBFloat16::PackedBFloat16(int64_t m, int64_t n, int64_t k, Operand<BFloat16> b)
    : state_(new State{n, k, packed_columns(n), b, {}}) {
  if (worth_tiles(m)) return;
  for (int64_t j = 0; j < n; j += state_->step) {
    const Operand<BFloat16> part = columns_from(b, j);
    state_->pieces.emplace_back(m, std::min(state_->step, n - j), k, part.data, part.ld, part.transposed);
    if (state_->pieces.back()) continue;
    state_->pieces.clear();
    break;
  }
}
PackedBFloat16::~PackedBFloat16() = default;

void PackedBFloat16::multiply(int64_t m, const BFloat16* a, int64_t lda, bool accumulate, float* c) const {
  const State& s = *state_;
  if (s.pieces.empty()) return gemm_bfloat16(m, s.n, s.k, {a, lda}, s.b, accumulate, c);
  parallel_for(int64_t(s.pieces.size()), 1, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p)
      check(s.pieces[size_t(p)].multiply(m, a, lda, accumulate, c + p * s.step, s.n), ErrorKind::Runtime,
            "matmul: oneDNN could not multiply bfloat16 matrices (", m, ", ", s.k, ") and (", s.k, ", ", s.n, ")");
  });
}

}  // namespace taeda::blas
