// Sorting networks on columns of numbers: one copy per instruction set.
#pragma once
#include <cstdint>

namespace taeda::loops {

/// Columns that are sorted side by side: numbers of a row of them fill vectors.
inline constexpr int64_t kSortedColumns = 8;

struct NetworkTable {
  /// Sorts each column of `count` rows of kSortedColumns numbers.
  void (*sort)(int64_t* numbers, int64_t count);
  /// The same by pairs: numbers, and of equal ones their places.
  void (*sort_pairs)(int64_t* numbers, int64_t* places, int64_t count);
};

/// Declares the copy of one instruction set.
#define TAEDA_NETWORK_LOOPS(ISA)     \
  namespace ISA {                    \
  extern const NetworkTable network; \
  }
#ifdef TAEDA_ISA
TAEDA_NETWORK_LOOPS(TAEDA_ISA)
#endif

/// Those for this machine (src/cpu/isa.cpp).
const NetworkTable& network_table() noexcept;

}  // namespace taeda::loops
