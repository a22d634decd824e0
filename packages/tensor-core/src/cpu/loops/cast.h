// Conversions between dtypes: one copy per instruction set.
#pragma once
#include "taeda/elementwise.h"

namespace taeda::loops {

struct CastTable {
  Loop rows[kDTypeCount][kDTypeCount];  // [to][from]
};

/// Declares the copy of one instruction set.
#define TAEDA_CAST_LOOPS(ISA)  \
  namespace ISA {              \
  extern const CastTable cast; \
  }
#ifdef TAEDA_ISA
TAEDA_CAST_LOOPS(TAEDA_ISA)
#endif

/// Those for this machine (src/cpu/isa.cpp).
const CastTable& cast_table() noexcept;
/// Those of the least instruction set, which alone have the loops of all pairs.
const CastTable& least_cast_table() noexcept;

}  // namespace taeda::loops
