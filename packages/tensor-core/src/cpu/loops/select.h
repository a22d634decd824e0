// Choices between two operands: one copy per instruction set.
#pragma once
#include "taeda/elementwise.h"

namespace taeda::loops {

/// out = condition ? a : b by item size: 1, 2, 4, 8, 16 bytes.
struct SelectTable {
  Loop by_size[5];
};

/// Declares the copy of one instruction set.
#define TAEDA_SELECT_LOOPS(ISA)    \
  namespace ISA {                  \
  extern const SelectTable select; \
  }
#ifdef TAEDA_ISA
TAEDA_SELECT_LOOPS(TAEDA_ISA)
#endif

/// Those for this machine (src/cpu/isa.cpp).
const SelectTable& select_table() noexcept;

}  // namespace taeda::loops
