// Attention and its gradients without scores in memory: after Dao et al., "FlashAttention", 2022.
//
// A thread goes through all keys for a row of its own (or, for gradients of keys, through all queries), tile by tile. A
// block's threads load a tile's vectors together, in pieces of so many elements.
#pragma once
#include "kernels/elementwise.h"

namespace taeda::cuda {

/// (N, H, rows, elements) as it lies.
struct Heads {
  Array array;
  int64_t strides[4];
  TAEDA_HD int64_t place(int64_t n, int64_t h, int64_t row, int64_t e) const {
    return n * strides[0] + h * strides[1] + row * strides[2] + e * strides[3];
  }
  template <class C>
  TAEDA_HD C get(int64_t n, int64_t h, int64_t row, int64_t e) const {
    return load<C>(array, place(n, h, row, e));
  }
};
struct Attended {
  Heads query, key, value, mask;  // a mask's array may be absent; bool ones say what is seen
  Heads result;
  Array logsumexp;  // row-major (N, H, L)
  int64_t heads, key_heads, queries, keys, width, value_width;
  double scale;
  int32_t causal, reserved;

  /// Heads of queries for each of keys and values.
  TAEDA_HD int64_t group() const { return heads / key_heads; }
  TAEDA_HD bool sees(int64_t n, int64_t h, int64_t q, int64_t k) const {
    if (causal && k > q) return false;
    return !mask.array.data || mask.array.dtype != TAEDA_BOOL || mask.get<bool>(n, h, q, k);
  }
  template <class C>
  TAEDA_HD C added(int64_t n, int64_t h, int64_t q, int64_t k) const {
    return mask.array.data && mask.array.dtype != TAEDA_BOOL ? mask.get<C>(n, h, q, k) : C(0);
  }
};
inline constexpr int kAttentionThreads = 64, kTile = 32, kPiece = 32;

/// Which rows a block has: one of `tiles` portions of a head's rows, and a piece of the output's elements.
struct AttentionItem {
  int64_t n, h, row, piece;
  TAEDA_HD AttentionItem(int64_t item, int thread, int64_t heads, int64_t rows, int64_t pieces) {
    const int64_t tiles = (rows + kAttentionThreads - 1) / kAttentionThreads;
    piece = item % pieces;
    item /= pieces;
    row = item % tiles * kAttentionThreads + thread;
    item /= tiles;
    h = item % heads;
    n = item / heads;
  }
};
TAEDA_HD inline int64_t pieces_of(int64_t width) { return width > 0 ? (width + kPiece - 1) / kPiece : 1; }

/// Vectors of a tile, a piece of each.
template <class C>
struct Tile {
  C of[kTile][kPiece];
  TAEDA_HD void load_from(const Heads& from, int64_t n, int64_t h, int thread, int64_t first, int64_t rows,
                          int64_t piece, int64_t width) {
    for (int i = thread; i < kTile * kPiece; i += kAttentionThreads) {
      const int64_t row = first + i / kPiece, e = piece * kPiece + i % kPiece;
      of[i / kPiece][i % kPiece] = row < rows && e < width ? from.get<C>(n, h, row, e) : C(0);
    }
  }
  /// Adds the products of a piece of a row with those of all vectors.
  TAEDA_HD void multiply(const Heads& own, const AttentionItem& at, int64_t piece, int64_t width, C (&sums)[kTile]) {
    for (int e = 0; e < kPiece && piece * kPiece + e < width; ++e) {
      const C x = own.get<C>(at.n, at.h, at.row, piece * kPiece + e);
      TAEDA_UNROLL
      for (int j = 0; j < kTile; ++j) sums[j] += x * of[j][e];
    }
  }
};

template <class C>
struct Attention {
  static constexpr int kThreads = kAttentionThreads;
  using Shared = Tile<C>;
  struct Own {
    C scores[kTile], out[kPiece], largest, sum;
  };
  Attended a;
  /// For each tile the keys' pieces, each loaded and then used, and the values' one piece.
  TAEDA_HD int per_tile() const { return int(2 * pieces_of(a.width) + 2); }
  TAEDA_HD int phases() const { return int((a.keys + kTile - 1) / kTile) * per_tile() + 1; }
  TAEDA_HD void run(int phase, int64_t item, int thread, Shared& tile, Own& own) const {
    const AttentionItem at(item, thread, a.heads, a.queries, pieces_of(a.value_width));
    const int64_t first = int64_t(phase / per_tile()) * kTile;
    const int turn = phase % per_tile(), last = per_tile() - 2;
    if (phase == 0) {
      own.largest = -loops::TAEDA_ISA::kInfinity<C>, own.sum = C(0);
      for (int e = 0; e < kPiece; ++e) own.out[e] = C(0);
    }
    if (phase == phases() - 1) return finish(at, own);
    if (turn == 0)
      for (int j = 0; j < kTile; ++j) own.scores[j] = C(0);
    const int64_t shared = at.h / a.group();
    if (turn == last) tile.load_from(a.value, at.n, shared, thread, first, a.keys, at.piece, a.value_width);
    else if (turn % 2 == 0) tile.load_from(a.key, at.n, shared, thread, first, a.keys, turn / 2, a.width);
    else if (at.row < a.queries && turn < last) tile.multiply(a.query, at, turn / 2, a.width, own.scores);
    else if (at.row < a.queries) take_in(at, first, tile, own);
  }

