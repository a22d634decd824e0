// Sums and maxima of the rows of a table that indices name: one copy per instruction set.
#pragma once
#include <cstdint>
#include <type_traits>

#include "taeda/dtype.h"

namespace taeda::loops {

/// Some rows of a table of elements of T, which are computed with in Sum.
template <class T>
struct Bag {
  using Sum = std::conditional_t<std::is_same_v<T, double>, double, float>;
  const T* table;
  int64_t width;  // of a row
  const int64_t* indices;
  int64_t count;       // of rows, at least 1
  const int64_t* end;  // of all indices that can be read: rows of the next bags are fetched ahead
  const Sum* factors;  // of the rows; null: 1
  Sum divisor;         // of the sums
};
template <class T>
struct BagLoops {
  using Sum = typename Bag<T>::Sum;
  /// out[j] = (sum over k of factors[k] * table[indices[k]][j]) / divisor, which is never -0.
  void (*sum)(const Bag<T>& bag, Sum* out);
  /// out[j] = max over k of table[indices[k]][j], and the index that it is from, of equals the first.
  void (*most)(const Bag<T>& bag, Sum* out, int64_t* from);
};
struct BagTable {
  BagLoops<float> of_float;
  BagLoops<double> of_double;
  BagLoops<Half> of_half;
  BagLoops<BFloat16> of_bfloat16;
};

/// Declares the copy of one instruction set.
#define TAEDA_BAG_LOOPS(ISA)  \
  namespace ISA {             \
  extern const BagTable bags; \
  }
#ifdef TAEDA_ISA
TAEDA_BAG_LOOPS(TAEDA_ISA)
#endif

/// Those for this machine (src/cpu/isa.cpp).
const BagTable& bag_table() noexcept;

template <class T>
const BagLoops<T>& bag_loops() noexcept {
  if constexpr (std::is_same_v<T, float>) return bag_table().of_float;
  else if constexpr (std::is_same_v<T, double>) return bag_table().of_double;
  else if constexpr (std::is_same_v<T, Half>) return bag_table().of_half;
  else return bag_table().of_bfloat16;
}

}  // namespace taeda::loops
