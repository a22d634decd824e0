// Pooling over windows of images, which lie row by row or with their channels beside each other.
#pragma once
#include "kernels/elementwise.h"

namespace taeda::cuda {

struct Range {
  int32_t begin, end, step, reach;  // reach: up to the end of the padding
};
/// Windows over one dimension, of a given step or as many as asked for.
struct Windows {
  int32_t size, count, kernel, stride, padding, dilation;  // a kernel of 0: nearly equal parts
  TAEDA_HD Range at(int32_t i) const {
    if (kernel == 0) {
      if (count == 1) return {0, size, 1, size};
      const auto begin = int32_t(quotient(int64_t(i) * size, count));
      const auto end = int32_t(quotient(int64_t(i + 1) * size + count - 1, count));
      return {begin, end, 1, end - begin};
    }
    int32_t begin = i * stride - padding;
    const int32_t end = begin + (kernel - 1) * dilation + 1, padded = size + padding;
    const int32_t reach = (end < padded ? end : padded) - begin;
    if (begin < 0) begin += (-begin + dilation - 1) / dilation * dilation;
    return {begin, end < size ? end : size, dilation, reach};
  }
  /// How far into window i an element lies, in steps; -1 where it is in none of its places.
  TAEDA_HD int32_t step_in(int32_t i, int32_t place) const {
    const int32_t far = place + padding - i * stride;
    return dilation == 1 ? far : far % dilation ? -1 : far / dilation;
  }
  /// Those that an element may be in, from the first to the one before `end`.
  TAEDA_HD Range around(int32_t place) const {
    if (kernel == 0) {
      if (count == 1) return {0, 1, 1, 0};
      return {int32_t(quotient(int64_t(place) * count, size)),
              int32_t(quotient(int64_t(place + 1) * count - 1, size) + 1), 1, 0};
    }
    const int32_t first = place + padding - (kernel - 1) * dilation;
    const int32_t begin = first <= 0 ? 0 : (first + stride - 1) / stride, end = (place + padding) / stride + 1;
    return {begin, end < count ? end : count, 1, 0};
  }
};
/// Planes of height by width, and of windows. A thread has V channels of one place, where those lie beside each other.
struct Pool {
  Windows windows[2];
  Array image, result, places;
  int64_t channels;  // beside each other; 1 where planes are apart
  int64_t divisor;   // of means; 0: the number of elements
  int32_t with_padding, packed;

