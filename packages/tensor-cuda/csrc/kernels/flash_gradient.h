// Gradients of attention on tensor cores, with weights that are made anew from the logarithms of their sums.
//
// Both kernels do the same with their own rows A and the other rows B: from the products of queries and keys and of
// gradients and values, weights P and slopes S = P (up - share); then the gradient of A gains S B, and that of values
// gains P B where keys and values are the block's own. Each adds in an order of its own, so bits do not change.
#pragma once
#include "kernels/flash.h"

namespace taeda::cuda {

template <class T, int W, bool ByQuery>
struct FlashGradient {
  // Sums of 16 R rows by W stay in registers, two of them where keys and values are the block's own.
  static constexpr int kWarps = 4, R = ByQuery || W == 64 ? 2 : 1, kOwn = kWarps * 16 * R, kThreads = kWarps * kLanes;
  static constexpr int kTile = R == 2 ? 32 : 64;
  struct Statistics {
    float logsumexp, share;
  };
  struct Shared {
    ChunkedRows<T, kOwn, W> own, own_ups;  // queries and gradients, or keys and values; gradients at the end
    ChunkedRows<T, kTile, W> others[2], other_ups[2];
    Statistics rows[2][ByQuery ? 1 : kTile];
  };
  struct Own {
    float sums[R][W / 8][4], value_sums[ByQuery ? 1 : R][W / 8][4];
    float scores[R][kTile / 8][4], ups[R][kTile / 8][4];
    uint32_t slopes[R][kTile / 16][4], shares[R][kTile / 16][4], left[R][4], right[4];
    Statistics rows[R][2], next;
  };
  Seen seen;
  HeadRows query, key, value, grad;
  HeadRows out, value_out;  // whose addresses may be absent
  Address logsumexp, shares;

  TAEDA_HD FlashItem place(int64_t item) const {
    return {item, ByQuery ? seen.heads : seen.shared(seen.heads), ByQuery ? seen.queries : out_rows(), kOwn,
            ByQuery && seen.causal};
  }
  /// Of keys that nobody sees too.
  TAEDA_HD int out_rows() const { return out.at.array.data ? out.rows : value_out.rows; }
  TAEDA_HD int first_tile(const FlashItem& at) const { return ByQuery || !seen.causal ? 0 : at.first / kTile; }
  /// Of the other rows of a head.
  TAEDA_HD int tiles(const FlashItem& at) const {
    int end = ByQuery ? seen.keys : seen.queries;
    if (ByQuery && seen.causal && at.first + kOwn < end) end = at.first + kOwn;
    const int count = (end + kTile - 1) / kTile - first_tile(at);
    return count > 0 ? count : 0;
  }
  /// Those of all heads that have a part in the block's.
  TAEDA_HD int all_tiles(int tiles) const { return ByQuery ? tiles : tiles * seen.group; }
  struct Others {
    int h, first, buffer;
  };
  TAEDA_HD Others others(const FlashItem& at, int tiles, int turn) const {
    const int head = ByQuery || seen.group == 1 ? 0 : turn / tiles;
    return {ByQuery ? seen.shared(at.h) : at.h * seen.group + head, (first_tile(at) + turn - head * tiles) * kTile,
            turn % 2};
  }
  TAEDA_HD int phases(int64_t item) const { return all_tiles(tiles(place(item))) + 2; }
  TAEDA_HD void run(int phase, int64_t item, int warp, const Warp<Own>& lanes, Shared& shared) const {
    const FlashItem at = place(item);
    const int in_head = tiles(at), count = all_tiles(in_head);
    if (phase > count) return put(at, warp, lanes, shared);
    if (phase == 0) begin(at, warp, lanes);
    if (phase == 0 && count > 0) {
      head_of<T>(ByQuery ? query : key, at.n, at.h).fetch(lanes, warp, kThreads, at.first, shared.own);
      head_of<T>(ByQuery ? grad : value, at.n, at.h).fetch(lanes, warp, kThreads, at.first, shared.own_ups);
    }
    if (phase < count) {
      const Others of = others(at, in_head, phase);
      head_of<T>(ByQuery ? key : query, at.n, of.h).fetch(lanes, warp, kThreads, of.first, shared.others[of.buffer]);
      head_of<T>(ByQuery ? value : grad, at.n, of.h)
          .fetch(lanes, warp, kThreads, of.first, shared.other_ups[of.buffer]);
      if constexpr (!ByQuery)
        lanes.each([&](int lane, Own& own) { own.next = statistics(at.n, of.h, of.first + warp * kLanes + lane); });
    }
    if (phase > 0) take_in(at, at.first + warp * 16 * R, warp, others(at, in_head, phase - 1), lanes, shared);
    if constexpr (!ByQuery)
      if (phase < count)
        lanes.each([&](int lane, Own& own) {
          const int thread = warp * kLanes + lane;
          if (thread < kTile) shared.rows[phase % 2][thread] = own.next;
        });
    if (phase == count) finish(warp, lanes, shared);
  }

