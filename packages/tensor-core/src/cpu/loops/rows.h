// What a family of element-wise operators has: a row of loops for each line of its arithmetic.
#pragma once
#include "taeda/elementwise.h"

namespace taeda::loops {

/// The loops of one line of arithmetic by computing dtype, and the dtypes of their results.
struct ElementRow {
  Loop fn[kDTypeCount] = {};
  DType result[kDTypeCount] = {};
  constexpr void set(DType d, Loop loop, DType gives) {
    fn[int(d)] = loop;
    result[int(d)] = gives;
  }
};

/// The rows of one family: those for this machine, and those of the least instruction set, which alone have the loops
/// that are compiled once.
struct FamilyRows {
  const ElementRow *here, *least;
};

/// Whether a better instruction set than the least one is used, which fuses multiply-adds.
bool fuses() noexcept;

}  // namespace taeda::loops
