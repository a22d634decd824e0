// How far the elements of a layout lie from its first one, counted without overflow.
#pragma once

#include <cstdint>

#include "taeda/export.h"
#include "taeda/small_vec.h"

namespace taeda {

/// Distances from a layout's first element to the lowest one (at most 0) and to the end of the highest one.
struct Reach {
  int64_t low = 0, high = 0;
};

/// The reach of strided elements that take ``item`` units each; nothing for no elements.
/// OverflowError, naming ``op``, where it cannot be counted in 64 bits.
TAEDA_API Reach reach_of(const char* op, IntSpan sizes, IntSpan strides, int64_t item);

/// The strides, except that those which are never stepped along (of dimensions of at most one element, of tensors
/// without elements) stay small enough to be scaled to bytes.
TAEDA_API Shape settled_strides(IntSpan sizes, IntSpan strides);

}  // namespace taeda
