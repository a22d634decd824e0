// Attention of halves and its gradients on tensor cores, without scores in memory: after Dao, "FlashAttention-2", 2023.
//
// A block has some rows of one head (its own: queries, or keys where their gradients are made) and goes through tiles
// of the others; while it computes with one tile, the next is fetched. Each warp has 16 R of the block's rows, so that
// all sums over a row stay within four threads. Sums are float32; weights are rounded where they are factors.
#pragma once
#include "kernels/attention.h"
#include "kernels/fragments.h"

namespace taeda::cuda {

inline constexpr float kLog2E = 1.44269504088896340736f, kLn2 = 0.69314718055994530942f;
inline constexpr float kBlind = -loops::TAEDA_ISA::kInfinity<float>;

/// Rows of all heads, as they lie; `packs`: in chunks that begin at multiples of 16 bytes.
struct HeadRows {
  Heads at;
  int32_t rows, width, packs;
};
template <class T>
TAEDA_HD inline MatrixRows<T> head_of(const HeadRows& r, int n, int h) {
  return {cuda::at<T>(r.at.array.data) + r.at.place(n, h, 0, 0),
          r.at.strides[2],
          r.at.strides[3],
          r.rows,
          r.width,
          r.packs};
}

/// What may attend to what. `keys` are those that somebody sees: what lies behind them is never read.
struct Seen {
  Heads mask;  // its array may be absent; bool, or of the operands' type; steps from row to row below kFarthest
  int32_t heads, group, queries, keys, causal;  // heads of queries; how many of them share one of keys and values
  float scale;
  static constexpr int64_t kFarthest = int64_t(1) << 23, kMost = int64_t(1) << 30;  // rows of a head

  /// Whether all queries from one on see all keys before another, and scores are multiples of their products.
  TAEDA_HD bool all(int query, int key_end) const {
    return !mask.array.data && scale > 0 && key_end <= keys && (!causal || key_end - 1 <= query);
  }
  TAEDA_HD int shared(int h) const { return h / group; }
  /// Of logarithms of sums.
  TAEDA_HD int64_t row_of_all(int n, int h, int q) const { return (int64_t(n) * heads + h) * queries + q; }
  /// Whether none of some queries sees any of some keys.
  TAEDA_HD bool none(int query_end, int key) const { return causal && key >= query_end; }
};
/// What is seen of keys from one on, by queries from one on; both count from there.
template <class T>
struct SeenTile {
  Address mask;
  int step, key_step, queries, keys, ahead;  // ahead: how many keys more the first query sees beside the first key
  bool choice;                               // whether the mask is bool
  float scale;

  TAEDA_HD SeenTile(const Seen& seen, int n, int h, int query, int key)
      : mask(0),
        step(int(seen.mask.strides[2])),
        key_step(int(seen.mask.strides[3])),
        queries(seen.queries - query),
        keys(seen.keys - key),
        ahead(seen.causal ? query - key : int(Seen::kMost)),
        choice(seen.mask.array.dtype == TAEDA_BOOL),
        scale(seen.scale) {
    if (seen.mask.array.data)
      mask = seen.mask.array.data + uint64_t(seen.mask.place(n, h, query, key)) * (choice ? 1 : sizeof(T));
  }
  TAEDA_HD float score(int q, int k, float product) const {
    if (k >= keys || q >= queries || k - q > ahead) return kBlind;
    product *= scale;
    if (!mask) return product;
    const int place = q * step + k * key_step;
    if (choice) return at<const uint8_t>(mask)[place] ? product : kBlind;
    return product + to_float(at<const T>(mask)[place]);
  }
};
/// Which rows of which head are a block's; where later rows have more to do they come first.
struct FlashItem {
  int n, h, first;
  TAEDA_HD FlashItem(int64_t item, int heads, int rows, int block, bool backwards) {
    const int tiles = (rows + block - 1) / block;
    const int64_t head = quotient(item, tiles);
    const int tile = int(item - head * tiles);
    first = (backwards ? tiles - 1 - tile : tile) * block;
    n = int(quotient(head, heads)), h = int(head - int64_t(n) * heads);
  }
};
/// A thread's part of a warp's rows, rounded, to shared memory.
template <class T, class Own, int N, int W, class Value>
TAEDA_HD inline void stage(const Warp<Own>& lanes, ChunkedRows<T, N, W>& to, int row, int count, const Value& value) {
  lanes.each([&](int lane, Own& own) {
    TAEDA_UNROLL
    for (int r = 0; r < count; ++r) {
      TAEDA_UNROLL
      for (int j = 0; j < W / 8; ++j) {
        TAEDA_UNROLL
        for (int i = 0; i < 4; i += 2) {
          T* const pair = to.chunk(row + r * 16 + row_of(lane, i), j).of + column_of(lane, i);
          *reinterpret_cast<uint32_t*>(pair) = pack<T>(value(own, r, j, i), value(own, r, j, i + 1));
        }
      }
    }
  });
}

template <class T, int W>
struct FlashAttention {
  static constexpr int kWarps = 4, R = 2, kOwn = kWarps * 16 * R, kTile = W == 64 ? 64 : 32;
  static constexpr int kThreads = kWarps * kLanes;
  struct Shared {
    ChunkedRows<T, kOwn, W> queries;  // results at the end
    ChunkedRows<T, kTile, W> keys[2], values[2];
  };
  struct Own {
    float out[R][W / 8][4], scores[R][kTile / 8][4];
    uint32_t shares[R][kTile / 16][4], left[R][4], right[4];
    float largest[R][2], found[R][2], sum[R][2];
  };
  Seen seen;
  HeadRows query, key, value, result;
  Address logsumexp;  // float32, row-major (N, H, L)

