// Images and volumes sampled at points, and the gradients of both. What points add to an element is put in order first.
#pragma once
#include "kernels/elementwise.h"
#include "scalar/points.h"

namespace taeda::cuda {

/// Images (n, channels, up to three dimensions) and a row-major grid (n, points, rank). Dimensions count in the order
/// of coordinates: x, y, z.
struct Points {
  static constexpr int kMostRank = 3, kEach = 4, kMostTaps = 16;
  int32_t rank, align_corners;
  loops::Sampled how;
  loops::Outside outside;
  int64_t channels, points, size[kMostRank], step[kMostRank], step_image, step_channel;  // steps of the image
  Array image, grid;

  TAEDA_HD int each() const { return how == loops::Sampled::Cubic ? 4 : how == loops::Sampled::Linear ? 2 : 1; }
  TAEDA_HD int taps() const {
    int count = 1;
    for (int d = 0; d < rank; ++d) count *= each();
    return count;
  }
};
/// What a point reads.
template <class C>
struct PointTaps {
  int64_t offset[Points::kMostRank][Points::kEach];  // below 0 where there is no element
  C weight[Points::kMostRank][Points::kEach], slope[Points::kMostRank][Points::kEach];
  int each, rank;

  /// Of point `i` of all images.
  TAEDA_HD PointTaps(const Points& p, int64_t i) : each(p.each()), rank(p.rank) {
    for (int d = 0; d < rank; ++d) read(p, d, load<C>(p.grid, i * rank + d));
  }
  /// Tap k: its offset, below 0 where there is none, and its weight.
  TAEDA_HD int64_t tap(int k, C& w) const {
    int64_t sum = 0;
    w = C(1);
    for (int d = 0; d < rank; ++d, k /= each) {
      const int own = k % each;
      if (offset[d][own] < 0) return -1;
      sum += offset[d][own], w *= weight[d][own];
    }
    return sum;
  }
  /// The derivative of tap k's weight by a coordinate.
  TAEDA_HD C by(int coordinate, int k) const {
    C product(1);
    for (int d = 0; d < rank; ++d, k /= each) product *= d == coordinate ? slope[d][k % each] : weight[d][k % each];
    return product;
  }

