// Random numbers: one copy per instruction set.
#pragma once
#include "taeda/elementwise.h"

namespace taeda::loops {

/// Random numbers by groups of 64 Philox blocks: a group has 256 numbers (128 of eight bytes), and number k of group g
/// depends on (seed, offset + 64 g, k) alone.
inline constexpr int kGroupBlocks = 64;
enum Distribution {
  kUniformFloat,
  kUniformDouble,
  kNormalFloat,
  kNormalDouble,
  kBernoulliByte,
  kExponentialFloat,
  kExponentialDouble,
  kInteger64,
  kDistributionCount
};
/// Fills one group; only the first `count` numbers need be right. Parameters by distribution: (low, high), (mean, std),
/// (p), (rate), (integer low, integer count).
using GroupFn = void (*)(void* out, uint64_t seed, uint64_t offset, const LoopParams& params, int64_t count);
/// Makes groups of sixteen uniform numbers of [0, 1) normal ones in their place: each of the first eight of a group is
/// a pair with the one eight places behind.
using SixteensFn = void (*)(void* numbers, int64_t groups, double mean, double std);
struct RandomTable {
  GroupFn fill[kDistributionCount];
  SixteensFn float_sixteens, double_sixteens;
};

/// Declares the copy of one instruction set.
#define TAEDA_RANDOM_LOOPS(ISA)    \
  namespace ISA {                  \
  extern const RandomTable random; \
  }
#ifdef TAEDA_ISA
TAEDA_RANDOM_LOOPS(TAEDA_ISA)
#endif

/// Those for this machine (src/cpu/isa.cpp).
const RandomTable& random_table() noexcept;

}  // namespace taeda::loops
