// Which elements of a dimension a result of resampling is made of, and with which weights.
#pragma once
#include "scalar/exact.h"
#include "scalar/spatial.h"

namespace taeda::loops::TAEDA_ISA {

TAEDA_HD inline int64_t between(int64_t x, int64_t least, int64_t most) {
  return x < least ? least : x > most ? most : x;
}
template <class T>
TAEDA_HD inline T within_one(T x) {
  return x < 0 ? T(0) : x > 1 ? T(1) : x;
}

/// The distance between results, in elements. Counted in T.
template <class T>
TAEDA_HD inline T step_of(const Resampled& r) {
  if (r.align_corners) return r.out > 1 ? T(r.in - 1) / T(r.out - 1) : T(0);
  return r.scale > 0 ? T(1.0 / r.scale) : T(r.in) / T(r.out);
}

/// Keys' cubic convolution at distance `x`.
template <class T>
TAEDA_HD inline T keys(T x, T a) {
  x = magnitude(x);
  if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? (((x - 5) * x + 8) * x - 4) * a : T(0);
}
template <class T>
TAEDA_HD inline T sinc(T x) {
  constexpr T pi = T(3.14159265358979323846);
  return x == 0 ? T(1) : exact_sin(pi * x) / (pi * x);
}
/// The filter that antialiasing widens, and its reach.
template <class T>
TAEDA_HD inline T filter_at(Filter filter, T x) {
  switch (filter) {
    case Filter::Linear: return magnitude(x) < 1 ? 1 - magnitude(x) : T(0);
    case Filter::Cubic: return keys(x, T(-0.5));
    default: return magnitude(x) < 3 ? sinc(x) * sinc(x / 3) : T(0);
  }
}
TAEDA_HD inline int reach_of(Filter filter) { return filter == Filter::Linear ? 1 : filter == Filter::Cubic ? 2 : 3; }
/// How far a widened filter reaches.
template <class T>
TAEDA_HD inline T support_of(const Resampled& r) {
  const T step = step_of<T>(r);
  return T(reach_of(r.filter)) * (step > 1 ? step : T(1));
}
/// How many elements a result is made of at most.
template <class T>
TAEDA_HD inline int64_t most_taps(const Resampled& r) {
  if (r.filter <= Filter::NearestExact) return 1;
  if (!r.antialias) return r.filter == Filter::Cubic ? 4 : 2;
  const int64_t most = int64_t(ceil(support_of<T>(r))) * 2 + 1;
  return most < r.in ? most : r.in;
}

/// Always in float32: which neighbour is nearest must not depend on the dtype.
TAEDA_HD inline int64_t nearest_place(const Resampled& r, int64_t i) {
  const float step = step_of<float>({r.filter, false, false, r.scale, r.in, r.out});
  const bool exact = r.filter == Filter::NearestExact;
  if (r.in == r.out && !exact) return i;
  if (r.out == 2 * r.in && !exact) return i / 2;
  return between(int64_t(floor(exact ? float((double(i) + 0.5) * double(step)) : float(i) * step)), 0, r.in - 1);
}

/// The elements of a result: `count` from `first` on. Their weights are of T, kept in W.
template <class T, class W>
struct TapsOf {
  int64_t first = 0, count = 0;
  W* weights;  // most_taps of them

  /// Of result i.
  TAEDA_HD TapsOf(const Resampled& r, int64_t i, W* to) : weights(to) {
    for (int64_t k = 0; k < most_taps<T>(r); ++k) weights[k] = W(0);
    if (r.filter <= Filter::NearestExact) first = nearest_place(r, i), count = 1, weights[0] = W(1);
    else if (r.antialias) widen(r, i);
    else interpolate(r, i);
  }

 private:
  /// Puts weights around an element; what lies outside is the element at the border.
  TAEDA_HD void put(int64_t in, int64_t from, const T* given, int64_t number) {
    first = between(from, 0, in - 1);
    count = between(from + number, 1, in) - first;
    for (int64_t k = 0; k < number; ++k) {
      W& place = weights[between(from + k, first, first + count - 1) - first];
      place = W(T(place) + given[k]);
    }
  }
  TAEDA_HD void interpolate(const Resampled& r, int64_t i) {
    const T step = step_of<T>(r);
    T at = r.align_corners ? step * T(i) : step * (T(i) + T(0.5)) - T(0.5);
    if (r.filter == Filter::Cubic) {
      const int64_t below = int64_t(floor(at)), left = below < r.in - 1 ? below : r.in - 1;
      const T t = within_one(at - T(left)), a = T(-0.75);
      const T given[] = {keys(t + 1, a), keys(t, a), keys(1 - t, a), keys(2 - t, a)};
      return put(r.in, left - 1, given, 4);
    }
    if (r.in == r.out) at = T(i);
    if (!(at > 0)) at = T(0);
    const int64_t left = int64_t(at) < r.in - 1 ? int64_t(at) : r.in - 1;
    const T t = within_one(at - T(left)), given[] = {1 - t, t};
    put(r.in, left, given, 2);
  }
  TAEDA_HD void widen(const Resampled& r, int64_t i) {
    const T step = step_of<T>(r), half = T(0.5), squeeze = step >= 1 ? 1 / step : T(1), support = support_of<T>(r);
    const T center = step * (T(i) + half);
    const int64_t begin = between(int64_t(center - support + half), 0, r.in),
                  end = between(int64_t(center + support + half), 0, r.in);
    count = between(end - begin, 0, most_taps<T>(r));
    first = begin < r.in - 1 ? begin : r.in - 1;
    T total(0);
    for (int64_t k = 0; k < count; ++k) {
      const T weight = filter_at(r.filter, (T(k + begin) - center + half) * squeeze);
      weights[k] = W(weight);
      total += weight;
    }
    for (int64_t k = 0; total != 0 && k < count; ++k) weights[k] = W(T(weights[k]) / total);
  }
};

}  // namespace taeda::loops::TAEDA_ISA
