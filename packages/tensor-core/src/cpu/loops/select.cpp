// Inner loops of choices between two operands: by item size, whatever the dtype.
#include <algorithm>
#include <cstdint>
#include <cstring>

#include "cpu/loops/select.h"

namespace taeda::loops::TAEDA_ISA {
namespace {

struct Sixteen {
  uint64_t halves[2];
};
/// By bits: the compiler would sink the loads of `a` and `b` into branches and then not vectorise.
template <class T>
inline T chosen(uint8_t condition, T a, T b) {
  const T mask = T(-T(condition != 0));  // see Note [Bytes of truth values]
  return T((a & mask) | (b & T(~mask)));
}
inline Sixteen chosen(uint8_t condition, Sixteen a, Sixteen b) { return condition ? a : b; }

/// The condition is a bool read as a byte, which vectorises where bool does not.
template <class T, bool OneA, bool OneB>
void straight(T* out, const uint8_t* condition, const T* a, const T* b, int64_t n) {
  const T x = *a, y = *b;
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) out[i] = chosen(condition[i], OneA ? x : a[i], OneB ? y : b[i]);
}
/// One condition for all.
template <class T>
void take(T* out, const char* from, int64_t step, int64_t n) {
  if (step == int64_t(sizeof(T))) std::memmove(static_cast<void*>(out), from, size_t(n) * sizeof(T));
  else std::fill_n(out, n, *reinterpret_cast<const T*>(from));
}
template <class T>
void choose(char* const* p, const int64_t* s, int64_t n, const LoopParams*) {
  constexpr int64_t size = sizeof(T);
  if (s[0] == size && s[1] == 1 && (s[2] == size || s[2] == 0) && (s[3] == size || s[3] == 0) && n > 1) {
    T* const out = reinterpret_cast<T*>(p[0]);
    const uint8_t* const condition = reinterpret_cast<const uint8_t*>(p[1]);
    const T *const a = reinterpret_cast<const T*>(p[2]), *const b = reinterpret_cast<const T*>(p[3]);
    if (s[2] && s[3]) return straight<T, false, false>(out, condition, a, b, n);
    if (s[3]) return straight<T, true, false>(out, condition, a, b, n);
    if (s[2]) return straight<T, false, true>(out, condition, a, b, n);
    return straight<T, true, true>(out, condition, a, b, n);
  }
  const int one = s[1] == 0 && *reinterpret_cast<const uint8_t*>(p[1]) == 0 ? 3 : 2;
  if (s[1] == 0 && s[0] == size && (s[one] == size || s[one] == 0))
    return take(reinterpret_cast<T*>(p[0]), p[one], s[one], n);
  for (int64_t i = 0; i < n; ++i)
    *reinterpret_cast<T*>(p[0] + i * s[0]) =
        chosen(*reinterpret_cast<const uint8_t*>(p[1] + i * s[1]), *reinterpret_cast<const T*>(p[2] + i * s[2]),
               *reinterpret_cast<const T*>(p[3] + i * s[3]));
}

}  // namespace

constinit const SelectTable select{
    {choose<uint8_t>, choose<uint16_t>, choose<uint32_t>, choose<uint64_t>, choose<Sixteen>}};

}  // namespace taeda::loops::TAEDA_ISA
