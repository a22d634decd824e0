// Philox in vectors, and the distributions made from its words.
#include <bit>
#include <cmath>

#include "cpu/loops/lanes.h"
#include "cpu/loops/types.h"
#include "scalar/math.h"
#include "cpu/loops/random.h"

namespace taeda::loops::TAEDA_ISA {
namespace {

constexpr int N = kGroupBlocks;

/// Word w of block j stands at [w][j].
struct Words {
  alignas(64) uint32_t w[4][N];
};

typedef uint32_t Vec32 __attribute__((vector_size(kRegister)));
typedef uint64_t Vec64 __attribute__((vector_size(kRegister)));
constexpr int L = kRegister / 4;
static_assert(N % L == 0);

/// Products of the lower halves of lanes with m, 64 bits each: one instruction, which the compiler does not find.
inline Vec64 products(Vec64 a, uint32_t m) {
#if defined(__AVX512F__)
  return std::bit_cast<Vec64>(_mm512_mul_epu32(std::bit_cast<__m512i>(a), _mm512_set1_epi64(m)));
#elif defined(__AVX2__)
  return std::bit_cast<Vec64>(_mm256_mul_epu32(std::bit_cast<__m256i>(a), _mm256_set1_epi64x(m)));
#elif defined(__SSE4_2__)
  return std::bit_cast<Vec64>(_mm_mul_epu32(std::bit_cast<__m128i>(a), _mm_set1_epi64x(m)));
#else
  return (a & 0xffffffffull) * m;
#endif
}
/// Products of the even lanes of `a` with m; of the odd ones.
inline Vec64 even_products(Vec32 a, uint32_t m) { return products(std::bit_cast<Vec64>(a), m); }
inline Vec64 odd_products(Vec32 a, uint32_t m) { return products(std::bit_cast<Vec64>(a) >> 32, m); }
/// Upper halves of the products, lane by lane; lower halves likewise.
inline Vec32 upper(Vec64 even, Vec64 odd) { return std::bit_cast<Vec32>((even >> 32) | (odd & 0xffffffff00000000ull)); }
inline Vec32 lower(Vec64 even, Vec64 odd) { return std::bit_cast<Vec32>((even & 0xffffffffull) | (odd << 32)); }

/// As many blocks of a group as a vector has lanes, from `base` on.
inline void philox_blocks(uint64_t seed, uint64_t offset, Words& out, int base) {
  Vec32 c0, c1{}, c2{}, c3{};
  const uint64_t first = offset + uint64_t(base);
  for (int j = 0; j < L; ++j) c0[j] = uint32_t(j);
  c0 += uint32_t(first);
  c1 += uint32_t(first >> 32);
  c1 -= std::bit_cast<Vec32>(c0 < uint32_t(first));  // what is carried
  uint32_t k0 = uint32_t(seed), k1 = uint32_t(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    const Vec64 e0 = even_products(c0, 0xD2511F53u), o0 = odd_products(c0, 0xD2511F53u);
    const Vec64 e1 = even_products(c2, 0xCD9E8D57u), o1 = odd_products(c2, 0xCD9E8D57u);
    const Vec32 n0 = upper(e1, o1) ^ c1 ^ k0, n2 = upper(e0, o0) ^ c3 ^ k1;
    c1 = lower(e1, o1);
    c3 = lower(e0, o0);
    c0 = n0;
    c2 = n2;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  std::memcpy(out.w[0] + base, &c0, sizeof c0);
  std::memcpy(out.w[1] + base, &c1, sizeof c1);
  std::memcpy(out.w[2] + base, &c2, sizeof c2);
  std::memcpy(out.w[3] + base, &c3, sizeof c3);
}
/// The first `blocks` blocks at least.
inline void philox_group(uint64_t seed, uint64_t offset, Words& out, int64_t blocks) {
  for (int base = 0; base < N && base < blocks; base += L) philox_blocks(seed, offset, out, base);
}

inline float unit(uint32_t w) { return float(int32_t(w >> 8)) * 0x1p-24f; }  // [0, 1)
inline double unit(uint32_t high, uint32_t low) {                            // [0, 1)
  const uint64_t bits = (uint64_t(high) << 20) ^ (uint64_t(low) >> 12);      // 52 bits
  return std::bit_cast<double>((bits & 0xfffffffffffffull) | 0x3ff0000000000000ull) - 1.0;
}
inline float positive(uint32_t w) { return (float(int32_t(w >> 1)) + 0.5f) * 0x1p-31f; }  // (0, 1]

void uniform_float(void* out_, uint64_t seed, uint64_t offset, const LoopParams& p, int64_t count) {
  Words words;
  philox_group(seed, offset, words, count);
  float* out = static_cast<float*>(out_);
  const float low = float(p.real[0]), high = float(p.real[1]), width = float(p.real[1] - p.real[0]);
  for (int w = 0; w < 4 && w * N < count; ++w)
    for (int j = 0; j < N; ++j) {
      const float x = low + unit(words.w[w][j]) * width;
      out[w * N + j] = x < high ? x : low;  // rounding may reach the open end
    }
}
void uniform_double(void* out_, uint64_t seed, uint64_t offset, const LoopParams& p, int64_t count) {
  Words words;
  philox_group(seed, offset, words, count);
  double* out = static_cast<double*>(out_);
  const double low = p.real[0], high = p.real[1], width = high - low;
  for (int w = 0; w < 2 && w * N < count; ++w)
    for (int j = 0; j < N; ++j) {
      const double x = low + unit(words.w[2 * w][j], words.w[2 * w + 1][j]) * width;
      out[w * N + j] = x < high ? x : low;
    }
}

/// Sine and cosine of a random angle: two bits choose the quadrant, thirty the place in it.
inline void random_direction(uint32_t w, float& s, float& c) {
  const float r = (float(int32_t(w & 0x3fffffffu)) * 0x1p-30f - 0.5f) * 1.57079632679489661923f, z = r * r;
  const float sine = r + r * z * poly(z, -0.16666667f, 0.0083333310f, -0.00019840874f, 2.7255e-6f);
  const float cosine = 1.0f - 0.5f * z + z * z * poly(z, 0.041666668f, -0.0013888397f, 2.4801e-5f);
  const bool swap = w & 0x40000000u;
  const uint32_t flip = w & 0x80000000u;
  const float a = swap ? cosine : sine, b = swap ? -sine : cosine;
  s = std::bit_cast<float>(std::bit_cast<uint32_t>(a) ^ flip);
  c = std::bit_cast<float>(std::bit_cast<uint32_t>(b) ^ flip);
}
void normal_float(void* out_, uint64_t seed, uint64_t offset, const LoopParams& p, int64_t count) {
  Words words;
  philox_group(seed, offset, words, count);
  float* out = static_cast<float*>(out_);
  const float mean = float(p.real[0]), std = float(p.real[1]);
  for (int w = 0; w < 4 && w * N < count; w += 2) {
    const uint32_t *first = words.w[w], *second = words.w[w + 1];
    float *a = out + w * N, *b = a + N;
#pragma GCC ivdep
    for (int j = 0; j < N; ++j) {
      float s, c;
      random_direction(second[j], s, c);
      const float r = std::sqrt(-2.0f * vlog(positive(first[j]))) * std;
      a[j] = mean + r * c;
      b[j] = mean + r * s;
    }
  }
}
void normal_double(void* out_, uint64_t seed, uint64_t offset, const LoopParams& p, int64_t count) {
  Words words;
  philox_group(seed, offset, words, count);
  double* out = static_cast<double*>(out_);
  const double mean = p.real[0], std = p.real[1];
  for (int j = 0; j < N; ++j) {
    const double u = unit(words.w[0][j], words.w[1][j]) + 0x1p-53,
                 angle = unit(words.w[2][j], words.w[3][j]) * 6.28318530717958647692;
    const double r = std::sqrt(-2.0 * vlog(u)) * std;
    out[j] = mean + r * vcos(angle);
    out[N + j] = mean + r * vsin(angle);
  }
}
void bernoulli_byte(void* out_, uint64_t seed, uint64_t offset, const LoopParams& p, int64_t count) {
  Words words;
  philox_group(seed, offset, words, count);
  uint8_t* out = static_cast<uint8_t*>(out_);
  const bool always = p.real[0] >= 1;
  const uint32_t limit = always ? 0 : uint32_t(p.real[0] * 4294967296.0);
  for (int w = 0; w < 4 && w * N < count; ++w)
    for (int j = 0; j < N; ++j) out[w * N + j] = uint8_t((words.w[w][j] < limit) | always);
}
void exponential_float(void* out_, uint64_t seed, uint64_t offset, const LoopParams& p, int64_t count) {
  Words words;
  philox_group(seed, offset, words, count);
  float* out = static_cast<float*>(out_);
  const float scale = float(-1 / p.real[0]);
  for (int w = 0; w < 4 && w * N < count; ++w)
    for (int j = 0; j < N; ++j)
      out[w * N + j] = vlog((float(int32_t(words.w[w][j] >> 9)) + 0.5f) * 0x1p-23f) * scale;  // never 0
}
void exponential_double(void* out_, uint64_t seed, uint64_t offset, const LoopParams& p, int64_t count) {
  Words words;
  philox_group(seed, offset, words, count);
  double* out = static_cast<double*>(out_);
  const double scale = -1 / p.real[0];
  for (int w = 0; w < 2 && w * N < count; ++w)
    for (int j = 0; j < N; ++j) out[w * N + j] = vlog(unit(words.w[2 * w][j], words.w[2 * w + 1][j]) + 0x1p-53) * scale;
}
/// low + floor(word * count / 2^64); count 0 stands for 2^64.
void integer64(void* out_, uint64_t seed, uint64_t offset, const LoopParams& p, int64_t count) {
  Words words;
  philox_group(seed, offset, words, count);
  int64_t* out = static_cast<int64_t*>(out_);
  const uint64_t low = uint64_t(p.integer[0]), choices = uint64_t(p.integer[1]);
  for (int w = 0; w < 2 && w * N < count; ++w)
    for (int j = 0; j < N; ++j) {
      const uint64_t word = uint64_t(words.w[2 * w][j]) << 32 | words.w[2 * w + 1][j];
      __extension__ using Wide = unsigned __int128;
      out[w * N + j] = int64_t(low + (choices ? uint64_t(Wide(word) * choices >> 64) : word));
    }
}
template <class T>
void normal_sixteens(void* out_, int64_t groups, double mean, double std) {
  T* x = static_cast<T*>(out_);
  for (; groups; --groups, x += 16)
    for (int j = 0; j < 8; ++j) {
      const double radius = std::sqrt(-2.0 * vlog(1.0 - double(x[j]))),
                   angle = double(x[j + 8]) * 6.28318530717958647692;
      x[j] = T(radius * vcos(angle) * std + mean);
      x[j + 8] = T(radius * vsin(angle) * std + mean);
    }
}

}  // namespace

constinit const RandomTable random = {{uniform_float, uniform_double, normal_float, normal_double, bernoulli_byte,
                                       exponential_float, exponential_double, integer64},
                                      normal_sixteens<float>,
                                      normal_sixteens<double>};

}  // namespace taeda::loops::TAEDA_ISA