 private:
  TAEDA_HD void take_in(const AttentionItem& at, int64_t first, Shared& tile, Own& own) const {
    C largest = own.largest;
    for (int j = 0; j < kTile && first + j < a.keys; ++j) {
      if (!a.sees(at.n, at.h, at.row, first + j)) continue;
      const C s = own.scores[j] = own.scores[j] * C(a.scale) + a.template added<C>(at.n, at.h, at.row, first + j);
      if (s > largest || s != s) largest = s;
    }
    if (largest == -loops::TAEDA_ISA::kInfinity<C>) return;
    const C shrink = C(loops::TAEDA_ISA::vexp(own.largest - largest));
    own.largest = largest, own.sum *= shrink;
    for (int e = 0; e < kPiece; ++e) own.out[e] *= shrink;
    for (int j = 0; j < kTile && first + j < a.keys; ++j) {
      if (!a.sees(at.n, at.h, at.row, first + j)) continue;
      const C p = C(loops::TAEDA_ISA::vexp(own.scores[j] - largest));
      own.sum += p;
      TAEDA_UNROLL
      for (int e = 0; e < kPiece; ++e) own.out[e] += p * tile.of[j][e];
    }
  }
  TAEDA_HD void finish(const AttentionItem& at, Own& own) const {
    if (at.row >= a.queries) return;
    const int64_t row = (at.n * a.heads + at.h) * a.queries + at.row;
    const bool blind = own.largest == -loops::TAEDA_ISA::kInfinity<C>;
    for (int e = 0; e < kPiece && at.piece * kPiece + e < a.value_width; ++e)
      store<C>(a.result.array, a.result.place(at.n, at.h, at.row, at.piece * kPiece + e),
               blind ? C(0) : own.out[e] / own.sum);
    if (at.piece == 0)
      store<C>(a.logsumexp, row, blind ? own.largest : own.largest + C(loops::TAEDA_ISA::vlog(own.sum)));
  }
};

/// What of a row's gradient is the same for all keys: the sum of grad * result.
template <class C>
struct AttentionShares {
  Heads grad, result;
  Array out;  // row-major (N, H, L)
  int64_t heads, queries, width;
  TAEDA_HD void operator()(int64_t i) const {
    const int64_t row = i % queries, h = i / queries % heads, n = i / queries / heads;
    C sum(0);
    for (int64_t e = 0; e < width; ++e) sum += grad.get<C>(n, h, row, e) * result.get<C>(n, h, row, e);
    store<C>(out, i, sum);
  }
};
/// Whose gradient: a query's is made of keys, a key's of queries, a value's of gradients.
enum class Slope : int32_t { Query, Key, Value };
template <class C>
struct AttentionGradient {
  static constexpr int kThreads = kAttentionThreads;
  using Shared = Tile<C>;
  struct Own {
    C scores[kTile], ups[kTile], out[kPiece];
  };
  Attended a;
  Heads grad;
  Array shares, out;  // `out` is row-major
  Slope of;

