// Inner loops of matrix products: a tile of the result stays in registers for a whole run of the inner dimension. Of
// float32 with 256-bit vectors and of float64 with 512-bit ones; elsewhere the vendors' routines are faster.
#include "cpu/loops/gemm.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "cpu/loops/register.h"
#include "cpu/loops/types.h"

namespace taeda::loops::TAEDA_ISA {

namespace {

template <class U>
using Vector = typename Loose<U>::type;

constexpr int kDeep = 256, kSums = 2;  // rows of the right operand at a time; vectors of a row of the tile
template <class U>
constexpr int64_t kAcross = kSums * kRegister / int64_t(sizeof(U));

/// `deep` rows of up to kAcross columns of the right operand, one after the other; zeros for the others.
template <class U>
void gather_panel(const IntegerProduct<U>& x, int64_t p0, int64_t deep, int64_t j0, int64_t width, U* panel) {
  for (int64_t p = 0; p < deep; ++p, panel += kAcross<U>) {
    if (x.b_transposed)
      for (int64_t j = 0; j < width; ++j) panel[j] = x.b[(j0 + j) * x.ldb + p0 + p];
    else std::copy_n(x.b + (p0 + p) * x.ldb + j0, width, panel);
    std::fill(panel + width, panel + kAcross<U>, U(0));
  }
}

/// R rows of the result from `i` on, `width` columns from `j0` on.
template <int R, class U>
void integer_tile(const IntegerProduct<U>& x, int64_t i, int64_t p0, int64_t deep, int64_t j0, int64_t width,
                  const U* panel) {
  using V = Vector<U>;
  V sums[R][kSums] = {};
  const int64_t down = x.a_transposed ? 1 : x.lda, along = x.a_transposed ? x.lda : 1;
  const U* left = x.a + i * down + p0 * along;
  for (int64_t p = 0; p < deep; ++p, left += along, panel += kAcross<U>) {
    const V* const right = reinterpret_cast<const V*>(panel);
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) {
      const U factor = left[r * down];
#pragma GCC unroll 2
      for (int v = 0; v < kSums; ++v) sums[r][v] += right[v] * factor;
    }
  }
  for (int r = 0; r < R; ++r) {
    U row[kAcross<U>];
    std::memcpy(row, sums[r], sizeof row);
    U* const to = x.c + (i + r) * x.ldc + j0;
    for (int64_t j = 0; j < width; ++j) to[j] = U(to[j] + x.alpha * row[j]);
  }
}

template <class U>
void multiply_integers(const IntegerProduct<U>& x) {
  for (int64_t i = 0; i < x.m; ++i)
    for (int64_t j = 0; j < x.n; ++j) x.c[i * x.ldc + j] = U(x.beta ? x.beta * x.c[i * x.ldc + j] : 0);
  alignas(kRegister) U panel[kDeep * kAcross<U>];
  for (int64_t p = 0; p < x.k; p += kDeep)
    for (int64_t j = 0; j < x.n; j += kAcross<U>) {
      const int64_t deep = std::min<int64_t>(kDeep, x.k - p), width = std::min<int64_t>(kAcross<U>, x.n - j);
      gather_panel(x, p, deep, j, width, panel);
      int64_t i = 0;
      for (; i + 4 <= x.m; i += 4) integer_tile<4>(x, i, p, deep, j, width, panel);
      for (; i < x.m; ++i) integer_tile<1>(x, i, p, deep, j, width, panel);
    }
}

template <class U>
U integer_dot(int64_t n, const U* x, const U* y) {
  using V = Vector<U>;
  constexpr int64_t kWide = kRegister / int64_t(sizeof(U)), kStep = 4 * kWide;
  V sums[4] = {};
  int64_t i = 0;
  for (; i + kStep <= n; i += kStep)
#pragma GCC unroll 4
    for (int v = 0; v < 4; ++v)
      sums[v] += *reinterpret_cast<const V*>(x + i + v * kWide) * *reinterpret_cast<const V*>(y + i + v * kWide);
  const V all = sums[0] + sums[1] + sums[2] + sums[3];
  uint64_t sum = 0;
  for (int64_t k = 0; k < kWide; ++k) sum += all[k];
  for (; i < n; ++i) sum += uint64_t(x[i]) * y[i];
  return U(sum);
}

constexpr OfWidths<IntegerGemm> kIntegers = {multiply_integers<uint8_t>, multiply_integers<uint16_t>,
                                             multiply_integers<uint32_t>, multiply_integers<uint64_t>};
constexpr OfWidths<IntegerDot> kIntegerDots = {integer_dot<uint8_t>, integer_dot<uint16_t>, integer_dot<uint32_t>,
                                               integer_dot<uint64_t>};

}  // namespace