  TAEDA_HD FlashItem place(int64_t item) const { return {item, seen.heads, seen.queries, kOwn, seen.causal != 0}; }
  TAEDA_HD int tiles(const FlashItem& at) const {
    const int end = seen.causal && at.first + kOwn < seen.keys ? at.first + kOwn : seen.keys;
    return (end + kTile - 1) / kTile;
  }
  TAEDA_HD int phases(int64_t item) const { return tiles(place(item)) + 2; }
  TAEDA_HD void run(int phase, int64_t item, int warp, const Warp<Own>& lanes, Shared& shared) const {
    const FlashItem at = place(item);
    const int count = tiles(at);
    if (phase > count) return head_of<T>(result, at.n, at.h).put(lanes, warp, kThreads, at.first, shared.queries);
    if (phase == 0) begin(lanes);
    if (phase == 0 && count > 0) head_of<T>(query, at.n, at.h).fetch(lanes, warp, kThreads, at.first, shared.queries);
    if (phase < count) {
      const int first = phase * kTile;
      const int h = seen.shared(at.h);
      head_of<T>(key, at.n, h).fetch(lanes, warp, kThreads, first, shared.keys[phase % 2]);
      head_of<T>(value, at.n, h).fetch(lanes, warp, kThreads, first, shared.values[phase % 2]);
    }
    const int row = at.first + warp * 16 * R;
    if (phase > 0 && row < seen.queries && !seen.none(row + 16 * R, (phase - 1) * kTile))
      take_in(at, row, warp, phase - 1, lanes, shared);
    if (phase == count) finish(at, row, warp, lanes, shared);
  }

