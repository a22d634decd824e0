// Elements as bytes.
#pragma once
#include "kernels/elementwise.h"

namespace taeda::cuda {

struct alignas(8) Sixteen {
  uint64_t halves[2];
};
/// One element as bytes.
TAEDA_HD inline void copy_item(int size, Address to, int64_t i, Address from, int64_t j) {
  switch (size) {
    case 1: at<uint8_t>(to)[i] = at<const uint8_t>(from)[j]; return;
    case 2: at<uint16_t>(to)[i] = at<const uint16_t>(from)[j]; return;
    case 4: at<uint32_t>(to)[i] = at<const uint32_t>(from)[j]; return;
    case 8: at<uint64_t>(to)[i] = at<const uint64_t>(from)[j]; return;
    default: at<Sixteen>(to)[i] = at<const Sixteen>(from)[j]; return;
  }
}

TAEDA_HD inline void clear_item(int size, Address to, int64_t i) {
  switch (size) {
    case 1: at<uint8_t>(to)[i] = 0; return;
    case 2: at<uint16_t>(to)[i] = 0; return;
    case 4: at<uint32_t>(to)[i] = 0; return;
    case 8: at<uint64_t>(to)[i] = 0; return;
    default: at<Sixteen>(to)[i] = {}; return;
  }
}
/// The same of units of 1, 2, 4, 8 or 16 bytes, aligned to their size.
TAEDA_HD inline void copy_unit(int size, Address to, int64_t i, Address from, int64_t j) {
  using Unit = Pack<uint64_t, 2>;
  if (size == int(sizeof(Unit))) at<Unit>(to)[i] = at<const Unit>(from)[j];
  else copy_item(size, to, i, from, j);
}

}  // namespace taeda::cuda