#if defined(__AVX2__) && defined(__FMA__)
namespace {

#if defined(__AVX512F__)
using Number = double;
using Lanes = __m512d;
inline Lanes all(double x) { return _mm512_set1_pd(x); }
inline Lanes load(const double* from) { return _mm512_loadu_pd(from); }
inline void store(double* to, Lanes x) { _mm512_storeu_pd(to, x); }
inline Lanes times(Lanes a, Lanes b) { return _mm512_mul_pd(a, b); }
inline Lanes fused(Lanes a, Lanes b, Lanes c) { return _mm512_fmadd_pd(a, b, c); }

/// The columns of eight rows.
inline void turn_lanes(const Lanes (&r)[8], Lanes (&columns)[8]) {
  const auto even = [](Lanes a, Lanes b) { return __builtin_shufflevector(a, b, 0, 8, 2, 10, 4, 12, 6, 14); };
  const auto odd = [](Lanes a, Lanes b) { return __builtin_shufflevector(a, b, 1, 9, 3, 11, 5, 13, 7, 15); };
  const auto even_pairs = [](Lanes a, Lanes b) { return __builtin_shufflevector(a, b, 0, 1, 4, 5, 8, 9, 12, 13); };
  const auto odd_pairs = [](Lanes a, Lanes b) { return __builtin_shufflevector(a, b, 2, 3, 6, 7, 10, 11, 14, 15); };
  const auto place = [&](Lanes a, Lanes b, Lanes c, Lanes d, int first) {
    const Lanes above = even_pairs(a, b), below = even_pairs(c, d), above2 = odd_pairs(a, b), below2 = odd_pairs(c, d);
    columns[first] = even_pairs(above, below);
    columns[first + 2] = even_pairs(above2, below2);
    columns[first + 4] = odd_pairs(above, below);
    columns[first + 6] = odd_pairs(above2, below2);
  };
  place(even(r[0], r[1]), even(r[2], r[3]), even(r[4], r[5]), even(r[6], r[7]), 0);
  place(odd(r[0], r[1]), odd(r[2], r[3]), odd(r[4], r[5]), odd(r[6], r[7]), 1);
}
#else
using Number = float;
using Lanes = __m256;
inline Lanes all(float x) { return _mm256_set1_ps(x); }
inline Lanes load(const float* from) { return _mm256_loadu_ps(from); }
inline void store(float* to, Lanes x) { _mm256_storeu_ps(to, x); }
inline Lanes times(Lanes a, Lanes b) { return _mm256_mul_ps(a, b); }
inline Lanes fused(Lanes a, Lanes b, Lanes c) { return _mm256_fmadd_ps(a, b, c); }

/// The columns of eight rows.
inline void turn_lanes(const Lanes (&r)[8], Lanes (&columns)[8]) {
  Lanes t[8], u[8];
  for (int i = 0; i < 8; i += 2) {
    t[i] = _mm256_unpacklo_ps(r[i], r[i + 1]);
    t[i + 1] = _mm256_unpackhi_ps(r[i], r[i + 1]);
  }
  for (int half = 0; half < 8; half += 4)
    for (int j = 0; j < 2; ++j) {
      u[half + 2 * j] = _mm256_shuffle_ps(t[half + j], t[half + 2 + j], 0x44);
      u[half + 2 * j + 1] = _mm256_shuffle_ps(t[half + j], t[half + 2 + j], 0xee);
    }
  for (int j = 0; j < 4; ++j) columns[j] = _mm256_permute2f128_ps(u[j], u[4 + j], 0x20);
  for (int j = 0; j < 4; ++j) columns[4 + j] = _mm256_permute2f128_ps(u[j], u[4 + j], 0x31);
}
#endif

constexpr int kWidth = 8, kRows = kTileRows<Number>, kColumns = kTileColumns,
              kVectors = kColumns / kWidth;  // all registers but a few are sums

/// Puts the columns of eight rows, of which `count` are there, one after the other, `step` apart; zeros for the others.
template <class Row>
inline void turn_block(const Row& row, int count, Number* to, int64_t step) {
  Lanes rows[8], columns[8];
  for (int i = 0; i < 8; ++i) rows[i] = i < count ? row(i) : all(0);
  turn_lanes(rows, columns);
  for (int j = 0; j < 8; ++j) store(to + j * step, columns[j]);
}

/// to[p * step + i] = from[i * ld + p] for up to eight rows; eight numbers are written for each p, which the next one
/// writes over where `step` is less.
void turn(const Number* from, int64_t ld, int rows, int64_t k, Number* to, int64_t step) {
  constexpr int usual = kRows % 8;  // rows of a tile beside whole eights
  int64_t p = 0;
  const auto row = [&](int i) { return load(from + i * ld + p); };
  if (rows == 8)
    for (; p + 8 <= k; p += 8) turn_block(row, 8, to + p * step, step);
  else if (rows == usual)
    for (; p + 8 <= k; p += 8) turn_block(row, usual, to + p * step, step);
  else
    for (; p + 8 <= k; p += 8) turn_block(row, rows, to + p * step, step);
  for (; p < k; ++p)
    for (int i = 0; i < 8; ++i) to[p * step + i] = i < rows ? from[i * ld + p] : Number(0);
}

void pack_left(const Number* a, int64_t ld, bool transposed, int64_t m, int64_t k, Number* to) {
  const int64_t step = left_tile<Number>(k);
  if (!transposed) {
    for (int64_t i = 0; i < m; i += kRows, to += step) {
      const int rows = int(std::min<int64_t>(kRows, m - i));
      // The last eight first: they write over the columns of those before them.
      for (int first = (rows - 1) / 8 * 8; first >= 0; first -= 8)
        turn(a + (i + first) * ld, ld, std::min(8, rows - first), k, to + first, rows);
    }
    return;
  }
  constexpr int64_t kTiles = 16;  // of which the places to write to stay in the cache
  const int64_t whole = m / kRows, rest = m - whole * kRows;
  for (int64_t first = 0; first < whole; first += kTiles)
    for (int64_t p = 0; p < k; ++p)
      for (int64_t t = first; t < std::min(whole, first + kTiles); ++t)
        std::memcpy(to + t * step + p * kRows, a + p * ld + t * kRows, kRows * sizeof(Number));
  for (int64_t p = 0; rest && p < k; ++p) std::copy_n(a + p * ld + whole * kRows, rest, to + whole * step + p * rest);
}

void pack_right(const Number* b, int64_t ld, bool transposed, int64_t k, int64_t n, Number* to) {
  if (transposed) {
    for (int64_t j = 0; j < kColumns; j += 8)
      turn(b + j * ld, ld, int(std::clamp<int64_t>(n - j, 0, 8)), k, to + j, kColumns);
    return;
  }
  for (int64_t p = 0; p < k; ++p, b += ld, to += kColumns) {
    if (n == kColumns) {
      __builtin_prefetch(b + kColumns, 0, 2);  // of the next call
      std::memcpy(to, b, kColumns * sizeof(Number));
    } else {
      std::copy_n(b, n, to);
      std::fill(to + n, to + kColumns, Number(0));
    }
  }
}

template <int R>
void multiply_tile(int64_t k, Number alpha, const Number* a, const Number* b, const Number* row, Number beta, Number* c,
                   int64_t ldc) {
  Lanes sums[R][kVectors];
#pragma GCC unroll 12
  for (int i = 0; i < R; ++i) {
    __builtin_prefetch(c + i * ldc, 1);
    for (int j = 0; j < kVectors; ++j) sums[i][j] = all(0);
  }
#pragma GCC unroll 4
  for (int64_t p = 0; p < k; ++p) {
    Lanes right[kVectors];
    for (int j = 0; j < kVectors; ++j) right[j] = load(b + p * kColumns + j * kWidth);
#pragma GCC unroll 12
    for (int i = 0; i < R; ++i) {
      const Lanes left = all(a[p * R + i]);
      for (int j = 0; j < kVectors; ++j) sums[i][j] = fused(left, right[j], sums[i][j]);
    }
  }
  const Lanes factor = all(alpha), before = all(beta);
#pragma GCC unroll 12
  for (int i = 0; i < R; ++i)
    for (int j = 0; j < kVectors; ++j) {
      Number* const to = c + i * ldc + j * kWidth;
      Lanes start = all(0);
      if (row) start = load(row + j * kWidth);
      else if (beta != Number(0)) start = times(before, load(to));
      store(to, fused(factor, sums[i][j], start));
    }
}

using Tile = void (*)(int64_t, Number, const Number*, const Number*, const Number*, Number, Number*, int64_t);
/// By the count of rows.
constexpr auto kTileOf = []<int... R>(std::integer_sequence<int, R...>) {
  return std::array<Tile, kRows + 1>{nullptr, multiply_tile<R + 1>...};
}(std::make_integer_sequence<int, kRows>());

/// A tile at the right edge goes through a whole one.
void multiply_narrow(int rows, int64_t n, int64_t k, Number alpha, const Number* a, const Number* b, const Number* row,
                     Number beta, Number* c, int64_t ldc) {
  Number whole[kRows * kColumns] = {}, biases[kColumns] = {};
  if (row) std::copy_n(row, n, biases);
  for (int i = 0; beta != Number(0) && i < rows; ++i) std::copy_n(c + i * ldc, n, whole + i * kColumns);
  kTileOf[size_t(rows)](k, alpha, a, b, row ? biases : nullptr, beta, whole, kColumns);
  for (int i = 0; i < rows; ++i) std::copy_n(whole + i * kColumns, n, c + i * ldc);
}

void multiply(int64_t m, int64_t n, int64_t k, Number alpha, const Number* a, const Number* b, const Number* row,
              Number beta, Number* c, int64_t ldc) {
  for (int64_t i = 0; i < m; i += kRows, a += left_tile<Number>(k), c += kRows * ldc) {
    const int rows = int(std::min<int64_t>(kRows, m - i));
    if (n == kColumns) kTileOf[size_t(rows)](k, alpha, a, b, row, beta, c, ldc);
    else multiply_narrow(rows, n, k, alpha, a, b, row, beta, c, ldc);
  }
}

constexpr TileTable<Number> kTiles = {pack_left, pack_right, multiply};

}  // namespace

#if defined(__AVX512F__)
const GemmTable gemm = {kIntegers, kIntegerDots, {}, kTiles};
#else
const GemmTable gemm = {kIntegers, kIntegerDots, kTiles, {}};
#endif
#else
const GemmTable gemm = {kIntegers, kIntegerDots, {}, {}};
#endif

}  // namespace taeda::loops::TAEDA_ISA