 private:
  template <loops::Sampled kHow, class Axis>
  TAEDA_HD void read_by(const Axis& axis, const Points& p, int d, C x) {
    axis.template read<kHow>(x, [&](int k, C at, C own_weight, C own_slope) {
      offset[d][k] = axis.has(at) ? int64_t(at) * p.step[d] : -1;
      weight[d][k] = own_weight, slope[d][k] = own_slope;
    });
  }
  TAEDA_APART TAEDA_HD void read(const Points& p, int d, C x) {
    loops::TAEDA_ISA::with_axis<C>(p.align_corners != 0, p.outside, p.size[d], [&](const auto& axis) {
      switch (p.how) {
        case loops::Sampled::Linear: return read_by<loops::Sampled::Linear>(axis, p, d, x);
        case loops::Sampled::Nearest: return read_by<loops::Sampled::Nearest>(axis, p, d, x);
        default: return read_by<loops::Sampled::Cubic>(axis, p, d, x);
      }
    });
  }
};

/// Channels that a thread takes of one point or one element.
inline constexpr int kChannelsAtOnce = 8;
TAEDA_HD inline int64_t groups_of(int64_t channels) { return (channels + kChannelsAtOnce - 1) / kChannelsAtOnce; }
/// Item (n, group of channels, place).
struct ChannelGroup {
  int64_t n, first, place;
  int count;
  TAEDA_HD ChannelGroup(int64_t item, int64_t channels, int64_t places) {
    const int64_t row = quotient(item, places), groups = groups_of(channels);
    place = item - row * places;
    n = quotient(row, groups);
    first = (row - n * groups) * kChannelsAtOnce;
    count = int(channels - first < kChannelsAtOnce ? channels - first : kChannelsAtOnce);
  }
};

/// Results (n, channels, points).
template <class C>
struct SamplePoints {
  Points p;
  Array result;
  TAEDA_HD void operator()(int64_t item) const {
    const ChannelGroup g(item, p.channels, p.points);
    const PointTaps<C> taps(p, g.n * p.points + g.place);
    C sums[kChannelsAtOnce] = {};
    for (int k = 0; k < p.taps(); ++k) {
      C weight;
      const int64_t offset = taps.tap(k, weight);
      if (offset < 0) continue;
      const int64_t from = g.n * p.step_image + g.first * p.step_channel + offset;
      TAEDA_UNROLL
      for (int c = 0; c < kChannelsAtOnce; ++c)
        if (c < g.count) sums[c] += weight * load<C>(p.image, from + c * p.step_channel);
    }
    TAEDA_UNROLL
    for (int c = 0; c < kChannelsAtOnce; ++c)
      if (c < g.count) store<C>(result, (g.n * p.channels + g.first + c) * p.points + g.place, sums[c]);
  }
};
/// The grid's gradient, a thread for each point: of each tap the sum over channels, times its weight's slopes.
template <class C>
struct SampleGridGradient {
  Points p;
  Array grad, result;  // row-major
  TAEDA_HD void operator()(int64_t i) const {
    const int64_t n = quotient(i, p.points), place = i - n * p.points;
    const PointTaps<C> taps(p, i);
    C sums[Points::kMostRank] = {};
    for (int k = 0; k < p.taps(); ++k) {
      C weight, sum(0);
      const int64_t offset = taps.tap(k, weight), from = n * p.step_image + offset;
      if (offset < 0) continue;
      for (int64_t c = 0; c < p.channels; ++c)
        sum += load<C>(grad, (n * p.channels + c) * p.points + place) * load<C>(p.image, from + c * p.step_channel);
      for (int d = 0; d < p.rank; ++d) sums[d] += sum * taps.by(d, k);
    }
    for (int d = 0; d < p.rank; ++d) store<C>(result, i * p.rank + d, sums[d]);
  }
};

/// What each tap of each point adds to which element: a thread for each point. Taps of places outside come behind all.
template <class C>
struct NameTaps {
  Points p;  // steps are those of row-major images
  int64_t elements, nowhere;
  Address keys, weights;
  TAEDA_HD void operator()(int64_t i) const {
    const int64_t n = quotient(i, p.points);
    const PointTaps<C> taps(p, i);
    const int count = p.taps();
    for (int k = 0; k < count; ++k) {
      C weight;
      const int64_t offset = taps.tap(k, weight);
      at<int64_t>(keys)[i * count + k] = offset < 0 ? nowhere : n * elements + offset;
      at<C>(weights)[i * count + k] = weight;
    }
  }
};
/// Where the taps of each element begin in the order; a thread for each element, and one for the end of the last.
struct TapBegins {
  Address keys, order, begins;
  int64_t count;
  TAEDA_HD void operator()(int64_t element) const {
    int64_t low = 0, high = count;
    while (low < high) {
      const int64_t middle = low + (high - low) / 2;
      if (at<const int64_t>(keys)[at<const int64_t>(order)[middle]] < element) low = middle + 1;
      else high = middle;
    }
    at<int64_t>(begins)[element] = low;
  }
};
/// The image's gradient (n, channels, elements), row-major.
template <class C>
struct SampleImageGradient {
  int64_t channels, points, elements;
  int32_t taps, reserved;
  Address order, begins, weights;
  Array grad, result;
  TAEDA_HD void operator()(int64_t item) const {
    const ChannelGroup g(item, channels, elements);
    const int64_t element = g.n * elements + g.place, plane = g.n * channels + g.first;
    const int64_t* const begin = at<const int64_t>(begins) + element;
    C sums[kChannelsAtOnce] = {};
    for (int64_t k = begin[0]; k < begin[1]; ++k) {
      const int64_t tap = at<const int64_t>(order)[k], point = quotient(tap, taps) - g.n * points;
      const C weight = at<const C>(weights)[tap];
      TAEDA_UNROLL
      for (int c = 0; c < kChannelsAtOnce; ++c)
        if (c < g.count) sums[c] += weight * load<C>(grad, (plane + c) * points + point);
    }
    TAEDA_UNROLL
    for (int c = 0; c < kChannelsAtOnce; ++c)
      if (c < g.count) store<C>(result, (plane + c) * elements + g.place, sums[c]);
  }
};

}  // namespace taeda::cuda
