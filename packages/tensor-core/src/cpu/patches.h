// The elements under each position of a window as a matrix, and back: what convolutions and im2col share.
#pragma once
#include <algorithm>

#include "infer/conv.h"

namespace taeda::cpu {

using infer::ConvPlan;

/// The output columns whose input column, for kernel column j, lies inside the image.
struct Columns {
  int64_t begin, end, first;  // of the output; the input column of output column 0
};
inline Columns columns_of(const ConvPlan& s, int64_t j) {
  const int64_t first = j * s.dw - s.pw;
  if (first >= 0 && first + (s.ow - 1) * s.sw < s.w) return {0, s.ow, first};  // all, without a division
  const int64_t begin = std::min(s.ow, first < 0 ? (-first + s.sw - 1) / s.sw : 0);
  return {begin, std::max(begin, std::min(s.ow, first < s.w ? (s.w - 1 - first) / s.sw + 1 : 0)), first};
}

/// Calls `body(columns, image row or null)` for every row of the patch matrix of one image's (or volume's) group.
template <class T, class Body>
void for_patch_rows(const ConvPlan& s, T* image, const Body& body) {
  for (int64_t c = 0, channels = s.in_group(s.c); c < channels; ++c)
    for (int64_t k = 0; k < s.kd; ++k)
      for (int64_t i = 0; i < s.kh; ++i)
        for (int64_t j = 0; j < s.kw; ++j) {
          const Columns inside = columns_of(s, j);
          for (int64_t z = 0, slice = k * s.dd - s.pd; z < s.od; ++z, slice += s.sd) {
            const bool there = slice >= 0 && slice < s.d;
            int64_t at = i * s.dh - s.ph, place = ((c * s.d + slice) * s.h + at) * s.w + inside.first;
            for (int64_t y = 0; y < s.oh; ++y, at += s.sh, place += s.sh * s.w)
              body(inside, there && at >= 0 && at < s.h ? image + place : nullptr);
          }
        }
}
/// One image's patches as a matrix (c / groups * kd * kh * kw, od * oh * ow) of one group.
template <class T>
void unfold_patches(const ConvPlan& s, const T* image, T* columns) {
  const int64_t n = s.ow;
  if (!s.deep() && s.ph == 0 && s.pw == 0 && s.sw == 1) {  // nothing but runs of the image
    for (int64_t c = 0, channels = s.in_group(s.c); c < channels; ++c)
      for (int64_t i = 0; i < s.kh; ++i)
        for (int64_t j = 0; j < s.kw; ++j) {
          const T* from = image + (c * s.h + i * s.dh) * s.w + j * s.dw;
          for (int64_t y = 0; y < s.oh; ++y, from += s.sh * s.w, columns += n)
            for (int64_t x = 0; x < n; ++x) columns[x] = from[x];
        }
    return;
  }
  for_patch_rows(s, image, [&s, &columns, n](const Columns& inside, const T* from) {
    const int64_t begin = from ? inside.begin : n, end = from ? inside.end : n;
    for (int64_t x = 0; x < begin; ++x) columns[x] = T(0);
    for (int64_t x = begin; x < end; ++x) columns[x] = from[x * s.sw];
    for (int64_t x = end; x < n; ++x) columns[x] = T(0);
    columns += n;
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
