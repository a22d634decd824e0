// Inner loops of float32 matrix products: a tile of the result stays in registers for a whole run of the inner
// dimension. With 512-bit vectors oneDNN's routines are faster, and without fused multiply-adds OpenBLAS's.
#include "cpu/loops/gemm.h"

#include <algorithm>
#include <cstring>

#include "cpu/loops/types.h"

namespace taeda::loops::TAEDA_ISA {

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

const GemmTable gemm = {pack_left, pack_right, multiply};
#else
const GemmTable gemm = {};
#endif

}  // namespace taeda::loops::TAEDA_ISA
