// Matrix products in tiles.
//
// Note [Products in tiles]
// The left operand is laid out as a whole first, by all threads. Then every task makes a block of the result: for runs
// of the inner dimension it lays out a strip of columns of the right operand, which stays in the first cache while all
// tiles of the block's rows are multiplied by it; where several blocks need the strips, they are laid out beforehand.
// Runs and blocks depend on the shape alone, and the sums of the runs are added in order, so the bits do not depend on
// the number of threads.
#include "cpu/tiles.h"

#include <algorithm>
#include <optional>

#include "cpu/loops/gemm.h"
#include "taeda/interrupt.h"
#include "taeda/parallel.h"

namespace taeda::blas {
namespace {

using loops::kTileColumns;
using loops::kTileRows;

/// A strip and a tile of so long a run fill the first cache.
template <class T> constexpr int64_t kLongestRun = 320;
template <> constexpr int64_t kLongestRun<double> = 160;
constexpr int64_t kBlockRows = 288;        // whose part of the left operand stays in the second one
constexpr int64_t kMostTasks = 32;         // into which a product of usual size is cut
constexpr int64_t kTaskWork = 1 << 19;     // multiplications that pay for a task
constexpr int64_t kLongTask = 1 << 28;     // those that signals may wait for
constexpr int64_t kMostLeft = 1 << 22;     // numbers of a left operand that are laid out at a time
constexpr int64_t kLongestPart = 1 << 14;  // of the inner dimension, of them
constexpr int64_t kSmallWork = 1 << 21;    // multiplications
constexpr int64_t kMostRight = 1 << 22;    // numbers of a right operand that is laid out once for blocks of rows

template <class T>
const loops::TileTable<T>& tiles() noexcept {
  return loops::gemm_table().tiles<T>();
}

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

template <class T>
Operand<T> part(Operand<T> x, int64_t i, int64_t j) {
  return {x.data + (x.transposed ? j * x.ld + i : i * x.ld + j), x.ld, x.transposed};
}

/// The inner dimension in runs of nearly the same length.
template <class T>
struct Runs {
  int64_t k, count, step;
  explicit Runs(int64_t inner)
      : k(inner), count(ceil_div(inner, kLongestRun<T>)), step(ceil_div(ceil_div(inner, count), 8) * 8) {
    count = ceil_div(k, step);
  }
  int64_t from(int64_t r) const { return r * step; }
  int64_t length(int64_t r) const { return std::min(step, k - r * step); }
};

/// A left operand in tiles, run by run.
template <class T>
class Left {
 public:
  Left(int64_t m, const Runs<T>& runs, Operand<T> a)
      : tiles_(ceil_div(m, kTileRows<T>)), step_(loops::left_tile<T>(runs.step)) {
    room_ = empty(Shape{runs.count * tiles_ * step_}, dtype_of<T>);
    const int64_t group = std::max<int64_t>(1, (1 << 15) / (kTileRows<T> * runs.step)),
                  groups = ceil_div(tiles_, group);
    parallel_for(runs.count * groups, 1, [&](int64_t begin, int64_t end) {
      for (int64_t g = begin; g < end; ++g) {
        const int64_t r = g / groups, i = g % groups * group * kTileRows<T>;
        const Operand<T> from = part(a, i, runs.from(r));
        tiles<T>().pack_left(from.data, from.ld, from.transposed, std::min(group * kTileRows<T>, m - i), runs.length(r),
                             at(r, i, runs.length(r)));
      }
    });
  }
  /// The tiles from row i on, a whole number of tiles, of run r.
  T* at(int64_t r, int64_t i, int64_t length) const {
    return room_.data<T>() + r * tiles_ * step_ + i / kTileRows<T> * loops::left_tile<T>(length);
  }

