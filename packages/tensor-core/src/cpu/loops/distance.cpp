// Inner loops of distances between rows.
#include "cpu/loops/distance.h"

#include <cmath>
#include <type_traits>

namespace taeda::loops::TAEDA_ISA {
namespace {

constexpr int64_t kLanes = 16;

/// One term of the norm of a difference.
template <class T, Norm kNorm>
inline T term(T a, T b, T p) {
  const T d = std::abs(a - b);
  if constexpr (kNorm == Norm::Zero) return d == 0 ? T(0) : d != d ? d : T(1);
  else if constexpr (kNorm == Norm::Two) return d * d;
  else if constexpr (kNorm == Norm::Any) return std::pow(d, p);
  else return d;
}
template <class T, Norm kNorm>
inline T joined(T a, T b) {
  if constexpr (kNorm == Norm::Infinite) return b > a || b != b ? b : a;
  else return a + b;
}
/// Of all terms together.
template <class T, Norm kNorm>
inline T norm_of(T sum, T p) {
  if constexpr (kNorm == Norm::Two) return std::sqrt(sum);
  else if constexpr (kNorm == Norm::Any) return std::pow(sum, 1 / p);
  else return sum;
}
/// In a fixed number of lanes, so that loops vectorise and the order of terms follows from the length alone.
template <class T, Norm kNorm>
inline T distance_of(const T* a, const T* b, int64_t n, T p) {
  T lanes[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    for (int64_t k = 0; k < kLanes; ++k) lanes[k] = joined<T, kNorm>(lanes[k], term<T, kNorm>(a[i + k], b[i + k], p));
  for (int64_t k = 0; i + k < n; ++k) lanes[k] = joined<T, kNorm>(lanes[k], term<T, kNorm>(a[i + k], b[i + k], p));
  for (int64_t step = kLanes / 2; step; step /= 2)
    for (int64_t k = 0; k < step; ++k) lanes[k] = joined<T, kNorm>(lanes[k], lanes[k + step]);
  return norm_of<T, kNorm>(lanes[0], p);
}
template <class T, Norm kNorm>
void from_row(const void* row, const void* rows, int64_t count, int64_t n, double p, void* out) {
  const T* other = static_cast<const T*>(rows);
  for (int64_t j = 0; j < count; ++j, other += n)
    static_cast<T*>(out)[j] = distance_of<T, kNorm>(static_cast<const T*>(row), other, n, T(p));
}

/// Of short rows the pairs fill vectors, not the terms of one.
template <class T, Norm kNorm>
void from_turned(const void* row_, const void* turned_, int64_t step, int64_t count, int64_t n, double p, void* out_) {
  constexpr int64_t block = 64;
  const T *const row = static_cast<const T*>(row_), *const turned = static_cast<const T*>(turned_);
  const auto some = [&](int64_t first, auto width) {
    alignas(64) T sums[block] = {};
    for (int64_t k = 0; k < n; ++k) {
      const T a = row[k], *const other = turned + k * step + first;
      for (int64_t j = 0; j < width; ++j) sums[j] = joined<T, kNorm>(sums[j], term<T, kNorm>(a, other[j], T(p)));
    }
    T* const out = static_cast<T*>(out_) + first;
    for (int64_t j = 0; j < width; ++j) out[j] = norm_of<T, kNorm>(sums[j], T(p));
  };
  int64_t j = 0;
  for (; j + block <= count; j += block) some(j, std::integral_constant<int64_t, block>());
  if (j < count) some(j, count - j);
}
template <class T, Norm kNorm>
constexpr DistanceLoops loops_of() {
  return {from_row<T, kNorm>, from_turned<T, kNorm>};
}
template <Norm kNorm>
constexpr std::array<DistanceLoops, 2> both() {
  return {loops_of<float, kNorm>(), loops_of<double, kNorm>()};
}

}  // namespace

constinit const DistanceTable distance{
    {both<Norm::Zero>(), both<Norm::One>(), both<Norm::Two>(), both<Norm::Infinite>(), both<Norm::Any>()}};

}  // namespace taeda::loops::TAEDA_ISA
