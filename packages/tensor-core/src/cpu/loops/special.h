// The rows of the special family: one copy per instruction set.
#pragma once
#include "cpu/loops/tables.h"

namespace taeda::loops {

#define TAEDA_SPECIAL_LOOPS(ISA)          \
  namespace ISA {                         \
  extern const ElementRow special_rows[]; \
  }
#ifdef TAEDA_ISA
TAEDA_SPECIAL_LOOPS(TAEDA_ISA)
#endif

/// Those for this machine, and those of the least instruction set (src/cpu/isa.cpp).
const ElementRow* special_table() noexcept;
const ElementRow* least_special_table() noexcept;

}  // namespace taeda::loops
