// How matrix products are cut into pieces: see Note [Pieces of a product].
#pragma once
#include <algorithm>

#include "cpu/blas.h"
#include "taeda/parallel.h"

namespace taeda::blas {

// Note [Pieces of a product]
// The vendor libraries are called on one thread each, for blocks of the result (or of the inner dimension, summed in
// order) whose borders depend on the shape alone. So a product has the same bits whatever the number of threads.

constexpr int64_t kPieceFlops = int64_t(1) << 20;  // multiplications that pay for a piece of their own
constexpr int64_t kMaxPieces = 16;
constexpr int64_t kManyRows = 512;        // from here on linear layers are cut by rows alone
constexpr int64_t kMostPacked = 1 << 24;  // numbers of a right operand that is copied for all pieces

inline int64_t count_pieces(int64_t work) { return std::min(kMaxPieces, (work + kPieceFlops - 1) / kPieceFlops); }

/// An operand from row i, and from column j on.
template <class T>
Operand<T> rows_from(Operand<T> x, int64_t i) {
  return {x.data + (x.transposed ? i : i * x.ld), x.ld, x.transposed, x.streamed};
}
template <class T>
Operand<T> columns_from(Operand<T> x, int64_t j) {
  return {x.data + (x.transposed ? j * x.ld : j), x.ld, x.transposed, x.streamed};
}

/// Pieces of an m by n result: of whole vectors, not narrower than what the routines need for their speed, along the
/// longer side first.
struct Grid {
  int64_t m, n, step_m, step_n;

  Grid(int64_t m_, int64_t n_, int64_t pieces, int64_t narrowest) : m(m_), n(n_) {
    const auto cuts = [narrowest](int64_t size, int64_t most) {
      return std::clamp<int64_t>((size + narrowest - 1) / narrowest, 1, std::max<int64_t>(1, most));
    };
    const int64_t first = cuts(std::max(m, n), pieces), second = cuts(std::min(m, n) / 2, pieces / first);
    const int64_t cuts_n = n >= m ? first : second, cuts_m = n >= m ? second : first;
    step_n = ((n + cuts_n - 1) / cuts_n + 15) / 16 * 16;
    step_m = ((m + cuts_m - 1) / cuts_m + 15) / 16 * 16;
  }
  int64_t count_n() const { return (n + step_n - 1) / step_n; }
  int64_t columns_at(int64_t j) const { return std::min(step_n, n - j); }

  /// Calls `body(i, j, rows, columns)` for each piece, in several threads.
  template <class Body>
  void each(const Body& body) const {
    parallel_for(count_n() * ((m + step_m - 1) / step_m), 1, [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; ++p) {
        const int64_t i = p / count_n() * step_m, j = p % count_n() * step_n;
        body(i, j, std::min(step_m, m - i), columns_at(j));
      }
    });
  }
};

/// Columns of a piece of a right operand that is laid out for few rows. Measured: a call takes some microseconds, so
/// pieces are few.
inline int64_t packed_columns(int64_t n) {
  const int64_t count = std::clamp<int64_t>(n / 128, 1, kMaxPieces / 2);
  return ((n + count - 1) / count + 63) / 64 * 64;
}

}  // namespace taeda::blas
