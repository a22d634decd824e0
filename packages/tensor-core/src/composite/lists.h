// Lists of numbers of one-dimensional windows as those of two-dimensional ones.
#pragma once
#include "taeda/tensor.h"

namespace taeda::impl {

/// The list of a one-dimensional operator with `first` for the height; one that was not given stays empty.
inline Shape widened(const char* op, const char* argument, IntSpan list, int64_t first) {
  if (list.empty()) return {};
  check(list.size() == 1, ErrorKind::Runtime, op, ": argument '", argument, "' has ", list.size(),
        " numbers, expected 1");
  return Shape{first, list[0]};
}

}  // namespace taeda::impl
