// Fourier transforms as libraries of them have them.
#pragma once
#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace taeda::cuda {

enum class Transformed : int32_t { Complex, FromReal, ToReal };

/// A batch of transforms over `rank` dimensions, without a factor: complex numbers to such, forward or backward; real
/// numbers forward, or backward to real ones, where the last dimension of the complex side has the n / 2 + 1 numbers
/// that the others follow from. Backward to real numbers what is read is lost.
struct Transform {
  static constexpr int kMost = 3;
  using Places = std::array<int64_t, kMost>;
  /// Where the points lie: in the last dimension `step` elements apart, in the one before `step` times the last item
  /// of `room`, and so on; those of the next item of the batch `between` further. The first item of `room` says
  /// nothing.
  struct Side {
    uint64_t data = 0;
    Places room{};
    int64_t step = 1, between = 0;
    auto operator<=>(const Side&) const = default;
  };
  Transformed kind = Transformed::Complex;
  bool forward = true;
  bool wide = false;  // float64 and its complex numbers, else float32
  int32_t rank = 1;
  int64_t batch = 1;
  Places sizes{};  // of the real side, where one is real
  Side from, to;
  auto operator<=>(const Transform&) const = default;

  /// The points of a side in a dimension.
  int64_t points(bool of_from, int d) const {
    const bool half = d == rank - 1 && kind == (of_from ? Transformed::ToReal : Transformed::FromReal);
    return half ? sizes[size_t(d)] / 2 + 1 : sizes[size_t(d)];
  }
  bool is_real(bool of_from) const { return kind == (of_from ? Transformed::FromReal : Transformed::ToReal); }
  /// The same without addresses and direction: what a plan depends on.
  Transform shape() const {
    Transform found = *this;
    found.from.data = found.to.data = 0;
    found.forward = false;
    return found;
  }
};

/// A way to compute transforms of one shape, which a driver found.
struct TransformPlan {
  virtual ~TransformPlan() = default;
  size_t workspace = 0;  // bytes wanted beside the operands
};
using SharedTransformPlan = std::shared_ptr<const TransformPlan>;

}  // namespace taeda::cuda
