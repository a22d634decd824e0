// Inner loops of distances between rows.
#include "cpu/loops/distance.h"

#include <cmath>

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
  if constexpr (kNorm == Norm::Two) return std::sqrt(lanes[0]);
  else if constexpr (kNorm == Norm::Any) return std::pow(lanes[0], 1 / p);
  else return lanes[0];
}
template <class T, Norm kNorm>
void from_row(const void* row, const void* rows, int64_t count, int64_t n, double p, void* out) {
  const T* other = static_cast<const T*>(rows);
  for (int64_t j = 0; j < count; ++j, other += n)
    static_cast<T*>(out)[j] = distance_of<T, kNorm>(static_cast<const T*>(row), other, n, T(p));
}

}  // namespace

constinit const DistanceTable distance{{{from_row<float, Norm::Zero>, from_row<double, Norm::Zero>},
                                        {from_row<float, Norm::One>, from_row<double, Norm::One>},
                                        {from_row<float, Norm::Two>, from_row<double, Norm::Two>},
                                        {from_row<float, Norm::Infinite>, from_row<double, Norm::Infinite>},
                                        {from_row<float, Norm::Any>, from_row<double, Norm::Any>}}};

}  // namespace taeda::loops::TAEDA_ISA
