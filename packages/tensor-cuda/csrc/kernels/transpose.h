// Copies that turn matrices: what lies beside each other in one lies apart in the other.
#pragma once
#include "kernels/elementwise.h"

namespace taeda::cuda {

/// Elements of `Size` bytes as they are.
template <int Size>
struct alignas(Size) Bytes {
  char bytes[Size];
};
/// A batch of matrices (rows, columns) whose rows lie beside each other in `from`, and whose columns do in `to`; a
/// block takes a tile of each through shared memory, so that both are met in order.
template <int Size>
struct Transpose {
  static constexpr int kThreads = 256, kTile = 32, kAtOnce = kThreads / kTile;
  using T = Bytes<Size>;
  struct Shared {
    T tile[kTile][kTile + 1];  // one more, so that a column lies in different banks
  };
  struct Own {};
  Address from, to;
  int64_t rows, columns, from_batch, to_batch, from_column, to_row;
  TAEDA_HD int phases() const { return 2; }
  TAEDA_HD void run(int phase, int64_t item, int thread, Shared& shared, Own&) const {
    const int64_t tiles = (columns + kTile - 1) / kTile, across = (rows + kTile - 1) / kTile;
    const int64_t place = quotient(item, tiles), batch = quotient(place, across);
    const int64_t column = (item - place * tiles) * kTile, row = (place - batch * across) * kTile;
    const int beside = thread % kTile;
    for (int j = thread / kTile; j < kTile; j += kAtOnce) {
      const bool reads = phase == 0;
      const int64_t r = row + (reads ? beside : j), c = column + (reads ? j : beside);
      if (r >= rows || c >= columns) continue;
      if (reads) shared.tile[j][beside] = at<const T>(from)[batch * from_batch + r + c * from_column];
      else at<T>(to)[batch * to_batch + r * to_row + c] = shared.tile[beside][j];
    }
  }
};

}  // namespace taeda::cuda
