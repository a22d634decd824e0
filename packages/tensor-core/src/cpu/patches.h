// The elements under each position of a window as a matrix, and back: what convolutions and im2col share.
#pragma once
#include <algorithm>

#include "infer/conv.h"

namespace taeda::cpu {

using infer::ConvPlan;

/// The output columns whose input column, for kernel column j, lies inside the image.
struct Columns {
  int64_t begin, end, first;  // of the output; the input column of output column 0
  Columns(const ConvPlan& s, int64_t j) : first(j * s.dw - s.pw) {
    begin = std::min(s.ow, first < 0 ? (-first + s.sw - 1) / s.sw : 0);
    end = std::max(begin, std::min(s.ow, first < s.w ? (s.w - 1 - first) / s.sw + 1 : 0));
  }
};

/// Calls `body(columns, image row or null, patch row)` for every row of the patch matrix of one image's (or volume's)
/// group.
template <class T, class Body>
void for_patch_rows(const ConvPlan& s, T* image, const Body& body) {
  for (int64_t c = 0; c < s.c / s.groups; ++c)
    for (int64_t k = 0; k < s.kd; ++k)
      for (int64_t i = 0; i < s.kh; ++i)
        for (int64_t j = 0; j < s.kw; ++j) {
          const Columns inside(s, j);
          for (int64_t z = 0; z < s.od; ++z) {
            const int64_t slice = z * s.sd - s.pd + k * s.dd;
            for (int64_t y = 0; y < s.oh; ++y) {
              const int64_t row = y * s.sh - s.ph + i * s.dh;
              const bool there = slice >= 0 && slice < s.d && row >= 0 && row < s.h;
              body(inside, there ? image + ((c * s.d + slice) * s.h + row) * s.w + inside.first : nullptr);
            }
          }
        }
}
/// One image's patches as a matrix (c / groups * kd * kh * kw, od * oh * ow) of one group.
template <class T>
void unfold_patches(const ConvPlan& s, const T* image, T* columns) {
  for_patch_rows(s, image, [&s, &columns](const Columns& inside, const T* from) {
    const int64_t begin = from ? inside.begin : s.ow, end = from ? inside.end : s.ow;
    for (int64_t x = 0; x < begin; ++x) columns[x] = T(0);
    for (int64_t x = begin; x < end; ++x) columns[x] = from[x * s.sw];
    for (int64_t x = end; x < s.ow; ++x) columns[x] = T(0);
    columns += s.ow;
  });
}
/// The adjoint: adds each patch back to its place.
template <class T>
void fold_patches(const ConvPlan& s, const T* columns, T* image) {
  for_patch_rows(s, image, [&s, &columns](const Columns& inside, T* to) {
    for (int64_t x = inside.begin; to && x < inside.end; ++x) to[x * s.sw] += columns[x];
    columns += s.ow;
  });
}

}  // namespace taeda::cpu
