// Inner loops of float32 matrix products: a tile of the result stays in registers for a whole run of the inner
// dimension. With 512-bit vectors oneDNN's routines are faster, and without fused multiply-adds OpenBLAS's.
#include "cpu/loops/gemm.h"

#include <algorithm>
#include <cstring>

#include "cpu/loops/types.h"

namespace taeda::loops::TAEDA_ISA {

namespace {

#if defined(__AVX512F__)
constexpr int kVectorBytes = 64;
#elif defined(__AVX2__)
constexpr int kVectorBytes = 32;
#else
constexpr int kVectorBytes = 16;
#endif
template <class U>
using Vector [[gnu::vector_size(kVectorBytes), gnu::aligned(1), gnu::may_alias]] = U;

constexpr int kDeep = 256, kSums = 2;  // rows of the right operand at a time; vectors of a row of the tile
template <class U>
constexpr int64_t kAcross = kSums * kVectorBytes / int64_t(sizeof(U));

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
  alignas(kVectorBytes) U panel[kDeep * kAcross<U>];
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
  constexpr int64_t kWide = kVectorBytes / int64_t(sizeof(U)), kStep = 4 * kWide;
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

#if defined(__AVX2__) && defined(__FMA__) && !defined(__AVX512F__)
namespace {

constexpr int kWidth = 8, kRows = kTileRows, kColumns = kTileColumns,
              kVectors = kColumns / kWidth;  // 12 of the 16 registers are sums

/// Puts the columns of eight rows, of which `count` are there, one after the other, `step` apart; zeros for the others.
template <class Row>
inline void turn_block(const Row& row, int count, float* to, int64_t step) {
  __m256 r[8], t[8], u[8];
  for (int i = 0; i < 8; ++i) r[i] = i < count ? row(i) : _mm256_setzero_ps();
  for (int i = 0; i < 8; i += 2) {
    t[i] = _mm256_unpacklo_ps(r[i], r[i + 1]);
    t[i + 1] = _mm256_unpackhi_ps(r[i], r[i + 1]);
  }
  for (int half = 0; half < 8; half += 4)
    for (int j = 0; j < 2; ++j) {
      u[half + 2 * j] = _mm256_shuffle_ps(t[half + j], t[half + 2 + j], 0x44);
      u[half + 2 * j + 1] = _mm256_shuffle_ps(t[half + j], t[half + 2 + j], 0xee);
    }
  for (int j = 0; j < 4; ++j) _mm256_storeu_ps(to + j * step, _mm256_permute2f128_ps(u[j], u[4 + j], 0x20));
  for (int j = 0; j < 4; ++j) _mm256_storeu_ps(to + (4 + j) * step, _mm256_permute2f128_ps(u[j], u[4 + j], 0x31));
}

/// to[p * step + i] = from[i * ld + p] for up to eight rows; eight numbers are written for each p, which the next one
/// writes over where `step` is less.
void turn(const float* from, int64_t ld, int rows, int64_t k, float* to, int64_t step) {
  int64_t p = 0;
  const auto row = [&](int i) { return _mm256_loadu_ps(from + i * ld + p); };
  if (rows == 8)
    for (; p + 8 <= k; p += 8) turn_block(row, 8, to + p * step, step);
  else if (rows == kRows)
    for (; p + 8 <= k; p += 8) turn_block(row, kRows, to + p * step, step);
  else
    for (; p + 8 <= k; p += 8) turn_block(row, rows, to + p * step, step);
  for (; p < k; ++p)
    for (int i = 0; i < 8; ++i) to[p * step + i] = i < rows ? from[i * ld + p] : 0.f;
}

void pack_left(const float* a, int64_t ld, bool transposed, int64_t m, int64_t k, float* to) {
  const int64_t step = left_tile(k);
  if (!transposed) {
    for (int64_t i = 0; i < m; i += kRows, to += step) {
      const int rows = int(std::min<int64_t>(kRows, m - i));
      turn(a + i * ld, ld, rows, k, to, rows);
    }
    return;
  }
  constexpr int64_t kTiles = 16;  // of which the places to write to stay in the cache
  const int64_t whole = m / kRows, rest = m - whole * kRows;
  for (int64_t first = 0; first < whole; first += kTiles)
    for (int64_t p = 0; p < k; ++p)
      for (int64_t t = first; t < std::min(whole, first + kTiles); ++t)
        std::memcpy(to + t * step + p * kRows, a + p * ld + t * kRows, kRows * sizeof(float));
  for (int64_t p = 0; rest && p < k; ++p) std::copy_n(a + p * ld + whole * kRows, rest, to + whole * step + p * rest);
}

void pack_right(const float* b, int64_t ld, bool transposed, int64_t k, int64_t n, float* to) {
  if (transposed) {
    for (int64_t j = 0; j < kColumns; j += 8)
      turn(b + j * ld, ld, int(std::clamp<int64_t>(n - j, 0, 8)), k, to + j, kColumns);
    return;
  }
  for (int64_t p = 0; p < k; ++p, b += ld, to += kColumns) {
    if (n == kColumns) {
      __builtin_prefetch(b + kColumns, 0, 2);  // of the next call
      std::memcpy(to, b, kColumns * sizeof(float));
    } else {
      std::copy_n(b, n, to);
      std::fill(to + n, to + kColumns, 0.f);
    }
  }
}

template <int R>
void multiply_tile(int64_t k, float alpha, const float* a, const float* b, const float* row, float beta, float* c,
                   int64_t ldc) {
  __m256 sums[R][kVectors];
#pragma GCC unroll 6
  for (int i = 0; i < R; ++i) {
    __builtin_prefetch(c + i * ldc, 1);
    for (int j = 0; j < kVectors; ++j) sums[i][j] = _mm256_setzero_ps();
  }
#pragma GCC unroll 4
  for (int64_t p = 0; p < k; ++p) {
    __m256 right[kVectors];
    for (int j = 0; j < kVectors; ++j) right[j] = _mm256_loadu_ps(b + p * kColumns + j * kWidth);
#pragma GCC unroll 6
    for (int i = 0; i < R; ++i) {
      const __m256 left = _mm256_broadcast_ss(a + p * R + i);
      for (int j = 0; j < kVectors; ++j) sums[i][j] = _mm256_fmadd_ps(left, right[j], sums[i][j]);
    }
  }
  const __m256 factor = _mm256_set1_ps(alpha), before = _mm256_set1_ps(beta);
#pragma GCC unroll 6
  for (int i = 0; i < R; ++i)
    for (int j = 0; j < kVectors; ++j) {
      float* const to = c + i * ldc + j * kWidth;
      __m256 start = _mm256_setzero_ps();
      if (row) start = _mm256_loadu_ps(row + j * kWidth);
      else if (beta != 0.f) start = _mm256_mul_ps(before, _mm256_loadu_ps(to));
      _mm256_storeu_ps(to, _mm256_fmadd_ps(factor, sums[i][j], start));
    }
}

using Tile = void (*)(int64_t, float, const float*, const float*, const float*, float, float*, int64_t);
constexpr Tile kTileOf[kRows + 1] = {nullptr,          multiply_tile<1>, multiply_tile<2>, multiply_tile<3>,
                                     multiply_tile<4>, multiply_tile<5>, multiply_tile<6>};

/// A tile at the right edge goes through a whole one.
void multiply_narrow(int rows, int64_t n, int64_t k, float alpha, const float* a, const float* b, const float* row,
                     float beta, float* c, int64_t ldc) {
  float whole[kRows * kColumns] = {}, biases[kColumns] = {};
  if (row) std::copy_n(row, n, biases);
  for (int i = 0; beta != 0.f && i < rows; ++i) std::copy_n(c + i * ldc, n, whole + i * kColumns);
  kTileOf[rows](k, alpha, a, b, row ? biases : nullptr, beta, whole, kColumns);
  for (int i = 0; i < rows; ++i) std::copy_n(whole + i * kColumns, n, c + i * ldc);
}

void multiply(int64_t m, int64_t n, int64_t k, float alpha, const float* a, const float* b, const float* row,
              float beta, float* c, int64_t ldc) {
  for (int64_t i = 0; i < m; i += kRows, a += left_tile(k), c += kRows * ldc) {
    const int rows = int(std::min<int64_t>(kRows, m - i));
    if (n == kColumns) kTileOf[rows](k, alpha, a, b, row, beta, c, ldc);
    else multiply_narrow(rows, n, k, alpha, a, b, row, beta, c, ldc);
  }
}

}  // namespace

const GemmTable gemm = {kIntegers, kIntegerDots, pack_left, pack_right, multiply};
#else
const GemmTable gemm = {kIntegers, kIntegerDots};
#endif

}  // namespace taeda::loops::TAEDA_ISA
