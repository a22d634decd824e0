// Rows of numbers that lie next to each other: one step of arithmetic with a number, and conversions.
#pragma once
#include "cpu/arith.h"
#include "taeda/elementwise.h"

namespace taeda::cpu {

/// row[i] = line(row[i], by).
template <class T>
void apply_line(SharedLine line, T* place, int64_t n, T by) {
  char *const to = reinterpret_cast<char*>(place), *const other = reinterpret_cast<char*>(&by);
  char* const pointers[] = {to, to, other};
  const int64_t steps[] = {sizeof(T), sizeof(T), 0};
  row(line).fn[int(dtype_of<T>)](pointers, steps, n, nullptr);
}

/// to[i] = from[i] in another dtype.
inline void convert_row(DType from_dtype, const void* from, int64_t n, DType to_dtype, void* to) {
  char* const pointers[] = {static_cast<char*>(to), static_cast<char*>(const_cast<void*>(from))};
  const int64_t steps[] = {int64_t(item_size(to_dtype)), int64_t(item_size(from_dtype))};
  convert_elements(to_dtype, from_dtype, pointers, steps, n);
}

}  // namespace taeda::cpu