 private:
  TAEDA_HD Statistics statistics(int n, int h, int q) const {
    if (q >= seen.queries) return {0, 0};
    const int64_t row = seen.row_of_all(n, h, q);
    const float found = cuda::at<const float>(logsumexp)[row];
    // Weights of rows that see nothing become 0.
    return {found == kBlind ? -kBlind : found, cuda::at<const float>(shares)[row]};
  }
  TAEDA_HD void begin(const FlashItem& at, int warp, const Warp<Own>& lanes) const {
    lanes.each([&](int lane, Own& own) {
      set_zero(own.sums);
      set_zero(own.value_sums);
      if constexpr (ByQuery) {
        TAEDA_UNROLL
        for (int r = 0; r < R; ++r) {
          TAEDA_UNROLL
          for (int half = 0; half < 2; ++half)
            own.rows[r][half] = statistics(at.n, at.h, at.first + (warp * R + r) * 16 + row_of(lane, 2 * half));
        }
      }
    });
  }
  TAEDA_HD void take_in(const FlashItem& at, int row, int warp, const Others& of, const Warp<Own>& lanes,
                        Shared& shared) const {
    const int first = of.first, q = ByQuery ? row : first, k = ByQuery ? first : row;
    constexpr int kQueries = ByQuery ? 16 * R : kTile, kKeys = ByQuery ? kTile : 16 * R;
    if (q >= seen.queries || k >= seen.keys || seen.none(q + kQueries, k)) return;
    const auto &others = shared.others[of.buffer], &other_ups = shared.other_ups[of.buffer];
    lanes.each([](int, Own& own) { set_zero(own.scores), set_zero(own.ups); });
    multiply_rows<T, R>(lanes, shared.own, warp * 16 * R, others, [](Own& own) -> auto& { return own.scores; });
    multiply_rows<T, R>(lanes, shared.own_ups, warp * 16 * R, other_ups, [](Own& own) -> auto& { return own.ups; });
    if (seen.all(q, k + kKeys)) weigh<true>(at, row, of, lanes, shared);
    else weigh<false>(at, row, of, lanes, shared);
    multiply_columns<T, R>(
        lanes, [](Own& own) -> auto& { return own.slopes; }, others, [](Own& own) -> auto& { return own.sums; });
    if constexpr (!ByQuery)
      multiply_columns<T, R>(
          lanes, [](Own& own) -> auto& { return own.shares; }, other_ups,
          [](Own& own) -> auto& { return own.value_sums; });
  }
  template <bool Plain>
  TAEDA_HD void weigh(const FlashItem& at, int row, const Others& others, const Warp<Own>& lanes,
                      Shared& shared) const {
    const float slope = seen.scale * kLog2E;
    const int first = others.first;
    const SeenTile<T> part(seen, at.n, ByQuery ? at.h : others.h, ByQuery ? row : first, ByQuery ? first : row);
    lanes.each([&](int lane, Own& own) {
      TAEDA_UNROLL
      for (int r = 0; r < R; ++r) {
        TAEDA_UNROLL
        for (int j = 0; j < kTile / 8; ++j) {
          TAEDA_UNROLL
          for (int half = 0; half < 2; ++half) {
            float weight[2], steep[2];
            TAEDA_UNROLL
            for (int i = 0; i < 2; ++i) {
              const int column = j * 8 + column_of(lane, i), own_row = r * 16 + row_of(lane, 2 * half);
              const Statistics of = ByQuery ? own.rows[r][half] : shared.rows[others.buffer][ByQuery ? 0 : column];
              float s = own.scores[r][j][2 * half + i];
              if constexpr (Plain) s = fmaf(s, slope, of.logsumexp * -kLog2E);
              else s = (part.score(ByQuery ? own_row : column, ByQuery ? column : own_row, s) - of.logsumexp) * kLog2E;
              weight[i] = power_of_2(s);
              steep[i] = weight[i] * (own.ups[r][j][2 * half + i] - of.share);
            }
            own.slopes[r][j / 2][left_of(j, 2 * half)] = pack<T>(steep[0], steep[1]);
            if constexpr (!ByQuery) own.shares[r][j / 2][left_of(j, 2 * half)] = pack<T>(weight[0], weight[1]);
          }
        }
      }
    });
  }
  TAEDA_HD void finish(int warp, const Warp<Own>& lanes, Shared& shared) const {
    const float scale = seen.scale;
    stage(lanes, shared.own, warp * 16 * R, R,
          [scale](Own& own, int r, int j, int i) { return own.sums[r][j][i] * scale; });
    if constexpr (!ByQuery)
      stage(lanes, shared.own_ups, warp * 16 * R, R,
            [](Own& own, int r, int j, int i) { return own.value_sums[r][j][i]; });
  }
  TAEDA_HD void put(const FlashItem& at, int warp, const Warp<Own>& lanes, Shared& shared) const {
    if (out.at.array.data) head_of<T>(out, at.n, at.h).put(lanes, warp, kThreads, at.first, shared.own);
    if constexpr (!ByQuery)
      if (value_out.at.array.data)
        head_of<T>(value_out, at.n, at.h).put(lanes, warp, kThreads, at.first, shared.own_ups);
  }
};

}  // namespace taeda::cuda
