// Inner loops over bags of rows, for one instruction set: some columns of all rows at a time, which stay in registers.
#include "cpu/loops/bags.h"

#include "cpu/loops/lanes.h"
#include "cpu/loops/types.h"

namespace taeda::loops::TAEDA_ISA {
namespace {

/// A register of `Bytes` bytes of sums.
template <class T, int Bytes>
struct Part {
  using Sum = typename Bag<T>::Sum;
  using Sums = typename Register<Sum, Bytes>::type;
  using Places = typename Register<std::conditional_t<sizeof(Sum) == 4, int32_t, int64_t>, Bytes>::type;
  static constexpr int lanes = Bytes / int(sizeof(Sum));

  static Sums read(const T* x) {
    Sums out;
    if constexpr (std::is_same_v<T, Sum>) std::memcpy(&out, x, sizeof out);
    else read_short(x, &out);
    return out;
  }

 private:
  using Bits = typename Register<uint32_t, Bytes>::type;
  static void keep(auto wide, Sums* out) { std::memcpy(out, &wide, sizeof wide); }
  // By instructions: the compiler widens a register in two halves.
  static void read_short([[maybe_unused]] const BFloat16* x, Sums* out) {
#ifdef __AVX512F__
    if constexpr (Bytes == 64)  // by mask here and below: without one GCC 12 warns of its own header
      return keep(Bits(_mm512_maskz_cvtepu16_epi32(0xffff, load256(x))) << 16, out);
#endif
#ifdef __AVX2__
    if constexpr (Bytes == 32) return keep(Bits(_mm256_cvtepu16_epi32(load128(x))) << 16, out);
#endif
    for (int i = 0; i < lanes; ++i) (*out)[i] = float(x[i]);
  }
  static void read_short([[maybe_unused]] const Half* x, Sums* out) {
#ifdef __AVX512F__
    if constexpr (Bytes == 64) return keep(_mm512_maskz_cvtph_ps(0xffff, load256(x)), out);
#endif
#ifdef __F16C__
    if constexpr (Bytes == 32) return keep(_mm256_cvtph_ps(load128(x)), out);
    if constexpr (Bytes == 16) return keep(_mm_cvtph_ps(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(x))), out);
#endif
    for (int i = 0; i < lanes; ++i) (*out)[i] = float(x[i]);
  }
#ifdef __AVX2__
  static __m128i load128(const void* x) { return _mm_loadu_si128(static_cast<const __m128i*>(x)); }
  static __m256i load256(const void* x) { return _mm256_loadu_si256(static_cast<const __m256i*>(x)); }
#endif
};

/// The row that comes so many rows later is fetched: rows of a large table lie far from each other.
constexpr int64_t kAhead = 8;
template <class T>
inline void fetch_ahead(const Bag<T>& bag, int64_t k, int64_t at, int64_t bytes) {
  const int64_t* const later = bag.indices + k + kAhead;
  if (later >= bag.end) return;
  const char* const row = reinterpret_cast<const char*>(bag.table + *later * bag.width + at);
  for (int64_t line = 0; line < bytes; line += 64) __builtin_prefetch(row + line);
}

template <class T, int Bytes, int N, bool kFactors>
inline void sum_part(const Bag<T>& bag, int64_t at, typename Bag<T>::Sum* out) {
  using P = Part<T, Bytes>;
  typename P::Sums sums[N] = {};
  for (int64_t k = 0; k < bag.count; ++k) {
    const T* const row = bag.table + bag.indices[k] * bag.width + at;
    fetch_ahead(bag, k, at, N * P::lanes * int64_t(sizeof(T)));
    for (int i = 0; i < N; ++i) {
      if constexpr (kFactors) sums[i] += bag.factors[k] * P::read(row + i * P::lanes);
      else sums[i] += P::read(row + i * P::lanes);
    }
  }
  if (bag.divisor != 1)
    for (int i = 0; i < N; ++i) sums[i] /= bag.divisor;
  std::memcpy(out + at, sums, sizeof sums);
}
/// The columns that fill no register, each in four sums, so that no addition waits for the one before.
template <class T, bool kFactors>
inline void sum_column(const Bag<T>& bag, int64_t at, typename Bag<T>::Sum* out) {
  using Sum = typename Bag<T>::Sum;
  const auto term = [&](int64_t k) {
    const Sum x = Sum(bag.table[bag.indices[k] * bag.width + at]);
    return kFactors ? bag.factors[k] * x : x;
  };
  Sum sums[4] = {};
  int64_t k = 0;
  for (; k + 4 <= bag.count; k += 4)
    for (int i = 0; i < 4; ++i) sums[i] += term(k + i);
  for (; k < bag.count; ++k) sums[0] += term(k);
  const Sum sum = (sums[0] + sums[1]) + (sums[2] + sums[3]);
  out[at] = bag.divisor != 1 ? sum / bag.divisor : sum;
}

template <class T, int Bytes, int N>
inline void most_part(const Bag<T>& bag, int64_t at, typename Bag<T>::Sum* out, int64_t* from) {
  using P = Part<T, Bytes>;
  typename P::Sums most[N];
  typename P::Places places[N] = {};
  for (int i = 0; i < N; ++i) most[i] = P::read(bag.table + bag.indices[0] * bag.width + at + i * P::lanes);
  for (int64_t k = 1; k < bag.count; ++k) {
    const T* const row = bag.table + bag.indices[k] * bag.width + at;
    fetch_ahead(bag, k, at, N * P::lanes * int64_t(sizeof(T)));
    for (int i = 0; i < N; ++i) {
      const auto x = P::read(row + i * P::lanes);
      const auto more = x > most[i];
      most[i] = more ? x : most[i];
      places[i] = more ? typename P::Places{} + decltype(places[0][0] + 0)(k) : places[i];
    }
  }
  std::memcpy(out + at, most, sizeof most);
  for (int i = 0; i < N; ++i)
    for (int j = 0; j < P::lanes; ++j) from[at + i * P::lanes + j] = bag.indices[places[i][j]];
}
template <class T>
inline void most_column(const Bag<T>& bag, int64_t at, typename Bag<T>::Sum* out, int64_t* from) {
  using Sum = typename Bag<T>::Sum;
  for (int64_t k = 0; k < bag.count; ++k) {
    const Sum x = Sum(bag.table[bag.indices[k] * bag.width + at]);
    if (k == 0 || x > out[at]) out[at] = x, from[at] = bag.indices[k];
  }
}

/// Covers the columns by `wide(at)` of eight registers each, then of four, two and one, of smaller registers, and what
/// is left one by one.
template <class T, class Run, class One>
inline void cover(int64_t width, const Run& run, const One& one) {
  int64_t at = 0;
  const auto take = [&]<int Bytes, int N>() {
    constexpr int64_t columns = N * Part<T, Bytes>::lanes;
    for (; at + columns <= width; at += columns) run.template operator()<Bytes, N>(at);
  };
  take.template operator()<kRegister, 8>();
  take.template operator()<kRegister, 4>();
  take.template operator()<kRegister, 2>();
  take.template operator()<kRegister, 1>();
  if constexpr (kRegister >= 64) take.template operator()<32, 1>();
  if constexpr (kRegister >= 32) take.template operator()<16, 1>();
  for (; at < width; ++at) one(at);
}

template <class T, bool kFactors>
inline void sum_columns(const Bag<T>& bag, typename Bag<T>::Sum* out) {
  cover<T>(
      bag.width, [&]<int Bytes, int N>(int64_t at) { sum_part<T, Bytes, N, kFactors>(bag, at, out); },
      [&](int64_t at) { sum_column<T, kFactors>(bag, at, out); });
}
template <class T>
void sum(const Bag<T>& bag, typename Bag<T>::Sum* out) {
  if (bag.factors) sum_columns<T, true>(bag, out);
  else sum_columns<T, false>(bag, out);
}
template <class T>
void most(const Bag<T>& bag, typename Bag<T>::Sum* out, int64_t* from) {
  cover<T>(
      bag.width, [&]<int Bytes, int N>(int64_t at) { most_part<T, Bytes, N>(bag, at, out, from); },
      [&](int64_t at) { most_column<T>(bag, at, out, from); });
}

template <class T> inline constexpr BagLoops<T> loops_of = {sum<T>, most<T>};

}  // namespace

constinit const BagTable bags = {loops_of<float>, loops_of<double>, loops_of<Half>, loops_of<BFloat16>};

}  // namespace taeda::loops::TAEDA_ISA
