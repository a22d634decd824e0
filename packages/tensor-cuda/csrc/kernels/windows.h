// Windows over images as columns, which products make convolutions of.
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

}  // namespace taeda::cuda
