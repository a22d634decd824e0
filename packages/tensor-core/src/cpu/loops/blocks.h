// Operands that lie anyhow in memory, brought to a loop that knows contiguous ones.
#pragma once
#include "taeda/elementwise.h"

namespace taeda::loops {

/// Elements that are gathered at a time.
inline constexpr int64_t kBlock = 128;
/// Loops get whole multiples of so many elements, the last of them repeated: they need no code for rests.
inline constexpr int64_t kMultiple = 16;

/// A loop over contiguous elements, and the sizes of those: of the result, then of the operands.
struct Blocks {
  void (*body)(char* const* data, int64_t n, const LoopParams* params);
  uint8_t sizes[4];
  int operands;
  bool by_blocks;  // takes no more than kBlock elements at a time
};
/// Brings n elements of `size` bytes, which lie `stride` bytes apart, side by side.
void gather(char* to, const char* from, int64_t stride, int64_t size, int64_t n);
/// Runs it over n elements as a Loop does.
void run_blocks(const Blocks& how, char* const* data, const int64_t* strides, int64_t n, const LoopParams* params);

}  // namespace taeda::loops