  TAEDA_HD bool by_query() const { return of == Slope::Query; }
  TAEDA_HD int64_t own_heads() const { return by_query() ? a.heads : a.key_heads; }
  TAEDA_HD int64_t own_rows() const { return by_query() ? a.queries : a.keys; }
  TAEDA_HD int64_t other_rows() const { return by_query() ? a.keys : a.queries; }
  TAEDA_HD int64_t out_width() const { return of == Slope::Value ? a.value_width : a.width; }
  /// Pieces for the scores, pieces for the products of grad and value, one piece of what is summed.
  TAEDA_HD int per_tile() const { return int(2 * (pieces_of(a.width) + pieces_of(a.value_width) + 1)); }
  /// Of the other rows of a head; those of all heads that have a part in it are gone through.
  TAEDA_HD int tiles() const { return int((other_rows() + kTile - 1) / kTile); }
  TAEDA_HD int phases() const { return tiles() * int(by_query() ? 1 : a.group()) * per_tile() + 1; }
  TAEDA_HD void run(int phase, int64_t item, int thread, Shared& tile, Own& own) const {
    const AttentionItem at(item, thread, own_heads(), own_rows(), pieces_of(out_width()));
    const int turn = phase % per_tile(), scores = int(2 * pieces_of(a.width)), last = per_tile() - 2;
    if (phase == 0)
      for (int e = 0; e < kPiece; ++e) own.out[e] = C(0);
    if (phase == phases() - 1) return finish(at, own);
    const int whole = phase / per_tile() / tiles();
    const int64_t first = int64_t(phase / per_tile() - whole * tiles()) * kTile,
                  h = by_query() ? at.h / a.group() : at.h * a.group() + whole;
    if (turn == 0)
      for (int j = 0; j < kTile; ++j) own.scores[j] = own.ups[j] = C(0);
    const bool here = at.row < own_rows();
    if (turn < scores) {
      if (turn % 2 == 0)
        tile.load_from(by_query() ? a.key : a.query, at.n, h, thread, first, other_rows(), turn / 2, a.width);
      else if (here) tile.multiply(by_query() ? a.query : a.key, at, turn / 2, a.width, own.scores);
    } else if (turn < last) {
      const int piece = (turn - scores) / 2;
      if (turn % 2 == 0)
        tile.load_from(by_query() ? a.value : grad, at.n, h, thread, first, other_rows(), piece, a.value_width);
      else if (here) tile.multiply(by_query() ? grad : a.value, at, piece, a.value_width, own.ups);
    } else if (turn == last) {
      const Heads& from = of == Slope::Query ? a.key : of == Slope::Key ? a.query : grad;
      tile.load_from(from, at.n, h, thread, first, other_rows(), at.piece, out_width());
    } else if (here) {
      add(at, by_query() ? at.h : h, first, tile, own);
    }
  }

 private:
  /// `h`: of the queries.
  TAEDA_HD void add(const AttentionItem& at, int64_t h, int64_t first, Shared& tile, Own& own) const {
    for (int j = 0; j < kTile && first + j < other_rows(); ++j) {
      const int64_t q = by_query() ? at.row : first + j, k = by_query() ? first + j : at.row;
      if (!a.sees(at.n, h, q, k)) continue;
      const int64_t row = (at.n * a.heads + h) * a.queries + q;
      const C lse = load<C>(a.logsumexp, row);
      if (lse == -loops::TAEDA_ISA::kInfinity<C>) continue;
      C x = C(loops::TAEDA_ISA::vexp(own.scores[j] * C(a.scale) + a.template added<C>(at.n, h, q, k) - lse));
      if (of != Slope::Value) x *= (own.ups[j] - load<C>(shares, row)) * C(a.scale);
      TAEDA_UNROLL
      for (int e = 0; e < kPiece; ++e) own.out[e] += x * tile.of[j][e];
    }
  }
  TAEDA_HD void finish(const AttentionItem& at, Own& own) const {
    if (at.row >= own_rows()) return;
    const int64_t row = (at.n * own_heads() + at.h) * own_rows() + at.row;
    for (int e = 0; e < kPiece && at.piece * kPiece + e < out_width(); ++e)
      store<C>(out, row * out_width() + at.piece * kPiece + e, own.out[e]);
  }
};

}  // namespace taeda::cuda
