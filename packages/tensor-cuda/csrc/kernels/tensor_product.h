// Products of matrices of halves on tensor cores.
#pragma once
#include "kernels/elementwise.h"
#include "kernels/fragments.h"
#include "kernels/matrix.h"

namespace taeda::cuda {

/// A block computes a tile of 128 by 128, a warp 32 rows of it; factors come in slices of 64, the next while one is
/// multiplied, with the elements that are multiplied beside each other.
template <class T>
struct TensorProduct {
  static constexpr int kWarps = 4, R = 2, kRows = kWarps * 16 * R, kColumns = 128, kSlice = 64;
  static constexpr int kThreads = kWarps * kLanes;
  struct Slice {
    ChunkedRows<T, kRows, kSlice> a;
    ChunkedRows<T, kColumns, kSlice> b;
  };
  union Shared {
    Slice slices[2];
    float sums[kRows][kColumns + 8];  // at the end; eight more, so that rows lie in different banks
  };
  struct Own {
    float sums[R][kColumns / 8][4];
    uint32_t left[R][4], right[4];
  };
  Product3 p;  // whose tiles are of this size
  int32_t packs_a, packs_b;

  TAEDA_HD int slices() const { return int((p.k + kSlice - 1) / kSlice); }
  TAEDA_HD int phases(int64_t) const { return slices() + 3; }
  TAEDA_HD void run(int phase, int64_t item, int warp, const Warp<Own>& lanes, Shared& shared) const {
    const int64_t down = quotient(item, p.tiles_m), batch = quotient(down, p.tiles_n);
    const int column = int(item - down * p.tiles_m) * kColumns, row = int(down - batch * p.tiles_n) * kRows;
    if (phase == 0) lanes.each([](int, Own& own) { set_zero(own.sums); });
    if (phase < slices()) fetch(batch, row, column, phase, warp, lanes, shared.slices[phase % 2]);
    if (phase == slices() + 1) put(warp, lanes, shared);
    if (phase == slices() + 2) return finish(batch, row, column, warp, lanes, shared);
    if (phase == 0 || phase > slices()) return;
    const Slice& slice = shared.slices[(phase - 1) % 2];
    multiply_rows<T, R>(lanes, slice.a, warp * 16 * R, slice.b, [](Own& own) -> auto& { return own.sums; });
  }

 private:
  TAEDA_HD void fetch(int64_t batch, int row, int column, int slice, int warp, const Warp<Own>& lanes,
                      Slice& to) const {
    const int depth = slice * kSlice, width = int(p.k) - depth;
    const Matrices &a = p.a, &b = p.b;
    MatrixRows<T>{at<T>(a.array.data) + a.place(batch, 0, depth), a.steps[1], a.steps[2], int(p.n), width, packs_a}
        .fetch(lanes, warp, kThreads, row, to.a);
    MatrixRows<T>{at<T>(b.array.data) + b.place(batch, depth, 0), b.steps[2], b.steps[1], int(p.m), width, packs_b}
        .fetch(lanes, warp, kThreads, column, to.b);
  }
  TAEDA_HD void put(int warp, const Warp<Own>& lanes, Shared& shared) const {
    lanes.each([&](int lane, Own& own) {
      TAEDA_UNROLL
      for (int r = 0; r < R; ++r) {
        TAEDA_UNROLL
        for (int j = 0; j < kColumns / 8; ++j) {
          TAEDA_UNROLL
          for (int i = 0; i < 4; ++i)
            shared.sums[(warp * R + r) * 16 + row_of(lane, i)][j * 8 + column_of(lane, i)] = own.sums[r][j][i];
        }
      }
    });
  }
  TAEDA_HD void finish(int64_t batch, int row, int column, int warp, const Warp<Own>& lanes,
                       const Shared& shared) const {
    const float alpha = p.alpha.as<float>(), beta = p.beta.as<float>();
    lanes.each([&](int lane, Own&) {
      for (int i = warp * kLanes + lane; i < kRows * kColumns; i += kThreads) {
        const int64_t r = row + i / kColumns, c = column + i % kColumns;
        if (r >= p.n || c >= p.m) continue;
        float value = shared.sums[i / kColumns][i % kColumns];
        if (p.base.array.data) {
          value *= alpha;
          if (beta != 0) value += beta * load<float>(p.base.array, p.base.place(batch, r, c));
        }
        store<float>(p.out.array, p.out.place(batch, r, c), value);
      }
    });
  }
};

}  // namespace taeda::cuda
