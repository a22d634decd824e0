// Transpositions of tiles of matrices: one copy per instruction set.
#pragma once
#include <cstdint>

namespace taeda::loops {

/// out[r * out_step + c] = in[c * in_step + r] for r < rows, c < columns.
using TransposeTile = void (*)(void* out, const void* in, int64_t rows, int64_t columns, int64_t out_step,
                               int64_t in_step);
struct TurnedTable {
  TransposeTile by_item[5];  // of elements of 1, 2, 4, 8 and 16 bytes
};

/// Declares the copy of one instruction set.
#define TAEDA_TURNED_LOOPS(ISA)    \
  namespace ISA {                  \
  extern const TurnedTable turned; \
  }
#ifdef TAEDA_ISA
TAEDA_TURNED_LOOPS(TAEDA_ISA)
#endif

/// Those for this machine (src/cpu/isa.cpp).
const TurnedTable& turned_table() noexcept;

}  // namespace taeda::loops
