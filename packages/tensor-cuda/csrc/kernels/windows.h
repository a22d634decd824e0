// Windows over images and volumes as columns, which products make convolutions of.
#pragma once
#include "kernels/index.h"

namespace taeda::cuda {

/// Images (n, channels, height, width), or volumes of so many of them, and the columns under a window: element (n,
/// depth, place) with depth = ((channel * kernel[0] + i) * kernel[1] + j) * kernel[2] + k, and places row by row. Of
/// images the first of the three dimensions has one place.
struct Columns {
  static constexpr int kDimensions = 3;
  using Places = int64_t[kDimensions];
  int64_t images, channels;
  Places size, kernel, out, stride, padding, dilation;
  int64_t step_image, step_depth;  // of the columns; places lie beside each other
  Array image, columns;
  int32_t item, reserved;
  TAEDA_HD static int64_t product(const Places& of) { return of[0] * of[1] * of[2]; }
  /// Takes the place in each dimension off a number.
  TAEDA_HD static int64_t taken(int64_t i, const Places& sizes, Places& places) {
    for (int d = kDimensions - 1; d >= 0; --d) {
      const int64_t next = quotient(i, sizes[d]);
      places[d] = i - next * sizes[d];
      i = next;
    }
    return i;
  }
};
struct Unfold {
  Columns c;
  TAEDA_HD void operator()(int64_t i) const {
    Columns::Places place, under;
    const int64_t rest = Columns::taken(i, c.out, place), depth = c.channels * Columns::product(c.kernel);
    const int64_t n = quotient(rest, depth), d = rest - n * depth, channel = Columns::taken(d, c.kernel, under);
    int64_t to = 0, from = n * c.channels + channel;
    bool inside = true;
    for (int k = 0; k < Columns::kDimensions; ++k) {
      const int64_t at_size = place[k] * c.stride[k] - c.padding[k] + under[k] * c.dilation[k];
      inside = inside && at_size >= 0 && at_size < c.size[k];
      to = to * c.out[k] + place[k], from = from * c.size[k] + at_size;
    }
    to += n * c.step_image + d * c.step_depth;
    if (inside) copy_item(c.item, c.columns.data, to, c.image.data, from);
    else clear_item(c.item, c.columns.data, to);
  }
};
/// The adjoint: each element of an image adds up what lies over it.
template <class C>
struct FoldColumns {
  Columns c;
  /// The window whose part `under` lies over a place in a dimension; below 0 where there is none.
  TAEDA_HD int64_t window(int d, int64_t place, int64_t under) const {
    const int64_t at_stride = place + c.padding[d] - under * c.dilation[d];
    if (at_stride < 0) return -1;
    const int64_t found = quotient(at_stride, c.stride[d]);
    return found * c.stride[d] == at_stride && found < c.out[d] ? found : -1;
  }
  TAEDA_HD void operator()(int64_t i) const {
    Columns::Places place;
    const int64_t rest = Columns::taken(i, c.size, place), n = quotient(rest, c.channels),
                  channel = rest - n * c.channels;
    C sum(0);
    for (int64_t kz = 0; kz < c.kernel[0]; ++kz) {
      const int64_t z = window(0, place[0], kz);
      if (z < 0) continue;
      for (int64_t ky = 0; ky < c.kernel[1]; ++ky) {
        const int64_t y = window(1, place[1], ky);
        if (y < 0) continue;
        for (int64_t kx = 0; kx < c.kernel[2]; ++kx) {
          const int64_t x = window(2, place[2], kx);
          if (x < 0) continue;
          const int64_t d = ((channel * c.kernel[0] + kz) * c.kernel[1] + ky) * c.kernel[2] + kx;
          sum = C(sum + load<C>(c.columns, n * c.step_image + d * c.step_depth + (z * c.out[1] + y) * c.out[2] + x));
        }
      }
    }
    store<C>(c.image, i, sum);
  }
};

}  // namespace taeda::cuda
