// Windows over images: as columns, which products make convolutions of, and pooled.
#pragma once
#include "kernels/index.h"

namespace taeda::cuda {

/// Images (n, channels, height, width) and the columns under a window: element (n, depth, place) with
/// depth = (channel * kernel height + i) * kernel width + j, and places row by row.
struct Columns {
  int64_t images, channels, size[2], kernel[2], out[2], stride[2], padding[2], dilation[2];
  int64_t step_image, step_depth;  // of the columns; places lie beside each other
  Array image, columns;
  int32_t item, reserved;
};
struct Unfold {
  Columns c;
  TAEDA_HD void operator()(int64_t i) const {
    const int64_t x = i % c.out[1], y = i / c.out[1] % c.out[0], rest = i / (c.out[0] * c.out[1]);
    const int64_t depth = c.channels * c.kernel[0] * c.kernel[1], d = rest % depth, n = rest / depth;
    const int64_t kx = d % c.kernel[1], ky = d / c.kernel[1] % c.kernel[0], channel = d / (c.kernel[0] * c.kernel[1]);
    const int64_t row = y * c.stride[0] - c.padding[0] + ky * c.dilation[0];
    const int64_t column = x * c.stride[1] - c.padding[1] + kx * c.dilation[1];
    const int64_t to = n * c.step_image + d * c.step_depth + y * c.out[1] + x;
    if (row >= 0 && row < c.size[0] && column >= 0 && column < c.size[1]) {
      const int64_t from = ((n * c.channels + channel) * c.size[0] + row) * c.size[1] + column;
      copy_item(c.item, c.columns.data, to, c.image.data, from);
    } else {
      clear_item(c.item, c.columns.data, to);
    }
  }
};
/// The adjoint: each element of an image adds up what lies over it.
template <class C>
struct FoldColumns {
  Columns c;
  TAEDA_HD void operator()(int64_t i) const {
    const int64_t column = i % c.size[1], row = i / c.size[1] % c.size[0], rest = i / (c.size[0] * c.size[1]);
    const int64_t channel = rest % c.channels, n = rest / c.channels;
    C sum(0);
    for (int64_t ky = 0; ky < c.kernel[0]; ++ky) {
      const int64_t y = row + c.padding[0] - ky * c.dilation[0];
      if (y < 0 || y % c.stride[0] != 0 || y / c.stride[0] >= c.out[0]) continue;
      for (int64_t kx = 0; kx < c.kernel[1]; ++kx) {
        const int64_t x = column + c.padding[1] - kx * c.dilation[1];
        if (x < 0 || x % c.stride[1] != 0 || x / c.stride[1] >= c.out[1]) continue;
        const int64_t d = (channel * c.kernel[0] + ky) * c.kernel[1] + kx;
        const int64_t place = y / c.stride[0] * c.out[1] + x / c.stride[1];
        sum = C(sum + load<C>(c.columns, n * c.step_image + d * c.step_depth + place));
      }
    }
    store<C>(c.image, i, sum);
  }
};

// --- pooling ---

struct Range {
  int64_t begin, end, step, reach;  // reach: up to the end of the padding
};
/// Windows over one dimension, of a given step or as many as asked for.
struct Windows {
  int64_t size, count, kernel, stride, padding, dilation;  // a kernel of 0: nearly equal parts
  TAEDA_HD Range at(int64_t i) const {
    if (kernel == 0) {
      const int64_t begin = i * size / count, end = ((i + 1) * size + count - 1) / count;
      return {begin, end, 1, end - begin};
    }
    int64_t begin = i * stride - padding;
    const int64_t end = begin + (kernel - 1) * dilation + 1, padded = size + padding;
    const int64_t reach = (end < padded ? end : padded) - begin;
    if (begin < 0) begin += (-begin + dilation - 1) / dilation * dilation;
    return {begin, end < size ? end : size, dilation, reach};
  }
  /// Those that an element may be in, from the first to the one before `end`.
  TAEDA_HD Range around(int64_t place) const {
    if (kernel == 0) return {place * count / size, ((place + 1) * count - 1) / size + 1, 1, 0};
    const int64_t first = place + padding - (kernel - 1) * dilation;
    const int64_t begin = first <= 0 ? 0 : (first + stride - 1) / stride, end = (place + padding) / stride + 1;
    return {begin, end < count ? end : count, 1, 0};
  }
};
/// Planes of height by width, and of windows; all row-major.
struct Pool {
  Windows windows[2];
  Array image, result, places;
  int64_t divisor;  // of means; 0: the number of elements
  int32_t with_padding, reserved;
  TAEDA_HD int64_t pixels() const { return windows[0].size * windows[1].size; }
  TAEDA_HD int64_t results() const { return windows[0].count * windows[1].count; }
  TAEDA_HD double share(const Range& h, const Range& w) const {
    if (divisor) return double(divisor);
    return with_padding ? double(h.reach * w.reach) : double((h.end - h.begin) * (w.end - w.begin));
  }
};
struct MeanPool {
  Pool p;
  TAEDA_HD void operator()(int64_t i) const {
    const int64_t x = i % p.windows[1].count, y = i / p.windows[1].count % p.windows[0].count;
    const int64_t base = i / p.results() * p.pixels();
    const Range h = p.windows[0].at(y), w = p.windows[1].at(x);
    double sum = 0;
    for (int64_t r = h.begin; r < h.end; ++r)
      for (int64_t c = w.begin; c < w.end; ++c) sum += load<double>(p.image, base + r * p.windows[1].size + c);
    store<double>(p.result, i, sum / p.share(h, w));
  }
};
/// `result` is the gradient that comes in, `image` the one that is made.
struct MeanPoolBackward {
  Pool p;
  TAEDA_HD void operator()(int64_t i) const {
    const int64_t c = i % p.windows[1].size, r = i / p.windows[1].size % p.windows[0].size;
    const int64_t base = i / p.pixels() * p.results();
    const Range rows = p.windows[0].around(r), columns = p.windows[1].around(c);
    double sum = 0;
    for (int64_t y = rows.begin; y < rows.end; ++y)
      for (int64_t x = columns.begin; x < columns.end; ++x)
        sum +=
            load<double>(p.result, base + y * p.windows[1].count + x) / p.share(p.windows[0].at(y), p.windows[1].at(x));
    store<double>(p.image, i, sum);
  }
};
template <class C>
struct MaxPool {
  Pool p;
  TAEDA_HD void operator()(int64_t i) const {
    const int64_t x = i % p.windows[1].count, y = i / p.windows[1].count % p.windows[0].count;
    const int64_t base = i / p.results() * p.pixels();
    const Range h = p.windows[0].at(y), w = p.windows[1].at(x);
    int64_t best = -1;
    C value(0);
    for (int64_t r = h.begin; r < h.end; r += h.step)
      for (int64_t c = w.begin; c < w.end; c += w.step) {
        const int64_t place = r * p.windows[1].size + c;
        const C other = load<C>(p.image, base + place);
        if (best >= 0 && (value != value || !(other > value || other != other))) continue;
        best = place;
        value = other;
      }
    store<C>(p.result, i, value);
    if (p.places.data) store<int64_t>(p.places, i, best < 0 ? 0 : best);
  }
};
struct MaxPoolBackward {
  Pool p;
  TAEDA_HD void operator()(int64_t i) const {
    const int64_t c = i % p.windows[1].size, r = i / p.windows[1].size % p.windows[0].size;
    const int64_t base = i / p.pixels() * p.results(), own = r * p.windows[1].size + c;
    const Range rows = p.windows[0].around(r), columns = p.windows[1].around(c);
    double sum = 0;
    for (int64_t y = rows.begin; y < rows.end; ++y)
      for (int64_t x = columns.begin; x < columns.end; ++x) {
        const int64_t place = base + y * p.windows[1].count + x;
        if (load<int64_t>(p.places, place) == own) sum += load<double>(p.result, place);
      }
    store<double>(p.image, i, sum);
  }
};

}  // namespace taeda::cuda
