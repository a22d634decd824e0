// Which elements of an image a point in it is made of, for one instruction set.
#pragma once
#include <algorithm>

#include "cpu/loops/spatial.h"
#include "cpu/scratch.h"
#include "scalar/points.h"

namespace taeda::loops::TAEDA_ISA {

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
inline void fill_column(const T* grid, int64_t rank, int64_t points, const Axis& axis, int32_t step,
                        PointColumn<T>& to) {
  for (int64_t p = 0; p < points; ++p)
    axis.template read<kHow>(grid[p * rank], [&](int k, T at, T weight, T slope) {
      // Offsets are made without a branch.
      const bool there = axis.has(at);
      const int32_t whole = int32_t(there ? at : T(0));
      to.put(k, p, there ? whole * step : -1, weight, slope);
    });
}
template <Sampled kHow, class T>
inline void fill_column_of(const T* grid, int64_t d, int64_t points, const PointPlan& plan, PointColumn<T>& to) {
  with_axis<T>(plan.align_corners, plan.outside, plan.size[d], [&](const auto& axis) {
    fill_column<kHow>(grid + d, plan.rank, points, axis, int32_t(plan.step[d]), to);
  });
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
  const cpu::Scratch room(plan.rank * int64_t(sizeof(PointColumn<T>)));
  auto* const columns = room.as<PointColumn<T>>();
  for (int64_t d = 0; d < plan.rank; ++d) switch (plan.how) {
      case Sampled::Linear: fill_column_of<Sampled::Linear>(grid, d, points, plan, columns[d]); break;
      case Sampled::Nearest: fill_column_of<Sampled::Nearest>(grid, d, points, plan, columns[d]); break;
      default: fill_column_of<Sampled::Cubic>(grid, d, points, plan, columns[d]);
    }
  for (int64_t k = 0; k < plan.taps(); ++k)
    combine(k, points, plan, columns, offsets + k * points, weights + k * points, slopes);
}

}  // namespace taeda::loops::TAEDA_ISA
