// Mean and squared deviations of runs of numbers, which can be joined: one copy per instruction set.
#pragma once
#include "cpu/loops/reduce.h"

namespace taeda::loops {

// Note [Variance]
// One pass over memory: blocks that stay in the cache are summed as deviations from a number near their mean, and
// joined by Chan, Golub and LeVeque's formula ("Updating formulae and a pairwise algorithm for computing sample
// variances", 1979). What a number far from a block's mean would cost in digits, the distance adds to the result.

/// The count, mean and sum of squared deviations from the mean of what has entered so far.
struct Moments {
  double count, mean, squares;
};

struct MomentTable {
  /// For float32 and float64; accumulators are Moments, whatever `acc` says.
  Reducer reducers[2];
};
/// Declares the copy of one instruction set.
#define TAEDA_MOMENT_LOOPS(ISA)     \
  namespace ISA {                   \
  extern const MomentTable moments; \
  }
#ifdef TAEDA_ISA
TAEDA_MOMENT_LOOPS(TAEDA_ISA)
#endif

/// Those for this machine (src/cpu/isa.cpp).
const MomentTable& moment_table() noexcept;

}  // namespace taeda::loops
