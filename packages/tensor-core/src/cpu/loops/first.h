// The first elements of a row in its order: one copy per instruction set.
#pragma once
#include <cstdint>

#include "cpu/order.h"

namespace taeda::loops {

template <class T>
struct FirstLoops {
  using Key = cpu::KeyOf<T>;
  /// keys[i] = cpu::key_of(from[i * step], descending).
  void (*keys)(const T* from, int64_t n, int64_t step, bool descending, Key* keys);
  /// least[g] = min of keys[i] with i % groups == g; groups is a multiple of 16 and at most n.
  void (*least)(const Key* keys, int64_t n, int64_t groups, Key* least);
  /// Where keys are at most `bound`, in order; their number.
  int64_t (*at_most)(const Key* keys, int64_t n, Key bound, int32_t* places);
};
struct FirstTable {
#define TAEDA_FIRST_ENTRY(T, NAME) FirstLoops<T> of_##NAME;
#define TAEDA_EACH_ORDERED(X) \
  X(bool, bool)               \
  X(int8_t, int8)             \
  X(int16_t, int16)           \
  X(int32_t, int32)           \
  X(int64_t, int64)           \
  X(uint8_t, uint8)           \
  X(uint16_t, uint16)         \
  X(uint32_t, uint32)         \
  X(uint64_t, uint64)         \
  X(Half, half)               \
  X(BFloat16, bfloat16)       \
  X(float, float)             \
  X(double, double)
  TAEDA_EACH_ORDERED(TAEDA_FIRST_ENTRY)
#undef TAEDA_FIRST_ENTRY
};

/// Declares the copy of one instruction set.
#define TAEDA_FIRST_LOOPS(ISA)   \
  namespace ISA {                \
  extern const FirstTable first; \
  }
#ifdef TAEDA_ISA
TAEDA_FIRST_LOOPS(TAEDA_ISA)
#endif

/// Those for this machine (src/cpu/isa.cpp).
const FirstTable& first_table() noexcept;

template <class T>
const FirstLoops<T>& first_loops() noexcept {
#define TAEDA_FIRST_CASE(TYPE, NAME) \
  if constexpr (std::is_same_v<T, TYPE>) return first_table().of_##NAME;
  TAEDA_EACH_ORDERED(TAEDA_FIRST_CASE)
#undef TAEDA_FIRST_CASE
}

}  // namespace taeda::loops
