// Copies of matrices from one order of their elements to the other.
#include "cpu/transposed.h"

#include <algorithm>
#include <bit>

#include "cpu/loops/turned.h"
#include "taeda/elementwise.h"
#include "taeda/parallel.h"

namespace taeda {

/// In tiles: both sides are read and written by whole cache lines, most of which follow each other.
void cpu::copy_transposed(void* out, const void* in, int64_t rows, int64_t columns, int64_t out_step, int64_t in_step,
                          int64_t item) {
  if (rows == 0 || columns == 0) return;
  // Lines that lie pages apart share few places of the cache.
  constexpr int64_t page = 4096, across = 32;
  const int64_t down = out_step * item % page == 0 || in_step * item % page == 0 ? 32 : 64;
  const loops::TransposeTile transpose = loops::turned_table().by_item[std::countr_zero(uint64_t(item))];
  parallel_for((rows + down - 1) / down, std::max<int64_t>(1, kLoopGrain / (columns * down)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t r = begin * down; r < std::min(rows, end * down); r += down)
                   for (int64_t c = 0; c < columns; c += across)
                     transpose(static_cast<char*>(out) + (r * out_step + c) * item,
                               static_cast<const char*>(in) + (c * in_step + r) * item, std::min(down, rows - r),
                               std::min(across, columns - c), out_step, in_step);
               });
}

}  // namespace taeda