  /// One place of a plane: of its first element the offsets of the plane's image and of its windows.
  struct Spot {
    int64_t image, result;
    int32_t row, column;
  };
  TAEDA_HD int64_t pixels() const { return int64_t(windows[0].size) * windows[1].size; }
  TAEDA_HD int64_t results() const { return int64_t(windows[0].count) * windows[1].count; }
  template <int V>
  TAEDA_HD Spot spot(int64_t item, int32_t height, int32_t width) const {
    const int64_t wide = V == 1 ? channels : channels / V, place = quotient(item, wide),
                  channel = (item - place * wide) * V;
    const int64_t line = quotient(place, width), plane = quotient(line, height);
    return {plane * pixels() * channels + channel, plane * results() * channels + channel,
            int32_t(line - plane * height), int32_t(place - line * width)};
  }
  TAEDA_HD int64_t pixel(int32_t row, int32_t column) const {
    return (int64_t(row) * windows[1].size + column) * channels;
  }
  TAEDA_HD int64_t window(int32_t row, int32_t column) const {
    return (int64_t(row) * windows[1].count + column) * channels;
  }
  template <class C>
  TAEDA_HD C share(const Range& h, const Range& w) const {
    if (divisor) return C(divisor);
    return C(with_padding ? int64_t(h.reach) * w.reach : int64_t(h.end - h.begin) * (w.end - w.begin));
  }
};
/// A body's `with<T, V>` for the element type and as many channels as a thread takes.
template <class C, class Body>
TAEDA_HD inline void for_pool(const Body& body, int64_t item) {
  const auto run = [&]<class T>() {
    if (body.p.packed) body.template with<T, 4>(item);
    else body.template with<T, 1>(item);
  };
  if constexpr (is_same<C, uint64_t>) run.template operator()<uint64_t>();
  else with_usual_type<C>(body.p.image.dtype, run);
}
template <class C>
struct MeanPool {
  Pool p;
  template <class T, int V>
  TAEDA_HD void with(int64_t item) const {
    const Pool::Spot spot = p.spot<V>(item, p.windows[0].count, p.windows[1].count);
    const Range h = p.windows[0].at(spot.row), w = p.windows[1].at(spot.column);
    C sum[V] = {};
    for (int32_t r = h.begin; r < h.end; ++r)
      for (int32_t c = w.begin; c < w.end; ++c) {
        C x[V];
        fetch_pack<C, T, V>(p.image.data, spot.image + p.pixel(r, c), x);
        TAEDA_UNROLL
        for (int v = 0; v < V; ++v) sum[v] += x[v];
      }
    const C share = p.share<C>(h, w);
    TAEDA_UNROLL
    for (int v = 0; v < V; ++v) sum[v] /= share;
    put_pack<C, T, V>(p.result.data, spot.result + p.window(spot.row, spot.column), sum);
  }
  TAEDA_HD void operator()(int64_t item) const { for_pool<C>(*this, item); }
};
/// `result` is the gradient that comes in, `image` the one that is made.
template <class C>
struct MeanPoolBackward {
  Pool p;
  template <class T, int V>
  TAEDA_HD void with(int64_t item) const {
    const Pool::Spot spot = p.spot<V>(item, p.windows[0].size, p.windows[1].size);
    const Range rows = p.windows[0].around(spot.row), columns = p.windows[1].around(spot.column);
    C sum[V] = {};
    for (int32_t y = rows.begin; y < rows.end; ++y)
      for (int32_t x = columns.begin; x < columns.end; ++x) {
        C g[V];
        fetch_pack<C, T, V>(p.result.data, spot.result + p.window(y, x), g);
        const C share = p.share<C>(p.windows[0].at(y), p.windows[1].at(x));
        TAEDA_UNROLL
        for (int v = 0; v < V; ++v) sum[v] += g[v] / share;
      }
    put_pack<C, T, V>(p.image.data, spot.image + p.pixel(spot.row, spot.column), sum);
  }
  TAEDA_HD void operator()(int64_t item) const { for_pool<C>(*this, item); }
};
/// The first extreme; a NaN is one. `places` are positions in the plane or, with Offsets, in the window, in 8 bits.
template <class C, bool Offsets>
struct MaxPool {
  static constexpr bool kHasPlaces = true;
  using Place = std::conditional_t<Offsets, uint8_t, int64_t>;
  Pool p;
  template <class T, int V>
  TAEDA_HD void with(int64_t item) const {
    const Pool::Spot spot = p.spot<V>(item, p.windows[0].count, p.windows[1].count);
    const Range h = p.windows[0].at(spot.row), w = p.windows[1].at(spot.column);
    bool some = false;
    Place best[V] = {};
    C value[V] = {};
    for (int32_t r = h.begin; r < h.end; r += h.step)
      for (int32_t c = w.begin; c < w.end; c += w.step) {
        C x[V];
        fetch_pack<C, T, V>(p.image.data, spot.image + p.pixel(r, c), x);
        Place place;
        if constexpr (Offsets)
          place = Place(p.windows[0].step_in(spot.row, r) * p.windows[1].kernel + p.windows[1].step_in(spot.column, c));
        else place = Place(r) * p.windows[1].size + c;
        TAEDA_UNROLL
        for (int v = 0; v < V; ++v) {
          const bool kept = some && (value[v] != value[v] || !(x[v] > value[v] || x[v] != x[v]));
          if (!kept) best[v] = place, value[v] = x[v];
        }
        some = true;
      }
    const int64_t to = spot.result + p.window(spot.row, spot.column);
    put_pack<C, T, V>(p.result.data, to, value);
    put_pack<Place, Place, V>(p.places.data, to, best);
  }
  TAEDA_HD void operator()(int64_t item) const { for_pool<C>(*this, item); }
};
template <bool Offsets>
struct MaxPoolCells;
template <class C, bool Offsets>
struct MaxPoolBackward {
  using Cells = MaxPoolCells<Offsets>;
  using Place = typename MaxPool<C, Offsets>::Place;
  Pool p;
  template <class T, int V>
  TAEDA_HD void with(int64_t item) const {
    const Pool::Spot spot = p.spot<V>(item, p.windows[0].size, p.windows[1].size);
    const Range rows = p.windows[0].around(spot.row), columns = p.windows[1].around(spot.column);
    C sum[V] = {};
    for (int32_t y = rows.begin; y < rows.end; ++y)
      for (int32_t x = columns.begin; x < columns.end; ++x) {
        const int64_t from = spot.result + p.window(y, x);
        int64_t own = int64_t(spot.row) * p.windows[1].size + spot.column;
        if constexpr (Offsets) {
          const int32_t down = p.windows[0].step_in(y, spot.row), along = p.windows[1].step_in(x, spot.column);
          if (down < 0 || along < 0) continue;
          own = down * p.windows[1].kernel + along;
        }
        C g[V];
        int64_t place[V];
        fetch_pack<C, T, V>(p.result.data, from, g);
        fetch_pack<int64_t, Place, V>(p.places.data, from, place);
        TAEDA_UNROLL
        for (int v = 0; v < V; ++v) sum[v] += place[v] == own ? g[v] : C(0);
      }
    put_pack<C, T, V>(p.image.data, spot.image + p.pixel(spot.row, spot.column), sum);
  }
  TAEDA_HD void operator()(int64_t item) const { for_pool<C>(*this, item); }
};
/// The same where windows begin at every second row and column at most: a thread has the places between two windows'
/// begins, which lie in the same windows, and asks each of these once. Items are counted in such cells.
template <bool Offsets>
struct MaxPoolCells {
  using Place = typename MaxPool<float, Offsets>::Place;
  static constexpr int kMost = 2;
  Pool p;
  /// Where cells begin along a dimension, and how many there are.
  TAEDA_HD static int32_t first(const Windows& w) { return w.padding / w.stride; }
  TAEDA_HD static int32_t count(const Windows& w) { return (w.size - 1 + w.padding) / w.stride - first(w) + 1; }
  int64_t items(int64_t pixels, int taken) const {
    return pixels / p.pixels() * count(p.windows[0]) * count(p.windows[1]) / taken;
  }
  /// Of windows from the first that reaches a cell to the last one, which begins with it.
  TAEDA_HD static Range around(const Windows& w, int32_t cell) {
    const int32_t begin = cell - (w.kernel - 1) * w.dilation / w.stride;
    return {begin < 0 ? 0 : begin, cell + 1 < w.count ? cell + 1 : w.count, 1, 0};
  }
  template <class T, int V>
  TAEDA_HD void with(int64_t item) const {
    const Windows &down = p.windows[0], &along = p.windows[1];
    const Pool::Spot spot = p.spot<V>(item, count(down), count(along));
    const int32_t row = spot.row + first(down), column = spot.column + first(along);
    const Range rows = around(down, row), columns = around(along, column);
    const int32_t top = row * down.stride - down.padding, left = column * along.stride - along.padding;
    float sum[kMost][kMost][V] = {};
    for (int32_t y = rows.begin; y < rows.end; ++y)
      for (int32_t x = columns.begin; x < columns.end; ++x) {
        const int64_t from = spot.result + p.window(y, x);
        float g[V];
        int64_t place[V];
        fetch_pack<float, T, V>(p.result.data, from, g);
        fetch_pack<int64_t, Place, V>(p.places.data, from, place);
        TAEDA_UNROLL
        for (int r = 0; r < kMost; ++r) {
          TAEDA_UNROLL
          for (int c = 0; c < kMost; ++c) {
            int64_t own = int64_t(top + r) * along.size + left + c;
            if constexpr (Offsets) {
              const int32_t in_row = down.step_in(y, top + r), in_column = along.step_in(x, left + c);
              // What is outside of the window has no place there.
              own = in_row < 0 || in_row >= down.kernel || in_column < 0 || in_column >= along.kernel
                        ? -1
                        : in_row * along.kernel + in_column;
            }
            TAEDA_UNROLL
            for (int v = 0; v < V; ++v) sum[r][c][v] += place[v] == own ? g[v] : 0;
          }
        }
      }
    TAEDA_UNROLL
    for (int r = 0; r < kMost; ++r) {
      TAEDA_UNROLL
      for (int c = 0; c < kMost; ++c) {
        const int32_t to_row = top + r, to_column = left + c;
        if (r >= down.stride || to_row < 0 || to_row >= down.size) continue;
        if (c >= along.stride || to_column < 0 || to_column >= along.size) continue;
        put_pack<float, T, V>(p.image.data, spot.image + p.pixel(to_row, to_column), sum[r][c]);
      }
    }
  }
  TAEDA_HD void operator()(int64_t item) const { for_pool<float>(*this, item); }
};
template <class C> using MaxPoolPlaces = MaxPool<C, false>;
template <class C> using MaxPoolOffsets = MaxPool<C, true>;
template <class C> using MaxPoolPlacesBackward = MaxPoolBackward<C, false>;
template <class C> using MaxPoolOffsetsBackward = MaxPoolBackward<C, true>;

}  // namespace taeda::cuda
