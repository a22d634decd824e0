// The Mersenne twister MT19937, seeded, read and saved as PyTorch's generator of the cpu does it.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "taeda/export.h"

namespace taeda {

/// A stream of 32-bit words of period 2^19937 - 1. Source: Matsumoto and Nishimura, "Mersenne Twister: a
/// 623-dimensionally equidistributed uniform pseudo-random number generator" (ACM TOMACS 8, 1998).
class TAEDA_API Twister {
 public:
  /// Bytes of a saved state: PyTorch's own layout.
  static constexpr size_t kStateBytes = 5056;

  explicit Twister(uint64_t seed) noexcept;
  uint64_t seed() const noexcept { return seed_; }
  void draw(uint32_t* words, int64_t count) noexcept;
  void save(char* bytes) const noexcept;
  /// Takes a saved state; nothing changes and false comes back where the bytes are no state.
  bool restore(const char* bytes) noexcept;

  /// The second of a pair of normal numbers (mean 0, deviation 1), which the next draw of one takes.
  std::optional<double> spare;

 private:
  static constexpr int kWords = 624;
  void renew() noexcept;

  uint64_t seed_;
  int used_ = kWords;  // of the state's words
  std::array<uint32_t, kWords> state_;
};

}  // namespace taeda