 private:
  int64_t tiles_, step_;
  Tensor room_;
};

/// How a result is cut into tasks: blocks of rows by groups of strips.
template <class T>
struct Cut {
  int64_t blocks, rows, groups, columns;
  Cut(int64_t m, int64_t n, int64_t k) {
    rows = ceil_div(ceil_div(m, ceil_div(m, kBlockRows)), kTileRows<T>) * kTileRows<T>;
    blocks = ceil_div(m, rows);
    const double work = double(m) * double(n) * double(k);
    const int64_t wanted =
        std::max(std::min<int64_t>(kMostTasks, int64_t(work / kTaskWork)), int64_t(work / kLongTask));
    const int64_t strips = ceil_div(n, kTileColumns);
    columns = ceil_div(strips, std::clamp<int64_t>(ceil_div(wanted, blocks), 1, strips)) * kTileColumns;
    groups = ceil_div(n, columns);
  }
};

/// Rows and columns [i, i + m) and [j, j + n) of the result; `strip(r, j)` gives a packed strip.
template <class T, class Strip>
void multiply_block(const Runs<T>& runs, const Left<T>& left, int64_t i, int64_t m, int64_t j, int64_t n, T alpha,
                    const T* row, T beta, T* c, int64_t ldc, const Strip& strip) {
  for (int64_t r = 0; r < runs.count; ++r) {
    poll_signals();
    const int64_t length = runs.length(r);
    const T* const a = left.at(r, i, length);
    for (int64_t at = j; at < j + n; at += kTileColumns)
      tiles<T>().multiply(m, std::min(kTileColumns, j + n - at), length, alpha, a, strip(r, at),
                          r == 0 && row ? row + at : nullptr, r == 0 ? beta : T(1), c + i * ldc + at, ldc);
  }
}

/// A product whose left operand is laid out as a whole.
template <class T>
void multiply_part(int64_t m, int64_t n, int64_t k, T alpha, Operand<T> a, Operand<T> b, T beta, T* c, int64_t ldc,
                   const T* row) {
  const Runs<T> runs(k);
  const Cut<T> cut(m, n, k);
  std::optional<TiledRight<T>> right;
  if (cut.blocks > 1 && n * k <= kMostRight) right.emplace(n, k, b);
  const Left<T> left(m, runs, a);
  parallel_for(cut.blocks * cut.groups, 1, [&](int64_t begin, int64_t end) {
    alignas(64) T room[kLongestRun<T> * kTileColumns];
    for (int64_t task = begin; task < end; ++task) {
      const int64_t i = task / cut.groups * cut.rows, j = task % cut.groups * cut.columns,
                    columns = std::min(cut.columns, n - j);
      multiply_block(runs, left, i, std::min(cut.rows, m - i), j, columns, alpha, row, beta, c, ldc,
                     [&](int64_t r, int64_t at) -> const T* {
                       if (right) return right->strip(r, at);
                       const Operand<T> from = part(b, runs.from(r), at);
                       tiles<T>().pack_right(from.data, from.ld, from.transposed, runs.length(r),
                                             std::min(kTileColumns, n - at), room);
                       return room;
                     });
    }
  });
}

}  // namespace

template <class T>
bool worth_tiles(int64_t m, int64_t n, int64_t k, bool transposed) {
  if (!tiles<T>().multiply) return false;
  // Measured: OpenBLAS's kernels for small products are as fast, but where the right operand stands transposed.
  if constexpr (std::is_same_v<T, double>)
    return m >= kTileRows<T> && n >= 64 && k >= 32 && (transposed || m * n * k > kSmallWork);
  // Measured: with AVX2 oneDNN's sgemm reads operands in place where it can, by up to a fifth faster than from tiles,
  // but where their rows lie far apart takes up to twice as long.
  return m >= kTileRows<T> && k >= 32 && (transposed ? n >= kTileColumns && m <= 48 : n >= 256);
}
bool worth_tiles_of_right(int64_t m, int64_t n, int64_t k) {
  return tiles<float>().multiply && m >= kTileRows<float> && n >= kTileColumns && k >= 32;
}

template <class T>
void tiled_gemm(int64_t m, int64_t n, int64_t k, T alpha, Operand<T> a, Operand<T> b, T beta, T* c, int64_t ldc,
                const T* row) {
  const int64_t longest = std::min(k, kLongestPart), most = std::max(kBlockRows, kMostLeft / longest);
  for (int64_t i = 0; i < m; i += most)
    for (int64_t p = 0; p < k; p += longest)
      multiply_part(std::min(most, m - i), n, std::min(longest, k - p), alpha, part(a, i, p), part(b, p, 0),
                    p == 0 ? beta : T(1), c + i * ldc, ldc, p == 0 ? row : nullptr);
}

template <class T>
TiledRight<T>::TiledRight(int64_t n, int64_t k, Operand<T> b) : n_(n), k_(k), step_(Runs<T>(k).step) {
  const Runs<T> runs(k);
  const int64_t strips = ceil_div(n, kTileColumns);
  packed_ = empty(Shape{runs.count * runs.step * strips * kTileColumns}, dtype_of<T>);
  parallel_for(runs.count * strips, 8, [&](int64_t begin, int64_t end) {
    for (int64_t s = begin; s < end; ++s) {
      const int64_t r = s / strips, j = s % strips * kTileColumns;
      const Operand<T> from = part(b, runs.from(r), j);
      tiles<T>().pack_right(from.data, from.ld, from.transposed, runs.length(r), std::min(kTileColumns, n - j),
                            packed_.data<T>() + s * runs.step * kTileColumns);
    }
  });
}

template <class T>
const T* TiledRight<T>::strip(int64_t run, int64_t column) const {
  return packed_.data<T>() + (run * ceil_div(n_, kTileColumns) + column / kTileColumns) * step_ * kTileColumns;
}

template <class T>
void TiledRight<T>::multiply(int64_t m, const T* a, int64_t lda, T* c, const T* row) const {
  const Runs<T> runs(k_);
  const Left<T> left(m, runs, {a, lda});
  const int64_t step = ceil_div(ceil_div(n_, kTileColumns), 8) * kTileColumns;
  parallel_for(ceil_div(n_, step), 1, [&](int64_t begin, int64_t end) {
    for (int64_t j = begin * step; j < std::min(n_, end * step); j += step)
      multiply_block(runs, left, 0, m, j, std::min(step, n_ - j), T(1), row, T(0), c, n_,
                     [&](int64_t r, int64_t at) { return strip(r, at); });
  });
}

template class TiledRight<float>;
template bool worth_tiles<float>(int64_t, int64_t, int64_t, bool);
template bool worth_tiles<double>(int64_t, int64_t, int64_t, bool);
template void tiled_gemm<float>(int64_t, int64_t, int64_t, float, Operand<float>, Operand<float>, float, float*,
                                int64_t, const float*);
template void tiled_gemm<double>(int64_t, int64_t, int64_t, double, Operand<double>, Operand<double>, double, double*,
                                 int64_t, const double*);

}  // namespace taeda::blas