 private:
  TAEDA_HD void begin(const Warp<Own>& lanes) const {
    lanes.each([](int, Own& own) {
      set_zero(own.out);
      TAEDA_UNROLL
      for (int r = 0; r < R; ++r) {
        TAEDA_UNROLL
        for (int half = 0; half < 2; ++half) own.largest[r][half] = kBlind, own.sum[r][half] = 0;
      }
    });
  }
  TAEDA_HD void take_in(const FlashItem& at, int row, int warp, int tile, const Warp<Own>& lanes,
                        Shared& shared) const {
    const int first = tile * kTile;
    lanes.each([](int, Own& own) { set_zero(own.scores); });
    multiply_rows<T, R>(lanes, shared.queries, warp * 16 * R, shared.keys[tile % 2],
                        [](Own& own) -> auto& { return own.scores; });
    const bool plain = seen.all(row, first + kTile);
    if (!plain) mask(at, row, first, lanes);
    find_largest(lanes);
    if (plain) weigh<true>(lanes);
    else weigh<false>(lanes);
    multiply_columns<T, R>(
        lanes, [](Own& own) -> auto& { return own.shares; }, shared.values[tile % 2],
        [](Own& own) -> auto& { return own.out; });
  }
  /// From products to scores.
  TAEDA_HD void mask(const FlashItem& at, int row, int first, const Warp<Own>& lanes) const {
    const SeenTile<T> tile(seen, at.n, at.h, row, first);
    lanes.each([&](int lane, Own& own) {
      TAEDA_UNROLL
      for (int r = 0; r < R; ++r) {
        TAEDA_UNROLL
        for (int j = 0; j < kTile / 8; ++j) {
          TAEDA_UNROLL
          for (int i = 0; i < 4; ++i) {
            float& s = own.scores[r][j][i];
            s = tile.score(r * 16 + row_of(lane, i), j * 8 + column_of(lane, i), s);
          }
        }
      }
    });
  }
  TAEDA_HD void find_largest(const Warp<Own>& lanes) const {
    lanes.each([](int, Own& own) {
      TAEDA_UNROLL
      for (int r = 0; r < R; ++r) {
        TAEDA_UNROLL
        for (int half = 0; half < 2; ++half) {
          float found = kBlind;
          TAEDA_UNROLL
          for (int j = 0; j < kTile / 8; ++j)
            found = fmaxf(found, fmaxf(own.scores[r][j][2 * half], own.scores[r][j][2 * half + 1]));
          own.found[r][half] = found;
        }
      }
    });
    TAEDA_UNROLL
    for (int r = 0; r < R; ++r) {
      TAEDA_UNROLL
      for (int half = 0; half < 2; ++half) {
        const auto found = [&](Own& own) -> float& { return own.found[r][half]; };
        lanes.exchange(1, found, [](float a, float b) { return fmaxf(a, b); });
        lanes.exchange(2, found, [](float a, float b) { return fmaxf(a, b); });
      }
    }
  }
  /// Scores of a row become weights relative to the largest so far; what was summed before shrinks accordingly.
  template <bool Plain>
  TAEDA_HD void weigh(const Warp<Own>& lanes) const {
    const float factor = Plain ? seen.scale : 1.f, slope = factor * kLog2E;
    lanes.each([&](int, Own& own) {
      TAEDA_UNROLL
      for (int r = 0; r < R; ++r) {
        TAEDA_UNROLL
        for (int half = 0; half < 2; ++half) {
          const float before = own.largest[r][half], now = fmaxf(before, own.found[r][half] * factor);
          const float base = now == kBlind ? 0.f : now, shrink = power_of_2((before - base) * kLog2E);
          const float less = base * kLog2E;
          float sum = own.sum[r][half] * shrink;
          TAEDA_UNROLL
          for (int j = 0; j < W / 8; ++j) own.out[r][j][2 * half] *= shrink, own.out[r][j][2 * half + 1] *= shrink;
          TAEDA_UNROLL
          for (int j = 0; j < kTile / 8; ++j) {
            float p[2];
            TAEDA_UNROLL
            for (int i = 0; i < 2; ++i) {
              const float s = own.scores[r][j][2 * half + i];
              // A mask's numbers may be as large as there are any: only their differences can be multiplied.
              p[i] = power_of_2(Plain ? fmaf(s, slope, -less) : (s - base) * kLog2E);
              sum += p[i];
            }
            own.shares[r][j / 2][left_of(j, 2 * half)] = pack<T>(p[0], p[1]);
          }
          own.largest[r][half] = now, own.sum[r][half] = sum;
        }
      }
    });
  }
  TAEDA_HD void finish(const FlashItem& at, int row, int warp, const Warp<Own>& lanes, Shared& shared) const {
    TAEDA_UNROLL
    for (int r = 0; r < R; ++r) {
      TAEDA_UNROLL
      for (int half = 0; half < 2; ++half) {
        const auto sum = [&](Own& own) -> float& { return own.sum[r][half]; };
        lanes.exchange(1, sum, [](float a, float b) { return a + b; });
        lanes.exchange(2, sum, [](float a, float b) { return a + b; });
      }
    }
    lanes.each([&](int lane, Own& own) {
      TAEDA_UNROLL
      for (int r = 0; r < R; ++r) {
        TAEDA_UNROLL
        for (int half = 0; half < 2; ++half) {
          const int q = row + r * 16 + row_of(lane, 2 * half);
          float& sum = own.sum[r][half];
          const bool blind = own.largest[r][half] == kBlind && sum == 0;
          if (lane % 4 == 0 && q < seen.queries)
            cuda::at<float>(logsumexp)[seen.row_of_all(at.n, at.h, q)] =
                blind ? kBlind : own.largest[r][half] + logf(sum);
          sum = blind ? 0.f : 1.f / sum;
        }
      }
    });
    stage(lanes, shared.queries, warp * 16 * R, R,
          [](Own& own, int r, int j, int i) { return own.out[r][j][i] * own.sum[r][i / 2]; });
  }
};

/// What of a row's gradient is the same for all keys, the sum of grad * result: eight threads for a row.
template <class T>
struct FlashShares {
  static constexpr int kWarps = 4, kRows = kWarps * 4;
  struct Shared {};
  struct Own {
    float sum;
  };
  HeadRows grad, result;
  Address out;  // float32, row-major (N, H, L)
  int64_t heads, count;
  TAEDA_HD int phases(int64_t) const { return 1; }
  TAEDA_HD void run(int, int64_t item, int warp, const Warp<Own>& lanes, Shared&) const {
    const int64_t first = item * kRows + warp * 4;
    lanes.each([&](int lane, Own& own) {
      own.sum = 0;
      const int64_t row = first + lane / 8, head = row / grad.rows;
      if (row >= count) return;
      const int q = int(row % grad.rows), n = int(head / heads), h = int(head % heads);
      const MatrixRows<T> a = head_of<T>(grad, n, h), b = head_of<T>(result, n, h);
      for (int e = lane % 8 * 8; e < grad.width; e += 64) {
        const auto chunk = [&](const MatrixRows<T>& of) {
          return of.packs ? *reinterpret_cast<const Chunk<T>*>(of.data + q * of.step + e) : of.gathered(q, e);
        };
        const Chunk<T> x = chunk(a), y = chunk(b);
        TAEDA_UNROLL
        for (int i = 0; i < 8; ++i) own.sum += to_float(x.of[i]) * to_float(y.of[i]);
      }
    });
    for (int bit = 1; bit < 8; bit *= 2)
      lanes.exchange(bit, [](Own& own) -> float& { return own.sum; }, [](float a, float b) { return a + b; });
    lanes.each([&](int lane, Own& own) {
      if (lane % 8 == 0 && first + lane / 8 < count) at<float>(out)[first + lane / 8] = own.sum;
    });
  }
};

}  // namespace taeda::cuda
