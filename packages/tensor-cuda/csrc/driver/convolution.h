// Convolutions as libraries of networks have them.
#pragma once
#include <array>
#include <compare>
#include <cstdint>

namespace taeda::cuda {

/// What is computed of y = x * w: one of the three from the other two.
enum class Convolved : int32_t { Result, InputGradient, WeightGradient };

/// A convolution over `spatial` dimensions: x is (images, channels, places...), w (filters, channels / groups,
/// kernel...), y (images, filters, places...), each with strides in elements. The window is not turned around.
struct Convolution {
  static constexpr int kMost = 5;
  using Places = std::array<int64_t, kMost>;
  struct Operand {
    uint64_t data = 0;
    Places sizes{}, strides{};
    int32_t alignment = 0;  // a power of 2 that divides the address, of at most 16 bytes
    auto operator<=>(const Operand&) const = default;
  };
  Convolved kind = Convolved::Result;
  int32_t dtype = 0;  // of the ABI: of all three, floating
  int32_t spatial = 2;
  bool tf32 = false;           // products of float32 may round their factors to 10 bits
  bool deterministic = false;  // the same bits in each run
  Operand x, w, y;
  std::array<int64_t, 3> padding{}, stride{}, dilation{};
  auto operator<=>(const Convolution&) const = default;

  int64_t groups() const { return x.sizes[1] / w.sizes[1]; }
  /// The same without addresses: what a plan depends on.
  Convolution shape() const {
    Convolution found = *this;
    found.x.data = found.w.data = found.y.data = 0;
    return found;
  }
};

}  // namespace taeda::cuda
