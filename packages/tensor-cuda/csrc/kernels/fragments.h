// Products of matrices of halves that lie in shared memory, a warp's part of them: by tensor cores.
#pragma once
#include "kernels/launch.h"

namespace taeda::cuda {

/// 16 bytes of elements.
template <class T>
struct alignas(16) Chunk {
  static constexpr int kElements = 16 / int(sizeof(T));
  T of[kElements];
};
/// N rows of W elements, in chunks whose order differs from row to row, so that the same chunk of eight rows in line
/// lies in all banks of shared memory. Of a place, that which is an even number of chunks and 8 n rows further on is
/// one exclusive or and one sum away, whatever the place: threads keep one number and add what is the same for all.
template <class T, int N, int W>
struct ChunkedRows {
  static constexpr int kRows = N, kChunks = W / Chunk<T>::kElements;
  static_assert(kChunks % 8 == 0);
  Chunk<T> chunks[N * kChunks];
  TAEDA_HD static int place(int row, int c) { return row * kChunks + (c ^ (row & 7)); }
  /// From a place in the first 16 rows and the first two chunks.
  TAEDA_HD static int further(int place, int rows, int even) { return (place ^ even) + rows * kChunks; }
  TAEDA_HD Chunk<T>& chunk(int row, int c) { return chunks[place(row, c)]; }
  TAEDA_HD const Chunk<T>& chunk(int row, int c) const { return chunks[place(row, c)]; }
};

/// Rows in the device's memory; `packs`: in chunks that begin at multiples of 16 bytes.
template <class T>
struct MatrixRows {
  T* data;
  int64_t step, element_step;
  int32_t rows, width, packs;
  TAEDA_HD Chunk<T> gathered(int row, int first) const {
    Chunk<T> made;
    TAEDA_UNROLL
    for (int e = 0; e < Chunk<T>::kElements; ++e)
      made.of[e] = row < rows && first + e < width ? data[row * step + (first + e) * element_step] : T{0};
    return made;
  }
  /// Rows from `first` on to shared memory, by `threads` threads; zeros beyond the rows and elements that there are.
  template <class Own, int N, int W>
  TAEDA_HD void fetch(const Warp<Own>& lanes, int warp, int threads, int first, ChunkedRows<T, N, W>& to) const {
    constexpr int kChunks = ChunkedRows<T, N, W>::kChunks;
    lanes.each([&](int lane, Own&) {
      const int thread = warp * kLanes + lane;
      if (!packs) {
        for (int i = thread; i < N * kChunks; i += threads)
          to.chunk(i % N, i / N) = gathered(first + i % N, i / N * Chunk<T>::kElements);
        return;
      }
      TAEDA_UNROLL
      for (int i = 0; i < N * kChunks; i += threads) {
        const int row = (i + thread) / kChunks, c = (i + thread) % kChunks, e = c * Chunk<T>::kElements;
        const bool there = first + row < rows && e < width;
        lanes.fetch({&to.chunk(row, c), there ? data + (first + row) * step + e : data, there});
      }
    });
  }
  /// Rows from shared memory to rows from `first` on.
  template <class Own, int N, int W>
  TAEDA_HD void put(const Warp<Own>& lanes, int warp, int threads, int first, const ChunkedRows<T, N, W>& from) {
    constexpr int kChunks = ChunkedRows<T, N, W>::kChunks;
    lanes.each([&](int lane, Own&) {
      for (int i = warp * kLanes + lane; i < N * kChunks; i += threads) {
        const int row = first + i / kChunks;
        const int e = i % kChunks * Chunk<T>::kElements;
        if (row >= rows || e >= width) continue;
        const Chunk<T> chunk = from.chunk(i / kChunks, i % kChunks);
        if (packs) {
          *reinterpret_cast<Chunk<T>*>(data + row * step + e) = chunk;
        } else {
          TAEDA_UNROLL
          for (int j = 0; j < Chunk<T>::kElements; ++j)
            if (e + j < width) data[row * step + (e + j) * element_step] = chunk.of[j];
        }
      }
    });
  }
};

// What follows takes functions from a thread's state to arrays in it: sums[r][j] is its part of the 16 by 8 sums of
// rows 16 r and columns 8 j on. `left` and `right` are its parts of the factors.

/// sums += a b^T, of 16 R rows of `a` from `row` on and all rows of `b`.
template <class T, int R, class Own, class A, int N, int W, class Sums>
TAEDA_HD inline void multiply_rows(const Warp<Own>& lanes, const A& a, int row, const ChunkedRows<T, N, W>& b,
                                   const Sums& sums) {
  TAEDA_UNROLL
  for (int k = 0; k < W / 16; ++k) {
    TAEDA_UNROLL
    for (int r = 0; r < R; ++r)
      lanes.template read<false>([&](int lane, Own& own) -> MatrixRead {
        return {&a.chunks[a.further(a.place(lane % 16, lane / 16), row + r * 16, 2 * k)], own.left[r]};
      });
    TAEDA_UNROLL
    for (int n = 0; n < N / 16; ++n) {
      lanes.template read<false>([&](int lane, Own& own) -> MatrixRead {
        return {&b.chunks[b.further(b.place(lane / 16 * 8 + lane % 8, lane / 8 % 2), n * 16, 2 * k)], own.right};
      });
      TAEDA_UNROLL
      for (int of = 0; of < 2; ++of) {
        TAEDA_UNROLL
        for (int r = 0; r < R; ++r)
          lanes.template multiply<T>([&](Own& own) -> Factors {
            return {sums(own)[r][2 * n + of], own.left[r], {own.right[2 * of], own.right[2 * of + 1]}};
          });
      }
    }
  }
}
/// sums += left b, where left[r][k] are rows 16 r and columns 16 k on of the left factor.
template <class T, int R, class Own, int N, int W, class Left, class Sums>
TAEDA_HD inline void multiply_columns(const Warp<Own>& lanes, const Left& left, const ChunkedRows<T, N, W>& b,
                                      const Sums& sums) {
  TAEDA_UNROLL
  for (int k = 0; k < N / 16; ++k) {
    TAEDA_UNROLL
    for (int n = 0; n < W / 16; ++n) {
      lanes.template read<true>([&](int lane, Own& own) -> MatrixRead {
        return {&b.chunks[b.further(b.place(lane % 16, lane / 16), k * 16, 2 * n)], own.right};
      });
      TAEDA_UNROLL
      for (int of = 0; of < 2; ++of) {
        TAEDA_UNROLL
        for (int r = 0; r < R; ++r)
          lanes.template multiply<T>([&](Own& own) -> Factors {
            return {sums(own)[r][2 * n + of], left(own)[r][k], {own.right[2 * of], own.right[2 * of + 1]}};
          });
      }
    }
  }
}
/// Where an element of a thread's 16 by 8 sums lies.
TAEDA_HD inline int row_of(int lane, int i) { return lane / 4 + i / 2 * 8; }
TAEDA_HD inline int column_of(int lane, int i) { return lane % 4 * 2 + i % 2; }
/// Elements i and i + 1 of sums j are a part of a left factor: that of columns 16 (j / 2) on.
TAEDA_HD inline int left_of(int j, int i) { return j % 2 * 2 + i / 2; }

template <int R, int N>
TAEDA_HD inline void set_zero(float (&sums)[R][N][4]) {
  TAEDA_UNROLL
  for (int r = 0; r < R; ++r) {
    TAEDA_UNROLL
    for (int j = 0; j < N; ++j) {
      TAEDA_UNROLL
      for (int i = 0; i < 4; ++i) sums[r][j][i] = 0;
    }
  }
}

}  // namespace taeda::cuda
