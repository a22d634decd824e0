// Inner loops of operators on images that are no windows: resampling and sampling at points.
#pragma once
#include <cstdint>

#include "scalar/spatial.h"
#include "taeda/dtype.h"

namespace taeda::loops {

/// How the elements of a line are made: n results, each of count[i] elements from first[i] on, weighted. W is the
/// element type, or int32_t for uint8, whose weights are in units of 2^-shift.
template <class W>
struct LineTaps {
  int64_t n, most;
  int64_t begin, end;  // results in the middle, of `most` taps each
  const int32_t *first, *count;
  const W* weights;
  const W* by_tap;  // weights, where `most` is two or four: those of the first of all results, then of the next
  int shift = 0;
};

/// Points at which one image is sampled: element k of `offsets` and `weights` is that of tap k / points, point
/// k % points; an offset below 0 is a place outside, whose element is 0.
template <class T>
struct PointTaps {
  int64_t points, taps;
  const int32_t* offsets;
  const T* weights;
};

/// How images of one shape are sampled; dimensions in the order of coordinates: x, y, z.
struct PointPlan {
  int64_t rank;
  int64_t size[3], step[3];  // elements, and how far one is from the next
  bool align_corners;
  Sampled how;
  Outside outside;
  /// Elements that one coordinate reads.
  int64_t each() const { return how == Sampled::Cubic ? 4 : how == Sampled::Linear ? 2 : 1; }
  int64_t taps() const {
    int64_t count = 1;
    for (int64_t d = 0; d < rank; ++d) count *= each();
    return count;
  }
};
/// At most so many points at once: their taps stay in the cache.
inline constexpr int64_t kPoints = 256;

template <class T>
struct SpatialLoops {
  /// Results of groups of `inner` elements that stay together: out[i * inner + c].
  void (*line)(const T* x, const LineTaps<T>& taps, int64_t inner, T* out);
  /// out[j] = sum over k of weights[k] * rows[k][j].
  void (*blend)(const T* const* rows, const T* weights, int64_t count, int64_t n, T* out);
  /// out[p] = sum over the taps of point p of weight * x[offset].
  void (*sample)(const T* x, const PointTaps<T>& taps, T* out);
  /// The same of the points from `begin` to `end` and all channels of an image whose elements are rows of them:
  /// out[(p - begin) * channels + c]. `zeros` is such a row.
  void (*sample_rows)(const T* x, int64_t channels, const T* zeros, const PointTaps<T>& taps, int64_t begin,
                      int64_t end, T* out);
  /// x[offset] += grad[p] * weight, point after point of a tap, tap after tap.
  void (*scatter)(const T* grad, const PointTaps<T>& taps, T* x);
  /// Taps of up to kPoints points of a row-major grid (points, rank), as PointTaps has them; `slopes` are the
  /// derivatives of the weights by each coordinate, or null.
  void (*fill_taps)(const T* grid, int64_t points, const PointPlan& plan, int32_t* offsets, T* weights,
                    T* const* slopes);
  /// sums[k * points + p] += grad[p] * x[offset of tap k].
  void (*gather_products)(const T* x, const PointTaps<T>& taps, const T* grad, T* sums);
};
struct ByteLoops {
  void (*line)(const uint8_t* x, const LineTaps<int32_t>& taps, int64_t inner, uint8_t* out);
  void (*blend)(const uint8_t* const* rows, const int32_t* weights, int64_t count, int64_t n, int shift, uint8_t* out);
};
struct SpatialTable {
  SpatialLoops<float> of_float;
  SpatialLoops<double> of_double;
  ByteLoops of_byte;
  /// Channels from which on sample_rows() of a copy in channels-last order is quicker than sample() of each.
  int64_t many_channels;
};

/// Declares the copy of one instruction set.
#define TAEDA_SPATIAL_LOOPS(ISA)     \
  namespace ISA {                    \
  extern const SpatialTable spatial; \
  }
#ifdef TAEDA_ISA
TAEDA_SPATIAL_LOOPS(TAEDA_ISA)
#endif

/// Those for this machine (src/cpu/isa.cpp).
const SpatialTable& spatial_table() noexcept;

template <class T>
const SpatialLoops<T>& spatial_loops() noexcept {
  if constexpr (sizeof(T) == 4) return spatial_table().of_float;
  else return spatial_table().of_double;
}

}  // namespace taeda::loops
