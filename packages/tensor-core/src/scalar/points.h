// Which elements of a dimension a coordinate in it reads, and with which weights.
#pragma once
#include "scalar/base.h"
#include "scalar/spatial.h"

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

  TAEDA_HD Place<T> unnormalized(T x) const {
    if constexpr (kAlign) return {(x + 1) / 2 * (size - 1), (size - 1) / 2};
    else return {((x + 1) * size - 1) / 2, size / 2};
  }
  TAEDA_HD Place<T> inside(Place<T> p) const {
    if constexpr (kOutside == Outside::Reflection) p = reflected(p);
    if constexpr (kOutside == Outside::Zeros) return p;
    const bool low = !(p.at > 0), high = p.at >= size - 1;
    return {low ? T(0) : high ? size - 1 : p.at, low || high ? T(0) : p.slope};
  }
  /// Reflected until it lies between the centres of the corners, or between their edges.
  TAEDA_HD Place<T> reflected(Place<T> p) const {
    const T low = kAlign ? T(0) : T(-0.5), span = kAlign ? size - 1 : size;
    if (span == 0) return {T(0), T(0)};
    const T away = p.at - low, distance = magnitude(away), sign = away < 0 ? T(-1) : T(1);
    const T times = floor(distance / span), rest = distance - times * span;
    const bool even = times - 2 * floor(times / 2) == 0;
    return {(even ? rest : span - rest) + low, p.slope * (even ? sign : -sign)};
  }
  TAEDA_HD bool has(T at) const { return at >= 0 && at < size; }

  /// Gives `take(k, at, weight, slope)` the elements that a coordinate reads, those outside too.
  template <Sampled kHow, class Take>
  TAEDA_HD void read(T x, const Take& take) const;
};

/// Keys' cubic convolution, a = -0.75, at a distance below 1 and from 1 to 2, and its derivatives.
template <class T>
TAEDA_HD inline T keys_near(T x) {
  return ((T(1.25) * x - T(2.25)) * x) * x + 1;
}
template <class T>
TAEDA_HD inline T keys_far(T x) {
  return ((x - 5) * x + 8) * x * T(-0.75) + 3;
}
template <class T>
TAEDA_HD inline T keys_near_slope(T x) {
  return (T(3.75) * x - T(4.5)) * x;
}
template <class T>
TAEDA_HD inline T keys_far_slope(T x) {
  return T(-0.75) * ((3 * x - 10) * x + 8);
}

template <class T, bool kAlign, Outside kOutside>
template <Sampled kHow, class Take>
TAEDA_HD inline void PointAxis<T, kAlign, kOutside>::read(T x, const Take& take) const {
  const Place<T> given = unnormalized(x);
  if constexpr (kHow == Sampled::Cubic) {
    const T left = floor(given.at), t = given.at - left, by = given.slope;
    const auto at = [&](int k) { return inside({left + T(k - 1), T(0)}).at; };
    take(0, at(0), keys_far(1 + t), keys_far_slope(1 + t) * by);
    take(1, at(1), keys_near(t), keys_near_slope(t) * by);
    take(2, at(2), keys_near(1 - t), -keys_near_slope(1 - t) * by);
    take(3, at(3), keys_far(2 - t), -keys_far_slope(2 - t) * by);
  } else if constexpr (kHow == Sampled::Nearest) {
    take(0, nearbyint(inside(given).at), T(1), T(0));
  } else {
    const Place<T> place = inside(given);
    const T left = floor(place.at), t = place.at - left;
    take(0, left, 1 - t, -place.slope);
    take(1, left + 1, t, place.slope);
  }
}

/// Calls `f(axis)` with a dimension of so many elements.
template <class T, class F>
TAEDA_HD inline void with_axis(bool align_corners, Outside outside, int64_t size, const F& f) {
  const auto align = [&]<Outside kOutside>() {
    if (align_corners) f(PointAxis<T, true, kOutside>{T(size)});
    else f(PointAxis<T, false, kOutside>{T(size)});
  };
  switch (outside) {
    case Outside::Zeros: return align.template operator()<Outside::Zeros>();
    case Outside::Border: return align.template operator()<Outside::Border>();
    default: return align.template operator()<Outside::Reflection>();
  }
}

}  // namespace taeda::loops::TAEDA_ISA
