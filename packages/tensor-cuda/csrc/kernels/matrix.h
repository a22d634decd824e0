// Products of matrices, by tiles in shared memory.
#pragma once
#include "kernels/launch.h"

namespace taeda::cuda {

/// A batch of matrices as it lies: element (b, i, j).
struct Matrices {
  Array array;
  int64_t steps[3];
  TAEDA_HD int64_t place(int64_t b, int64_t i, int64_t j) const { return b * steps[0] + i * steps[1] + j * steps[2]; }
};
/// out = a @ b, to which `base` times beta is added where it is given: (n, k) by (k, m).
struct Product3 {
  Matrices a, b, out, base;
  int64_t n, k, m, tiles_n, tiles_m;
  Number alpha, beta;
};
template <class C>
TAEDA_HD inline C multiply_add(C a, C b, C sum) {
  if constexpr (is_same<C, float>) return fmaf(a, b, sum);
  else if constexpr (is_same<C, double>) return fma(a, b, sum);
  else return C(sum + a * b);
}
/// A block computes a tile of 64 by 64, a thread 4 by 4 of it; factors come in slices of 16.
template <class C>
struct MatrixProduct {
  static constexpr int kThreads = 256, kTile = 64, kSlice = 16, kEach = 4, kAcross = kTile / kEach;
  Product3 p;
  struct Shared {
    C a[kSlice][kTile + 1], b[kSlice][kTile + 1];
  };
  struct Own {
    C sums[kEach][kEach];
  };
  TAEDA_HD int64_t slices() const { return (p.k + kSlice - 1) / kSlice; }
  TAEDA_HD int phases() const { return int(2 * slices() + 1); }
  TAEDA_HD void run(int phase, int64_t item, int thread, Shared& shared, Own& own) const {
    const int64_t column = item % p.tiles_m * kTile, row = item / p.tiles_m % p.tiles_n * kTile;
    const int64_t batch = item / (p.tiles_m * p.tiles_n);
    const int across = thread % kAcross, down = thread / kAcross;
    if (phase == 0)
      for (auto& line : own.sums)
        for (C& sum : line) sum = C(0);
    if (phase == phases() - 1) return finish(batch, row + down, column + across, own);
    if (phase % 2 == 0) return fetch(batch, row, column, phase / 2 * int64_t(kSlice), thread, shared);
    for (int s = 0; s < kSlice; ++s) {
      C x[kEach], y[kEach];
      TAEDA_UNROLL
      for (int e = 0; e < kEach; ++e) {
        x[e] = shared.a[s][down + e * kAcross];
        y[e] = shared.b[s][across + e * kAcross];
      }
      TAEDA_UNROLL
      for (int i = 0; i < kEach; ++i) {
        TAEDA_UNROLL
        for (int j = 0; j < kEach; ++j) own.sums[i][j] = multiply_add<C>(x[i], y[j], own.sums[i][j]);
      }
    }
  }
  /// Neighbouring threads read what lies beside each other in memory.
  TAEDA_HD void fetch(int64_t batch, int64_t row, int64_t column, int64_t depth, int thread, Shared& shared) const {
    const bool a_down = p.a.steps[1] == 1, b_down = p.b.steps[1] == 1;
    for (int e = thread; e < kTile * kSlice; e += kThreads) {
      const int r = a_down ? e % kTile : e / kSlice, s = a_down ? e / kTile : e % kSlice;
      const bool there = row + r < p.n && depth + s < p.k;
      shared.a[s][r] = there ? load<C>(p.a.array, p.a.place(batch, row + r, depth + s)) : C(0);
    }
    for (int e = thread; e < kTile * kSlice; e += kThreads) {
      const int c = b_down ? e / kSlice : e % kTile, s = b_down ? e % kSlice : e / kTile;
      const bool there = depth + s < p.k && column + c < p.m;
      shared.b[s][c] = there ? load<C>(p.b.array, p.b.place(batch, depth + s, column + c)) : C(0);
    }
  }
  TAEDA_HD void finish(int64_t batch, int64_t row, int64_t column, const Own& own) const {
    const C alpha = p.alpha.as<C>(), beta = p.beta.as<C>();
    TAEDA_UNROLL
    for (int i = 0; i < kEach; ++i) {
      TAEDA_UNROLL
      for (int j = 0; j < kEach; ++j) {
        const int64_t r = row + i * kAcross, c = column + j * kAcross;
        if (r >= p.n || c >= p.m) continue;
        C value = own.sums[i][j];
        if (p.base.array.data) {
          value = C(alpha * value);
          if (beta != C(0)) value = C(value + beta * load<C>(p.base.array, p.base.place(batch, r, c)));
        }
        store<C>(p.out.array, p.out.place(batch, r, c), value);
      }
    }
  }
};

}  // namespace taeda::cuda
