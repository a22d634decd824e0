// Images and volumes of another size: weights of each dimension, written down once, and the sums of neighbours.
#pragma once
#include "kernels/items.h"
#include "scalar/resample.h"

namespace taeda::cuda {

using loops::Resampled;

/// What the results of one dimension are made of: `most` weights of each, beside its first element and their number.
struct TapTable {
  Resampled by;
  int64_t most;
  Address first, count, weights;  // int32, int32, and what kernels compute in
};
/// Of all dimensions. Weights of bytes are whole numbers of the unit that each dimension is rounded in.
template <class C>
struct WriteTaps {
  static constexpr int kMost = 3;
  TapTable tables[kMost];
  double units[kMost];  // 0: as they are
  TAEDA_HD void operator()(int64_t i) const {
    int d = 0;
    while (i >= tables[d].by.out) i -= tables[d++].by.out;
    const TapTable& t = tables[d];
    C* const weights = at<C>(t.weights) + i * t.most;
    const loops::TAEDA_ISA::TapsOf<C, C> taps(t.by, i, weights);
    at<int32_t>(t.first)[i] = int32_t(taps.first);
    at<int32_t>(t.count)[i] = int32_t(taps.count);
    for (int64_t k = 0; units[d] != 0 && k < taps.count; ++k) {
      const C scaled = weights[k] * C(units[d]);
      weights[k] = C(whole(double(scaled) + (scaled < 0 ? -0.5 : 0.5)));
    }
  }
};

/// Elements of images (n, channels, three dimensions), in the order in which they lie; channels may be last.
struct ImagePlace {
  int64_t n, channel, at[3];
  TAEDA_HD ImagePlace(int64_t i, int64_t channels, const int64_t (&sizes)[3], bool channels_last) {
    if (channels_last) channel = taken(i, channels);
    for (int d = 2; d >= 0; --d) at[d] = taken(i, sizes[d]);
    if (!channels_last) channel = taken(i, channels);
    n = i;
  }

 private:
  TAEDA_HD static int64_t taken(int64_t& i, int64_t size) {
    const int64_t next = size == 1 ? i : quotient(i, size), place = i - next * size;
    i = next;
    return place;
  }
};
/// What both have that go over all dimensions at once.
struct Resizing {
  int64_t channels, out[3], strides[5];  // of the input: n, channels, and the dimensions
  int32_t channels_last, reserved;
  TAEDA_HD ImagePlace place(int64_t i) const { return {i, channels, out, channels_last != 0}; }
  TAEDA_HD int64_t plane(const ImagePlace& p) const { return p.n * strides[0] + p.channel * strides[1]; }
};
/// The nearest element, whatever it is.
struct ResizeNearest {
  Resizing r;
  Resampled by[3];
  Array input, result;
  int32_t item, reserved;
  TAEDA_HD void operator()(int64_t i) const {
    const ImagePlace p = r.place(i);
    int64_t from = r.plane(p);
    for (int d = 0; d < 3; ++d) from += loops::TAEDA_ISA::nearest_place(by[d], p.at[d]) * r.strides[2 + d];
    copy_item(item, result.data, i, input.data, from);
  }
};
/// Sums over all dimensions, of few elements each.
template <class C>
struct Resize {
  Resizing r;
  TapTable tables[3];
  Array input, result;
  TAEDA_HD void operator()(int64_t i) const {
    const ImagePlace p = r.place(i);
    int64_t from = r.plane(p);
    int32_t count[3];
    const C* weights[3];
    for (int d = 0; d < 3; ++d) {
      from += at<const int32_t>(tables[d].first)[p.at[d]] * r.strides[2 + d];
      count[d] = at<const int32_t>(tables[d].count)[p.at[d]];
      weights[d] = at<const C>(tables[d].weights) + p.at[d] * tables[d].most;
    }
    C sum(0);
    for (int z = 0; z < count[0]; ++z) {
      C plane(0);
      for (int y = 0; y < count[1]; ++y) {
        C row(0);
        for (int x = 0; x < count[2]; ++x)
          row += weights[2][x] * load<C>(input, from + z * r.strides[2] + y * r.strides[3] + x * r.strides[4]);
        plane += weights[1][y] * row;
      }
      sum += weights[0][z] * plane;
    }
    store<C>(result, i, sum);
  }
};
/// One dimension of (outer, in, inner), all of it packed; or, turned, the adjoint.
template <class C>
struct ResizeLines {
  TapTable table;
  int64_t inner;
  Array input, result;
  double unit;  // of bytes, which are rounded; else 0
  int32_t turned, reserved;
  TAEDA_HD void operator()(int64_t i) const {
    const int64_t line = quotient(i, inner), rest = i - line * inner, own = turned ? table.by.in : table.by.out,
                  outer = quotient(line, own), j = line - outer * own;
    const int32_t *const first = at<const int32_t>(table.first), *const count = at<const int32_t>(table.count);
    const C* const weights = at<const C>(table.weights);
    C sum(0);
    if (turned) {
      // Neither end of a result's elements moves back as results go on.
      const int64_t begin = below([&](int64_t k) { return first[k] + count[k] <= j; });
      for (int64_t k = begin; k < table.by.out && first[k] <= j; ++k)
        if (j < first[k] + count[k])
          sum += weights[k * table.most + j - first[k]] * load<C>(input, (outer * table.by.out + k) * inner + rest);
    } else {
      const int64_t from = (outer * table.by.in + first[j]) * inner + rest;
      for (int64_t k = 0; k < count[j]; ++k) sum += weights[j * table.most + k] * load<C>(input, from + k * inner);
    }
    if (unit != 0) {
      sum = C(loops::TAEDA_ISA::floor((sum + C(unit / 2)) / C(unit)));
      sum = sum < 0 ? C(0) : sum > 255 ? C(255) : sum;
    }
    store<C>(result, i, sum);
  }

 private:
  /// How many results come before the first of which something does not hold.
  template <class Holds>
  TAEDA_HD int64_t below(const Holds& holds) const {
    int64_t low = 0, high = table.by.out;
    while (low < high) {
      const int64_t middle = low + (high - low) / 2;
      if (holds(middle)) low = middle + 1;
      else high = middle;
    }
    return low;
  }
};

}  // namespace taeda::cuda
