// Which elements of an image a point in it is made of, for one instruction set.
#pragma once
#include <algorithm>
#include <cmath>

#include "cpu/loops/spatial.h"

namespace taeda::loops::TAEDA_ISA {

/// A coordinate, and its derivative by the one in the grid.
template <class T>
struct Place {
  T at, slope;
};

/// One dimension of the image.
template <class T, bool kAlign, Outside kOutside>
struct PointAxis {
  T size;
  int32_t step;

  Place<T> unnormalized(T x) const {
    if constexpr (kAlign) return {(x + 1) / 2 * (size - 1), (size - 1) / 2};
    else return {((x + 1) * size - 1) / 2, size / 2};
  }
  Place<T> inside(Place<T> p) const {
    if constexpr (kOutside == Outside::Reflection) p = reflected(p);
    if constexpr (kOutside == Outside::Zeros) return p;
    const bool low = !(p.at > 0), high = p.at >= size - 1;
    return {low ? T(0) : high ? size - 1 : p.at, low || high ? T(0) : p.slope};
  }
  /// Reflected until it lies between the centres of the corners, or between their edges.
  Place<T> reflected(Place<T> p) const {
    const T low = kAlign ? T(0) : T(-0.5), span = kAlign ? size - 1 : size;
    if (span == 0) return {T(0), T(0)};
    const T away = p.at - low, distance = std::abs(away), sign = away < 0 ? T(-1) : T(1);
    const T times = std::floor(distance / span), rest = distance - times * span;
    const bool even = times - 2 * std::floor(times / 2) == 0;
    return {(even ? rest : span - rest) + low, p.slope * (even ? sign : -sign)};
  }
  /// The offset of element `at`, or -1 where there is none.
  int32_t offset(T at) const {
    const bool there = at >= 0 && at < size;
    const int32_t whole = int32_t(there ? at : T(0));
    return there ? whole * step : -1;
  }
};

/// Keys' cubic convolution, a = -0.75, at a distance below 1 and from 1 to 2, and its derivatives.
template <class T>
T keys_near(T x) {
  return ((T(1.25) * x - T(2.25)) * x) * x + 1;
}
template <class T>
T keys_far(T x) {
  return ((x - 5) * x + 8) * x * T(-0.75) + 3;
}
template <class T>
T keys_near_slope(T x) {
  return (T(3.75) * x - T(4.5)) * x;
}
template <class T>
T keys_far_slope(T x) {
  return T(-0.75) * ((3 * x - 10) * x + 8);
}

/// What one coordinate of a block of points reads, element by element. Nothing is made of places outside.
template <class T>
struct PointColumn {
  int32_t offset[4][kPoints];
  T weight[4][kPoints], slope[4][kPoints];
  void put(int k, int64_t p, int32_t at, T own_weight, T own_slope) {
    offset[k][p] = at;
    weight[k][p] = at < 0 ? T(0) : own_weight;
    slope[k][p] = at < 0 ? T(0) : own_slope;
  }
};

template <Sampled kHow, class T, class Axis>
inline void fill_column(const T* grid, int64_t rank, int64_t points, const Axis& axis, PointColumn<T>& to) {
  for (int64_t p = 0; p < points; ++p) {
    const Place<T> given = axis.unnormalized(grid[p * rank]);
    if constexpr (kHow == Sampled::Cubic) {
      const T left = std::floor(given.at), t = given.at - left, by = given.slope;
      const auto at = [&](int k) { return axis.offset(axis.inside({left + T(k - 1), T(0)}).at); };
      to.put(0, p, at(0), keys_far(1 + t), keys_far_slope(1 + t) * by);
      to.put(1, p, at(1), keys_near(t), keys_near_slope(t) * by);
      to.put(2, p, at(2), keys_near(1 - t), -keys_near_slope(1 - t) * by);
      to.put(3, p, at(3), keys_far(2 - t), -keys_far_slope(2 - t) * by);
    } else if constexpr (kHow == Sampled::Nearest) {
      to.put(0, p, axis.offset(std::nearbyint(axis.inside(given).at)), T(1), T(0));
    } else {
      const Place<T> place = axis.inside(given);
      const T left = std::floor(place.at), t = place.at - left;
      to.put(0, p, axis.offset(left), 1 - t, -place.slope);
      to.put(1, p, axis.offset(left + 1), t, place.slope);
    }
  }
}
template <Sampled kHow, class T>
inline void fill_column_of(const T* grid, int64_t d, int64_t points, const PointPlan& plan, PointColumn<T>& to) {
  const auto fill = [&]<bool kAlign, Outside kOutside>() {
    const PointAxis<T, kAlign, kOutside> axis{T(plan.size[d]), int32_t(plan.step[d])};
    fill_column<kHow>(grid + d, plan.rank, points, axis, to);
  };
  const auto align = [&]<Outside kOutside>() {
    if (plan.align_corners) fill.template operator()<true, kOutside>();
    else fill.template operator()<false, kOutside>();
  };
  switch (plan.outside) {
    case Outside::Zeros: return align.template operator()<Outside::Zeros>();
    case Outside::Border: return align.template operator()<Outside::Border>();
    default: return align.template operator()<Outside::Reflection>();
  }
}

/// Tap k of all points: the product of one choice in each dimension.
template <class T>
inline void combine(int64_t k, int64_t points, const PointPlan& plan, const PointColumn<T>* columns,
                    int32_t* __restrict offset, T* __restrict weight, T* const* slopes) {
  int64_t choice[3] = {}, rest = k;
  for (int64_t d = 0; d < plan.rank; ++d, rest /= plan.each()) choice[d] = rest % plan.each();
  std::copy_n(columns[0].offset[choice[0]], points, offset);
  std::copy_n(columns[0].weight[choice[0]], points, weight);
  for (int64_t d = 1; d < plan.rank; ++d) {
    const int32_t* const own = columns[d].offset[choice[d]];
    const T* const factor = columns[d].weight[choice[d]];
    for (int64_t p = 0; p < points; ++p) {
      const int32_t sum = offset[p] + own[p];
      offset[p] = offset[p] < 0 || own[p] < 0 ? -1 : sum;
    }
    for (int64_t p = 0; p < points; ++p) weight[p] *= factor[p];
  }
  for (int64_t d = 0; slopes && d < plan.rank; ++d) {
    T* const slope = slopes[d] + k * points;
    std::copy_n(columns[d].slope[choice[d]], points, slope);
    for (int64_t other = 0; other < plan.rank; ++other) {
      const T* const factor = columns[other].weight[choice[other]];
      for (int64_t p = 0; p < points && other != d; ++p) slope[p] *= factor[p];
    }
  }
}

template <class T>
void fill_taps(const T* grid, int64_t points, const PointPlan& plan, int32_t* offsets, T* weights, T* const* slopes) {
  PointColumn<T> columns[3];
  for (int64_t d = 0; d < plan.rank; ++d) switch (plan.how) {
      case Sampled::Linear: fill_column_of<Sampled::Linear>(grid, d, points, plan, columns[d]); break;
      case Sampled::Nearest: fill_column_of<Sampled::Nearest>(grid, d, points, plan, columns[d]); break;
      default: fill_column_of<Sampled::Cubic>(grid, d, points, plan, columns[d]);
    }
  for (int64_t k = 0; k < plan.taps(); ++k)
    combine(k, points, plan, columns, offsets + k * points, weights + k * points, slopes);
}

}  // namespace taeda::loops::TAEDA_ISA
