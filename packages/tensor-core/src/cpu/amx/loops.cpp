// Compiled for processors with AMX alone: nothing is included here whose
// functions others could be linked to.
#include "cpu/amx/loops.h"

#ifdef TAEDA_WITH_AMX
#include <immintrin.h>

namespace taeda::amx {
namespace {

/// The first `count` of `most` numbers.
inline uint32_t first_of(int64_t count, int64_t most) {
  return count >= most ? (most == 32 ? ~0u : (1u << most) - 1) : count <= 0 ? 0u : (1u << count) - 1;
}
inline __m512i load(uint32_t which, const Half* from) { return _mm512_maskz_loadu_epi16(which, from); }

/// Two rows of 32 numbers as 32 columns of two: the first and the last 16 of
/// them.
struct Pairs {
  __m512i first, last;
};
inline Pairs paired(__m512i upper, __m512i lower) {
  // Places among the 64 numbers of both rows: 0, 32, 1, 33, ...
  const __m512i lanes =
      _mm512_set_epi32(0x002F000F, 0x002E000E, 0x002D000D, 0x002C000C, 0x002B000B, 0x002A000A, 0x00290009, 0x00280008,
                       0x00270007, 0x00260006, 0x00250005, 0x00240004, 0x00230003, 0x00220002, 0x00210001, 0x00200000);
  return {_mm512_permutex2var_epi16(upper, lanes, lower),
          _mm512_permutex2var_epi16(upper, _mm512_add_epi16(lanes, _mm512_set1_epi16(16)), lower)};
}

/// 16 rows of 16 pairs, turned.
inline void turn(__m512i (&x)[16]) {
  __m512i y[16];
  for (int i = 0; i < 16; i += 2) {
    y[i] = _mm512_unpacklo_epi32(x[i], x[i + 1]);
    y[i + 1] = _mm512_unpackhi_epi32(x[i], x[i + 1]);
  }
  for (int i = 0; i < 16; i += 4) {
    x[i] = _mm512_unpacklo_epi64(y[i], y[i + 2]);
    x[i + 1] = _mm512_unpackhi_epi64(y[i], y[i + 2]);
    x[i + 2] = _mm512_unpacklo_epi64(y[i + 1], y[i + 3]);
    x[i + 3] = _mm512_unpackhi_epi64(y[i + 1], y[i + 3]);
  }
  // Quarter q of x[4 g + j] now holds column 4 q + j of rows 4 g to 4 g + 3.
  for (int j = 0; j < 4; ++j) {
    const __m512i even_above = _mm512_shuffle_i32x4(x[j], x[4 + j], 0x88);
    const __m512i odd_above = _mm512_shuffle_i32x4(x[j], x[4 + j], 0xDD);
    const __m512i even_below = _mm512_shuffle_i32x4(x[8 + j], x[12 + j], 0x88);
    const __m512i odd_below = _mm512_shuffle_i32x4(x[8 + j], x[12 + j], 0xDD);
    y[j] = _mm512_shuffle_i32x4(even_above, even_below, 0x88);
    y[8 + j] = _mm512_shuffle_i32x4(even_above, even_below, 0xDD);
    y[4 + j] = _mm512_shuffle_i32x4(odd_above, odd_below, 0x88);
    y[12 + j] = _mm512_shuffle_i32x4(odd_above, odd_below, 0xDD);
  }
  for (int i = 0; i < 16; ++i) x[i] = y[i];
}

/// Writes a tile of 16 rows.
inline void write(const __m512i (&rows)[16], Half* to) {
  for (int i = 0; i < 16; ++i) _mm512_store_si512(to + kDeep * i, rows[i]);
}

/// Of a matrix whose kDeep rows from `p` on are pairs: columns [j, j + 32) of
/// them, with zeros beyond k rows.
inline Pairs pairs_at(const Half* from, int64_t ld, uint32_t which, int64_t p, int64_t k) {
  const __m512i upper = p < k ? load(which, from + p * ld) : _mm512_setzero_si512();
  const __m512i lower = p + 1 < k ? load(which, from + (p + 1) * ld) : _mm512_setzero_si512();
  return paired(upper, lower);
}

/// How the eight tile registers are used: all of 16 rows of 64 bytes.
struct alignas(64) Configuration {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t bytes_of_row[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};

/// A run of the inner dimension, whose part of a right operand stays in the first cache.
constexpr int64_t kRun = 8;

/// Sums of a block, from row to row so many numbers apart.
struct Block {
  float* sums;
  int64_t ld;
};
/// They stand in tiles 0 to 3; 4 and 5 are the block's left operand, 6 and 7 its right one.
inline void multiply_block(const Left& left, const Half* upper, const Half* right, int64_t steps, bool first,
                           const Block& block) {
  constexpr int kTileBytes = kDeep * sizeof(Half);
  const int64_t left_bytes = left.row * int64_t(sizeof(Half)), bytes = block.ld * int64_t(sizeof(float));
  float *const sums = block.sums, *const lower = sums + 16 * block.ld;
  if (first) {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  } else {
    _tile_loadd(0, sums, bytes);
    _tile_loadd(1, sums + 16, bytes);
    _tile_loadd(2, lower, bytes);
    _tile_loadd(3, lower + 16, bytes);
  }
  for (int64_t s = 0; s < steps; ++s, upper += left.step, right += kStep) {
    const Half* const half = upper + 16 * left.row;
    _tile_loadd(4, upper, left_bytes);
    _tile_loadd(6, right, kTileBytes);
    for (int r = 0; r < 16; ++r) _mm_prefetch(upper + left.step + r * left.row, _MM_HINT_T0);
    _tile_dpbf16ps(0, 4, 6);
    _tile_loadd(7, right + kStep / 2, kTileBytes);
    _tile_dpbf16ps(1, 4, 7);
    for (int r = 0; r < 16; ++r) _mm_prefetch(half + left.step + r * left.row, _MM_HINT_T0);
    _tile_loadd(5, half, left_bytes);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  _tile_stored(0, sums, bytes);
  _tile_stored(1, sums + 16, bytes);
  _tile_stored(2, lower, bytes);
  _tile_stored(3, lower + 16, bytes);
}

/// Writes sums of a block into the columns of a result.
class Columns {
 public:
  explicit Columns(const Result& to)
      : to_(to), first_(__mmask16(first_of(to.columns, 16))), last_(__mmask16(first_of(to.columns - 16, 16))) {
    if (to.row) row_ = load(to.row);
  }
  void store(const float* sums, int64_t row, int64_t count) const {
    if (to_.halves) store_halves(sums, to_.halves + row * to_.ld, count);
    else store_floats(sums, to_.floats + row * to_.ld, count);
  }

 private:
  struct Two {
    __m512 first, last;
  };
  Two load(const float* from) const {
    return {_mm512_maskz_loadu_ps(first_, from), _mm512_maskz_loadu_ps(last_, from + 16)};
  }
  static Two add(const Two& a, const float* sums) {
    return {_mm512_add_ps(a.first, _mm512_load_ps(sums)), _mm512_add_ps(a.last, _mm512_load_ps(sums + 16))};
  }
  void store_floats(const float* sums, float* c, int64_t count) const {
    for (int64_t i = 0; i < count; ++i, sums += kBlock, c += to_.ld) {
      const Two total = add(to_.onto ? load(c) : row_, sums);
      _mm512_mask_storeu_ps(c, first_, total.first);
      _mm512_mask_storeu_ps(c + 16, last_, total.last);
    }
  }
  void store_halves(const float* sums, Half* c, int64_t count) const {
    const uint32_t whole = first_of(to_.columns, kBlock);
    for (int64_t i = 0; i < count; ++i, sums += kBlock, c += to_.ld) {
      const Two total = add(row_, sums);
      const __m512bh both = _mm512_cvtne2ps_pbh(total.last, total.first);
      _mm512_mask_storeu_epi16(c, whole, reinterpret_cast<const __m512i&>(both));
    }
  }

  const Result& to_;
  __mmask16 first_, last_;
  Two row_ = {_mm512_setzero_ps(), _mm512_setzero_ps()};
};

/// A step of a block of columns of a right operand, and of one that stands
/// transposed.
inline void lay_paired(const Side& b, int64_t s, int64_t j, int64_t k, int64_t n, Half* to) {
  const uint32_t which = first_of(n - j, kBlock);
  for (int p = 0; p < 16; ++p) {
    const Pairs two = pairs_at(b.data + j, b.ld, which, s + 2 * p, k);
    _mm512_store_si512(to + kDeep * p, two.first);
    _mm512_store_si512(to + kStep / 2 + kDeep * p, two.last);
  }
}
inline void lay_turned(const Side& b, int64_t s, int64_t j, int64_t k, int64_t n, Half* to) {
  const uint32_t which = first_of(k - s, kDeep);
  for (int64_t half = 0; half < 2; ++half) {
    __m512i rows[16];
    for (int64_t c = 0; c < 16; ++c) {
      const int64_t column = j + 16 * half + c;
      const Half* const from = b.data + column * b.ld + s;
      rows[c] = column < n ? load(which, from) : _mm512_setzero_si512();
      _mm_prefetch(from + kRun * kDeep, _MM_HINT_T1);  // which is laid out when this run has been multiplied
    }
    turn(rows);
    write(rows, to + half * (kStep / 2));
  }
}

}  // namespace

void lay_left(const Side& a, int64_t m, int64_t k, Half* to) {
  for (int64_t i = 0; i < m; i += kBlock)
    for (int64_t s = 0; s < k; s += kDeep, to += kStep) {
      if (!a.transposed) {
        const uint32_t which = first_of(k - s, kDeep);
        for (int64_t r = 0; r < kBlock; ++r)
          _mm512_store_si512(to + kDeep * r,
                             i + r < m ? load(which, a.data + (i + r) * a.ld + s) : _mm512_setzero_si512());
      } else {
        const uint32_t which = first_of(m - i, kBlock);
        __m512i upper[16], lower[16];
        for (int p = 0; p < 16; ++p) {
          const Pairs two = pairs_at(a.data + i, a.ld, which, s + 2 * p, k);
          upper[p] = two.first;
          lower[p] = two.last;
        }
        turn(upper);
        write(upper, to);
        turn(lower);
        write(lower, to + kStep / 2);
      }
    }
}

void lay_right(const Side& b, int64_t k, int64_t n, Half* to) {
  const int64_t steps = (k + kDeep - 1) / kDeep;
  if (b.transposed) {
    for (int64_t j = 0; j < n; j += kBlock)
      for (int64_t s = 0; s < k; s += kDeep, to += kStep) lay_turned(b, s, j, k, n, to);
  } else {
    // Along the rows, which lie together.
    for (int64_t s = 0; s < steps; ++s)
      for (int64_t j = 0; j < n; j += kBlock) lay_paired(b, s * kDeep, j, k, n, to + (j / kBlock * steps + s) * kStep);
  }
}

void multiply(const Left& left, int64_t m, const Right& right, int64_t steps, const Result& result, float* sums) {
  const Configuration configuration;
  _tile_loadconfig(&configuration);
  const Columns columns(result);
  alignas(64) Half laid[kRun * kStep];
  for (int64_t s = 0; s < steps; s += kRun) {
    const bool last = steps - s <= kRun;
    const int64_t run = last ? steps - s : kRun;
    if (!right.laid)
      lay_right(right.side.from_row(s * kDeep), last ? right.k - s * kDeep : run * kDeep, result.columns, laid);
    for (int64_t i = 0; i < m; i += kBlock) {
      const int64_t count = m - i < kBlock ? m - i : kBlock;
      // Whole blocks of float32 numbers are summed up where they are wanted.
      const bool in_place = result.floats && !result.row && count == kBlock && result.columns == kBlock;
      const Block block = in_place       ? Block{result.floats + i * result.ld, result.ld}
                          : steps > kRun ? Block{sums + i * kBlock, kBlock}
                                         : Block{sums, kBlock};
      multiply_block(left, left.data + i / kBlock * left.block + s * left.step,
                     right.laid ? right.laid + s * kStep : laid, run, s == 0 && !(in_place && result.onto), block);
      if (last && !in_place) columns.store(block.sums, i, count);
    }
  }
  _tile_release();
}

bool built() noexcept { return true; }

}  // namespace taeda::amx

#else
namespace taeda::amx {
void lay_left(const Side&, int64_t, int64_t, Half*) {}
void lay_right(const Side&, int64_t, int64_t, Half*) {}
void multiply(const Left&, int64_t, const Right&, int64_t, const Result&, float*) {}
bool built() noexcept { return false; }
}  // namespace taeda::amx
#endif
