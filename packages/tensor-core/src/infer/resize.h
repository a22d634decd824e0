// The plan of resampling: which elements of a dimension a result is made of, and with which weights.
#pragma once
#include <string_view>
#include <vector>

#include "scalar/spatial.h"
#include "taeda/tensor.h"

namespace taeda::infer {

using loops::Filter;
using loops::Resampled;

Filter filter_of(const char* op, std::string_view mode);

/// Result i is the sum of weights[i * most + k] times element first[i] + k, for k below count[i]. Neither the first nor
/// the last element of a sum moves back as i grows.
struct Taps {
  int64_t most = 0;
  std::vector<int32_t> first, count;
  std::vector<double> weights;
  int64_t size() const { return int64_t(first.size()); }
  /// Whether results are elements as they are, one after the other.
  bool identity(int64_t in) const;
};

/// Positions are computed in float32 where `single`, as elements are: the same choice at borders between neighbours.
Taps resample_taps(const Resampled& dimension, bool single);
/// For bytes: the most bits of fixed point in which every weight still fits into 16, sign included.
int fixed_point_bits(const Taps& taps);
/// Of the gradient: for each of `in` elements the results that it went into.
Taps transposed(const Taps& taps, int64_t in);

}  // namespace taeda::infer
