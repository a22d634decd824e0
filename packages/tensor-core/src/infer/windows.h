// Arguments of sliding windows (convolution, pooling): lists of one or two integers, output sizes.
#pragma once
#include <array>
#include <limits>

#include "taeda/spec.h"

namespace taeda::infer {

using Pair = std::array<int64_t, 2>;

/// Windows are counted in 32 bits, so that sizes and products stay far from overflow.
inline constexpr int64_t kLargest = std::numeric_limits<int32_t>::max();

template <size_t N> using Numbers = std::array<int64_t, N>;
using Triple = Numbers<3>;

/// The numbers of a list that several() has let through.
template <size_t N>
Numbers<N> spread(IntSpan list, Numbers<N> otherwise = {}) {
  Numbers<N> out = otherwise;
  for (size_t i = 0; i < N && !list.empty(); ++i) out[i] = list[list.size() == N ? i : 0];
  return out;
}
/// One integer for all N dimensions, or one for each; an empty list stands for `otherwise`.
template <size_t N>
Numbers<N> several(const char* op, const char* argument, IntSpan list, int64_t least, Numbers<N> otherwise = {}) {
  if (list.empty() && otherwise[0] > 0) return otherwise;
  check(list.size() == 1 || list.size() == N, ErrorKind::Runtime, op, ": argument '", argument, "' has ", list.size(),
        " numbers, expected 1 or ", N);
  for (const int64_t number : list) {
    check(number >= least, ErrorKind::Runtime, op, ": argument '", argument, "' must be at least ", least, ", got ",
          shape_text(list));
    check(number <= kLargest, ErrorKind::Runtime, op, ": argument '", argument, "' must be at most ", kLargest,
          ", got ", shape_text(list));
  }
  return spread<N>(list);
}
inline Pair pair(const char* op, const char* argument, IntSpan list, int64_t least, Pair otherwise = {0, 0}) {
  return several<2>(op, argument, list, least, otherwise);
}
inline Pair both(IntSpan list, Pair otherwise = {0, 0}) { return spread<2>(list, otherwise); }
/// How far a window may move over `size` elements; negative where it does not fit. Counted as `Size` counts.
template <class Size>
Size window_room(Size size, int64_t kernel, int64_t padding, int64_t dilation) {
  return size + 2 * padding - Size(dilation) * (kernel - 1) - 1;
}
inline int64_t floor_div(int64_t a, int64_t b) { return a >= 0 ? a / b : -((-a + b - 1) / b); }

/// (N, C, H, W), or (C, H, W) as a batch of one.
struct Images {
  int64_t n, c, h, w;
};
inline Images images(const char* op, const char* argument, const Tensor& t) {
  check(t.dim() == 3 || t.dim() == 4, ErrorKind::Runtime, op, ": argument '", argument, "' has shape ",
        shape_text(t.sizes()), ", expected (N, C, H, W) or (C, H, W)");
  return {t.dim() == 4 ? t.size(0) : 1, t.size(-3), t.size(-2), t.size(-1)};
}
/// (n, c, h, w) of the rank of `like`.
inline Shape image_sizes(const Tensor& like, int64_t n, int64_t c, int64_t h, int64_t w) {
  return like.dim() == 4 ? Shape{n, c, h, w} : Shape{c, h, w};
}
/// The result of a convolution or pooling of `input`, in the layout that its backend wants: it is told that images lie
/// with their channels last where the weight of a convolution does.
Spec image_result(const char* op, const Tensor& input, const Shape& sizes, DType dtype, IntSpan kernel,
                  int64_t groups = 1, const Tensor& weight = Tensor());
/// A tensor (C, ...) of `rank` dimensions behind the channels seen as a batch of one.
inline Tensor batched(const Tensor& t, int64_t rank = 2) {
  if (t.dim() == rank + 2) return t;
  Shape sizes{1}, strides{t.size(0) * t.stride(0)};
  for (int64_t d = 0; d < t.dim(); ++d) sizes.push_back(t.size(d)), strides.push_back(t.stride(d));
  return alias(t, sizes, strides, 0);
}

}  // namespace taeda::infer
