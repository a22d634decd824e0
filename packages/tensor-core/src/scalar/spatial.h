// How images are resampled and sampled at points, as kernels of every device are told.
#pragma once
#include <cstdint>

namespace taeda::loops {

enum class Filter : uint8_t { Nearest, NearestExact, Linear, Cubic, Lanczos };

/// How one dimension is resampled.
struct Resampled {
  Filter filter;
  bool align_corners, antialias;
  double scale;  // the factor that was asked for, 0 for the quotient of sizes
  int64_t in, out;
};

enum class Sampled : uint8_t { Linear, Nearest, Cubic };
enum class Outside : uint8_t { Zeros, Border, Reflection };

}  // namespace taeda::loops
