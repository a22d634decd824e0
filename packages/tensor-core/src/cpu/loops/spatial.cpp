// Inner loops of resampling and of sampling at points, for one instruction set.
#include "cpu/loops/spatial.h"

#include <algorithm>
#include <bit>
#include <cstring>
#ifdef __AVX2__
#include <immintrin.h>
#endif
#include <type_traits>

#include "cpu/loops/points.h"

namespace taeda::loops::TAEDA_ISA {
namespace {

/// Sums of real numbers as they are; of bytes in fixed point.
template <class T>
struct Real {
  using Weight = T;
  using Sum = T;
  static T result(T sum, int) { return sum; }
};
struct Byte {
  using Weight = int32_t;
  using Sum = int32_t;
  static uint8_t result(int32_t sum, int shift) {
    const int32_t rounded = (sum + (1 << (shift - 1))) >> shift;
    return uint8_t(std::clamp(rounded, 0, 255));
  }
};

template <class T, class How, int kCount>
inline void blend_fixed(const T* const* rows, const typename How::Weight* weights, int64_t n, int shift, T* out) {
  using Sum = typename How::Sum;
  const T* __restrict from[kCount];
  Sum w[kCount];
  for (int k = 0; k < kCount; ++k) from[k] = rows[k], w[k] = Sum(weights[k]);
  T* __restrict to = out;
  for (int64_t j = 0; j < n; ++j) {
    Sum sum = w[0] * Sum(from[0][j]);
    for (int k = 1; k < kCount; ++k) sum += w[k] * Sum(from[k][j]);
    to[j] = How::result(sum, shift);
  }
}
/// Four rows at a time into a block of sums that stays in the cache.
template <class T, class How>
inline void blend_any(const T* const* rows, const typename How::Weight* weights, int64_t count, int64_t n, int shift,
                      T* out) {
  using Sum = typename How::Sum;
  constexpr int64_t block = 512;
  alignas(64) Sum sums[block];
  for (int64_t at = 0; at < n; at += block) {
    const int64_t width = std::min(block, n - at);
    std::fill_n(sums, width, Sum(0));
    for (int64_t k = 0; k < count; ++k) {
      const T* const from = rows[k] + at;
      const Sum w = Sum(weights[k]);
      for (int64_t j = 0; j < width; ++j) sums[j] += w * Sum(from[j]);
    }
    for (int64_t j = 0; j < width; ++j) out[at + j] = How::result(sums[j], shift);
  }
}
template <class T, class How>
inline void blend_rows(const T* const* rows, const typename How::Weight* weights, int64_t count, int64_t n, int shift,
                       T* out) {
  switch (count) {
    case 1: return blend_fixed<T, How, 1>(rows, weights, n, shift, out);
    case 2: return blend_fixed<T, How, 2>(rows, weights, n, shift, out);
    case 3: return blend_fixed<T, How, 3>(rows, weights, n, shift, out);
    case 4: return blend_fixed<T, How, 4>(rows, weights, n, shift, out);
    default: return blend_any<T, How>(rows, weights, count, n, shift, out);
  }
}

#ifdef __AVX2__
#ifdef __AVX512F__
constexpr int kPermuted = 16;
#else
constexpr int kPermuted = 8;
#endif
typedef float Floats __attribute__((vector_size(4 * kPermuted)));
typedef int32_t Places __attribute__((vector_size(4 * kPermuted)));
template <class Vector, class T>
inline Vector vector_at(const T* p) {
  Vector v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
inline Floats permuted(Floats v, Places places) {
#ifdef __AVX512F__
  return std::bit_cast<Floats>(_mm512_permutexvar_ps(std::bit_cast<__m512i>(places), std::bit_cast<__m512>(v)));
#else
  return std::bit_cast<Floats>(_mm256_permutevar8x32_ps(std::bit_cast<__m256>(v), std::bit_cast<__m256i>(places)));
#endif
}
/// Outputs of kCount taps, vector by vector while the taps of one lie within a vector, as in lines that grow: a load
/// and a permutation for each tap. Returns where they end.
template <int kCount>
inline int64_t line_permuted(const float* x, const LineTaps<float>& t, float* out) {
  const int64_t n = t.n, end = t.begin < t.end ? t.first[t.end - 1] + kCount : 0;
  int64_t i = t.begin;
  for (; i + kPermuted <= t.end; i += kPermuted) {
    const int32_t from = t.first[i];
    if (t.first[i + kPermuted - 1] - from >= kPermuted || from + kCount - 1 + kPermuted > end) break;
    const Places places = vector_at<Places>(t.first + i) - from;
    Floats sum = vector_at<Floats>(t.by_tap + i) * permuted(vector_at<Floats>(x + from), places);
    for (int k = 1; k < kCount; ++k)
      sum += vector_at<Floats>(t.by_tap + k * n + i) * permuted(vector_at<Floats>(x + from + k), places);
    std::memcpy(out + i, &sum, sizeof sum);
  }
  return i;
}
#endif
template <class T, int kCount, class Taps>
inline int64_t line_begun(const T* x, const Taps& t, T* out) {
#ifdef __AVX2__
  if constexpr (std::is_same_v<T, float>) return line_permuted<kCount>(x, t, out);
#endif
  return t.begin;
}
/// The others one by one: vectors would gather, which takes longer than the loads do.
template <class T, class How, int kCount>
[[gnu::noinline, gnu::optimize("no-tree-vectorize")]] void line_fixed(const T* x,
                                                                      const LineTaps<typename How::Weight>& t, T* out) {
  using Sum = typename How::Sum;
  const int64_t n = t.n;
  const int32_t* const first = t.first;
  const typename How::Weight* const w = t.by_tap;
  for (int64_t i = line_begun<T, kCount>(x, t, out); i < t.end; ++i) {
    Sum sum = Sum(w[i]) * Sum(x[first[i]]);
    for (int k = 1; k < kCount; ++k) sum += Sum(w[k * n + i]) * Sum(x[first[i] + k]);
    out[i] = How::result(sum, t.shift);
  }
}
template <class T, class How>
inline void line_any(const T* x, const LineTaps<typename How::Weight>& t, int64_t begin, int64_t end, T* out) {
  using Sum = typename How::Sum;
  for (int64_t i = begin; i < end; ++i) {
    const T* const from = x + t.first[i];
    const typename How::Weight* const w = t.weights + i * t.most;
    Sum sum(0);
    for (int64_t k = 0; k < t.count[i]; ++k) sum += Sum(w[k]) * Sum(from[k]);
    out[i] = How::result(sum, t.shift);
  }
}
/// Elements in groups of a number that the compiler knows, as pixels of three colours are.
template <class T, class How, int kInner>
inline void line_groups(const T* x, const LineTaps<typename How::Weight>& t, T* out) {
  using Sum = typename How::Sum;
  for (int64_t i = 0; i < t.n; ++i) {
    const T* from = x + int64_t(t.first[i]) * kInner;
    const typename How::Weight* const w = t.weights + i * t.most;
    Sum sums[kInner] = {};
    for (int64_t k = 0; k < t.count[i]; ++k, from += kInner)
      for (int c = 0; c < kInner; ++c) sums[c] += Sum(w[k]) * Sum(from[c]);
    for (int c = 0; c < kInner; ++c) out[i * kInner + c] = How::result(sums[c], t.shift);
  }
}
template <class T, class How>
inline void line_wide(const T* x, const LineTaps<typename How::Weight>& t, int64_t inner, T* out) {
  constexpr int64_t few = 16;
  const T* rows[few];
  for (int64_t i = 0; i < t.n; ++i) {
    const T* const from = x + t.first[i] * inner;
    const int64_t count = t.count[i];
    if (count <= few) {
      for (int64_t k = 0; k < count; ++k) rows[k] = from + k * inner;
      blend_rows<T, How>(rows, t.weights + i * t.most, count, inner, t.shift, out + i * inner);
      continue;
    }
    for (int64_t c = 0; c < inner; ++c) {
      typename How::Sum sum(0);
      for (int64_t k = 0; k < count; ++k)
        sum += typename How::Sum(t.weights[i * t.most + k]) * typename How::Sum(from[k * inner + c]);
      out[i * inner + c] = How::result(sum, t.shift);
    }
  }
}
template <class T, class How>
inline void line_of(const T* x, const LineTaps<typename How::Weight>& t, int64_t inner, T* out) {
  switch (inner) {
    case 1:
      if (t.most != 2 && t.most != 4) return line_any<T, How>(x, t, 0, t.n, out);
      line_any<T, How>(x, t, 0, t.begin, out);
      if (t.most == 2) line_fixed<T, How, 2>(x, t, out);
      else line_fixed<T, How, 4>(x, t, out);
      return line_any<T, How>(x, t, t.end, t.n, out);
    case 2: return line_groups<T, How, 2>(x, t, out);
    case 3: return line_groups<T, How, 3>(x, t, out);
    case 4: return line_groups<T, How, 4>(x, t, out);
    default: return line_wide<T, How>(x, t, inner, out);
  }
}

template <class T>
void line(const T* x, const LineTaps<T>& taps, int64_t inner, T* out) {
  line_of<T, Real<T>>(x, taps, inner, out);
}
template <class T>
void blend(const T* const* rows, const T* weights, int64_t count, int64_t n, T* out) {
  blend_rows<T, Real<T>>(rows, weights, count, n, 0, out);
}
void line_bytes(const uint8_t* x, const LineTaps<int32_t>& taps, int64_t inner, uint8_t* out) {
  line_of<uint8_t, Byte>(x, taps, inner, out);
}
void blend_bytes(const uint8_t* const* rows, const int32_t* weights, int64_t count, int64_t n, int shift,
                 uint8_t* out) {
  blend_rows<uint8_t, Byte>(rows, weights, count, n, shift, out);
}

#ifdef __AVX512F__
/// As many points at once as a register has, by gathers; returns where they end.
template <int kTaps>
inline int64_t sample_gathered(const float* x, const PointTaps<float>& t, float* out) {
  int64_t p = 0;
  for (; p + 16 <= t.points; p += 16) {
    __m512 sum = _mm512_setzero_ps();
#pragma GCC unroll 16
    for (int k = 0; k < kTaps; ++k) {
      const __m512i at = _mm512_loadu_si512(t.offsets + k * t.points + p);
      const __mmask16 inside = _mm512_cmpge_epi32_mask(at, _mm512_setzero_si512());
      const __m512 value = _mm512_mask_i32gather_ps(_mm512_setzero_ps(), inside, at, x, 4);
      sum = _mm512_add_ps(sum, _mm512_mul_ps(_mm512_loadu_ps(t.weights + k * t.points + p), value));
    }
    _mm512_storeu_ps(out + p, sum);
  }
  return p;
}
template <int kTaps>
inline int64_t sample_gathered(const double* x, const PointTaps<double>& t, double* out) {
  int64_t p = 0;
  for (; p + 8 <= t.points; p += 8) {
    __m512d sum = _mm512_setzero_pd();
#pragma GCC unroll 16
    for (int k = 0; k < kTaps; ++k) {
      const __m256i at = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(t.offsets + k * t.points + p));
      const __mmask8 inside = _mm512_cmpge_epi64_mask(_mm512_cvtepi32_epi64(at), _mm512_setzero_si512());
      const __m512d value = _mm512_mask_i32gather_pd(_mm512_setzero_pd(), inside, at, x, 8);
      sum = _mm512_add_pd(sum, _mm512_mul_pd(_mm512_loadu_pd(t.weights + k * t.points + p), value));
    }
    _mm512_storeu_pd(out + p, sum);
  }
  return p;
}
constexpr int64_t kGathered = 32;
#else
/// Gathers of other instruction sets take longer than the loads do.
template <int kTaps, class T>
inline int64_t sample_gathered(const T*, const PointTaps<T>&, T*) {
  return 0;
}
constexpr int64_t kGathered = 8;
#endif

template <class T, int kTaps>
inline void sample_fixed(const T* x, const PointTaps<T>& t, T* out) {
  for (int64_t p = sample_gathered<kTaps>(x, t, out); p < t.points; ++p) {
    T sum(0);
    for (int k = 0; k < kTaps; ++k) {
      const int32_t at = t.offsets[k * t.points + p];
      const T value = x[at < 0 ? 0 : at];
      sum += t.weights[k * t.points + p] * (at < 0 ? T(0) : value);
    }
    out[p] = sum;
  }
}
template <class T>
void sample(const T* x, const PointTaps<T>& t, T* out) {
  switch (t.taps) {
    case 1: return sample_fixed<T, 1>(x, t, out);
    case 4: return sample_fixed<T, 4>(x, t, out);
    case 8: return sample_fixed<T, 8>(x, t, out);
    default: return sample_fixed<T, 16>(x, t, out);
  }
}

template <class T, int kTaps>
void sample_rows_fixed(const T* x, int64_t channels, const T* zeros, const PointTaps<T>& t, int64_t begin, int64_t end,
                       T* __restrict out) {
  for (int64_t p = begin; p < end; ++p, out += channels) {
    const T* rows[kTaps];
    T weights[kTaps];
    for (int k = 0; k < kTaps; ++k) {
      const int32_t at = t.offsets[k * t.points + p];
      rows[k] = at < 0 ? zeros : x + at * channels;
      weights[k] = t.weights[k * t.points + p];
    }
    for (int64_t c = 0; c < channels; ++c) {
      T sum(0);
#pragma GCC unroll 16
      for (int k = 0; k < kTaps; ++k) sum += weights[k] * rows[k][c];
      out[c] = sum;
    }
  }
}
template <class T>
void sample_rows(const T* x, int64_t channels, const T* zeros, const PointTaps<T>& t, int64_t begin, int64_t end,
                 T* out) {
  switch (t.taps) {
    case 1: return sample_rows_fixed<T, 1>(x, channels, zeros, t, begin, end, out);
    case 4: return sample_rows_fixed<T, 4>(x, channels, zeros, t, begin, end, out);
    case 8: return sample_rows_fixed<T, 8>(x, channels, zeros, t, begin, end, out);
    default: return sample_rows_fixed<T, 16>(x, channels, zeros, t, begin, end, out);
  }
}

template <class T>
void gather_products(const T* x, const PointTaps<T>& t, const T* __restrict grad, T* __restrict sums) {
  for (int64_t k = 0; k < t.taps; ++k) {
    const int32_t* const offsets = t.offsets + k * t.points;
    T* const to = sums + k * t.points;
    for (int64_t p = 0; p < t.points; ++p) {
      const T value = x[offsets[p] < 0 ? 0 : offsets[p]];
      to[p] += grad[p] * (offsets[p] < 0 ? T(0) : value);
    }
  }
}

template <class T>
void scatter(const T* grad, const PointTaps<T>& t, T* x) {
  for (int64_t k = 0; k < t.taps; ++k) {
    const int32_t* const offsets = t.offsets + k * t.points;
    const T* const weights = t.weights + k * t.points;
    for (int64_t p = 0; p < t.points; ++p)
      if (offsets[p] >= 0) x[offsets[p]] += grad[p] * weights[p];
  }
}

template <class T>
constexpr SpatialLoops<T> loops_of() {
  return {line<T>, blend<T>, sample<T>, sample_rows<T>, scatter<T>, fill_taps<T>, gather_products<T>};
}

}  // namespace

constinit const SpatialTable spatial = {loops_of<float>(), loops_of<double>(), {line_bytes, blend_bytes}, kGathered};

}  // namespace taeda::loops::TAEDA_ISA
