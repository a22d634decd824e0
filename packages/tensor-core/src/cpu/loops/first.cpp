// Keys of a row's elements, and those that are at most a bound, for one instruction set.
#include "cpu/loops/first.h"

#include <algorithm>

namespace taeda::loops::TAEDA_ISA {
namespace {

template <class T>
void keys(const T* from, int64_t n, int64_t step, bool descending, cpu::KeyOf<T>* keys) {
  using Key = cpu::KeyOf<T>;
  const Key turn = descending ? Key(~Key(0)) : Key(0);
  if (step == 1)
    for (int64_t i = 0; i < n; ++i) keys[i] = Key(cpu::order_key(from[i]) ^ turn);
  else
    for (int64_t i = 0; i < n; ++i) keys[i] = Key(cpu::order_key(from[i * step]) ^ turn);
}
template <class Key>
void least(const Key* keys, int64_t n, int64_t groups, Key* least) {
  for (int64_t g = 0; g < groups; ++g) least[g] = keys[g];
  for (int64_t i = groups; i < n; i += groups) {
    const int64_t count = groups < n - i ? groups : n - i;
    for (int64_t g = 0; g < count; ++g) least[g] = keys[i + g] < least[g] ? keys[i + g] : least[g];
  }
}
template <class Key>
int64_t at_most(const Key* keys, int64_t n, Key bound, int32_t* places) {
  constexpr int64_t block = 64;
  int64_t found = 0;
  const auto look = [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      places[found] = int32_t(i);
      found += keys[i] <= bound;
    }
  };
  int64_t i = 0;
  for (; i + block <= n; i += block) {
    Key lowest = keys[i];
    for (int64_t j = 1; j < block; ++j) lowest = keys[i + j] < lowest ? keys[i + j] : lowest;
    if (lowest <= bound) look(i, i + block);
  }
  look(i, n);
  return found;
}
template <class T>
constexpr FirstLoops<T> loops_of{keys<T>, least<cpu::KeyOf<T>>, at_most<cpu::KeyOf<T>>};

}  // namespace

#define TAEDA_FIRST_ENTRY(T, NAME) loops_of<T>,
const FirstTable first{TAEDA_EACH_ORDERED(TAEDA_FIRST_ENTRY)};
#undef TAEDA_FIRST_ENTRY

}  // namespace taeda::loops::TAEDA_ISA
