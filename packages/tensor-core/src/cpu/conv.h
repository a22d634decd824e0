// The geometry of a two-dimensional convolution, shared by its kernels.
#pragma once
#include <cstdint>
#include <cstring>

namespace taeda::cpu {

/// Input (n, c, h, w), weight (o, c / groups, kh, kw), output (n, o, oh, ow).
struct ConvShape {
  int64_t n, c, h, w;
  int64_t o, kh, kw;
  int64_t oh, ow;
  int64_t sh, sw, ph, pw, dh, dw;
  int64_t groups;
  bool depthwise() const { return groups == c && o == c && groups > 1; }
  bool pointwise() const { return kh == 1 && kw == 1 && sh == 1 && sw == 1 && ph == 0 && pw == 0; }
  friend bool operator==(const ConvShape& a, const ConvShape& b) { return std::memcmp(&a, &b, sizeof a) == 0; }
};

}  // namespace taeda::cpu
