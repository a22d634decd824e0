// Distances between rows: one copy per instruction set.
#pragma once
#include <cstdint>

namespace taeda::loops {

/// Norms of a difference, by how they are summed up; `Any` takes the exponent.
enum class Norm : uint8_t { Zero, One, Two, Infinite, Any };

struct DistanceTable {
  /// out[j] = the distance of a row of n numbers from row j of `count`, which lie one after the other; by the norm, of
  /// float and double (void* is T*).
  void (*from_row[5][2])(const void* row, const void* rows, int64_t count, int64_t n, double p, void* out);
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
