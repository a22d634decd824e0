// Distances between rows: one copy per instruction set.
#pragma once
#include <array>
#include <cstdint>

namespace taeda::loops {

/// Norms of a difference, by how they are summed up; `Any` takes the exponent.
enum class Norm : uint8_t { Zero, One, Two, Infinite, Any };

/// Distances of a row of n numbers from `count` others, for one floating type (void* is T*).
struct DistanceLoops {
  /// The others lie one after the other.
  void (*from_row)(const void* row, const void* rows, int64_t count, int64_t n, double p, void* out);
  /// The others are columns of n rows that lie `step` elements apart.
  void (*from_turned)(const void* row, const void* turned, int64_t step, int64_t count, int64_t n, double p, void* out);
};
struct DistanceTable {
  std::array<DistanceLoops, 2> by_norm[5];  // of float and double
};

/// Declares the copy of one instruction set.
#define TAEDA_DISTANCE_LOOPS(ISA)      \
  namespace ISA {                      \
  extern const DistanceTable distance; \
  }
#ifdef TAEDA_ISA
TAEDA_DISTANCE_LOOPS(TAEDA_ISA)
#endif

/// Those for this machine (src/cpu/isa.cpp).
const DistanceTable& distance_table() noexcept;

}  // namespace taeda::loops
