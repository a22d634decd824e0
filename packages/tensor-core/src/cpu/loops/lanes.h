// Sums and maxima over contiguous elements in a fixed number of lanes: the same bits with every instruction set.
#pragma once
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "cpu/loops/register.h"

namespace taeda::loops::TAEDA_ISA {

/// Calls `body(first, indices)` for as many of n elements as a register has, or a part of one, from each on, for the
/// last ones again: one after the other they would take branches that follow the data. False where there are too few,
/// or no vectors of T.
template <class T, int Bytes = kRegister, class Body>
inline bool in_registers(int64_t n, const Body& body) {
  constexpr int64_t width = Bytes / sizeof(T);
  if (n < width) {
    if constexpr (Bytes > 16) return in_registers<T, Bytes / 2>(n, body);
    else return false;
  }
  constexpr auto indices = std::make_index_sequence<size_t(width)>();
  int64_t first = 0;
  for (; first + width <= n; first += width) body(first, indices);
  if (first < n) body(n - width, indices);
  return true;
}

/// 64 bytes of T in as many registers as that takes.
template <class T>
struct Lanes {
  using Part = typename Register<T>::type;
  static constexpr int count = int(64 / sizeof(T)), parts = 64 / kRegister;
  Part part[parts] = {};

  void add(const T* x) {
    for (int i = 0; i < parts; ++i) {
      Part next;
      std::memcpy(&next, x + i * (count / parts), sizeof next);
      part[i] += next;
    }
  }
  void add(const Lanes& other) {
    for (int i = 0; i < parts; ++i) part[i] += other.part[i];
  }
};

/// Adds the lanes of a register in a fixed tree: halves to each other.
template <class T, int Bytes = kRegister>
inline T fold_add(typename Register<T, Bytes>::type v) {
  if constexpr (Bytes == int(sizeof(T))) {
    return v[0];
  } else {
    typename Register<T, Bytes / 2>::type low, high;
    std::memcpy(&low, &v, Bytes / 2);
    std::memcpy(&high, reinterpret_cast<const char*>(&v) + Bytes / 2, Bytes / 2);
    return fold_add<T, Bytes / 2>(low + high);
  }
}
template <class T>
inline T fold_add(Lanes<T> v) {
  for (int half = Lanes<T>::parts / 2; half; half /= 2)
    for (int i = 0; i < half; ++i) v.part[i] += v.part[i + half];
  return fold_add<T>(v.part[0]);
}

/// Sum of up to a few thousand contiguous elements: four vectors of lanes, then the rest one by one.
template <class T>
inline T sum_block(const T* x, int64_t n) {
  constexpr int L = Lanes<T>::count;
  T rest = 0;
  int64_t i = 0;
  if (n < L) {
    for (; i < n; ++i) rest += x[i];
    return rest;
  }
  Lanes<T> a, b, c, d;
  for (; i + 4 * L <= n; i += 4 * L) {
    a.add(x + i);
    b.add(x + i + L);
    c.add(x + i + 2 * L);
    d.add(x + i + 3 * L);
  }
  for (; i + L <= n; i += L) a.add(x + i);
  for (; i < n; ++i) rest += x[i];
  a.add(b);
  c.add(d);
  a.add(c);
  return fold_add(a) + rest;
}
/// Pairwise over blocks: the error grows with the logarithm of n.
template <class T>
inline T sum_contiguous(const T* x, int64_t n) {
  constexpr int64_t block = 1024;
  if (n <= block) return sum_block(x, n);
  // Halves are whole blocks, so that the tree does not depend on alignment.
  T stack[48];
  int depth = 0;
  int64_t taken = 0;
  for (int64_t i = 0; i < n; i += block) {
    T s = sum_block(x + i, n - i < block ? n - i : block);
    for (int64_t k = taken++; k & 1; k >>= 1) s = stack[--depth] + s;
    stack[depth++] = s;
  }
  T total = stack[--depth];
  while (depth) total = stack[--depth] + total;
  return total;
}
template <class T>
inline T max_one_by_one(const T* x, int64_t n) {
  T m = x[0];
  for (int64_t i = 0; i < n; ++i) m = x[i] > m || x[i] != x[i] ? x[i] : m;
  return m;
}
/// NaN where there is one; of equal zeros either.
template <class T>
inline T max_contiguous(const T* x, int64_t n) {
  using V = typename Register<T>::type;
  constexpr int64_t L = kRegister / int64_t(sizeof(T));
  if (n < 2 * L) return max_one_by_one(x, n);
  const auto load = [x](int64_t i) {
    V v;
    std::memcpy(&v, x + i, sizeof v);
    return v;
  };
  V a = load(0), b = load(L);
  auto missing = (a != a) | (b != b);
  for (int64_t i = 2 * L; i < n; i += 2 * L) {
    // The last ones are looked at again.
    const V v = load(i + L <= n ? i : n - L), w = load(i + 2 * L <= n ? i + L : n - L);
    a = v > a ? v : a;
    b = w > b ? w : b;
    missing |= (v != v) | (w != w);
  }
  a = a > b ? a : b;
  T m = a[0];
  auto any = missing[0];
  for (int k = 1; k < L; ++k) {
    m = a[k] > m ? a[k] : m;
    any |= missing[k];
  }
  return any ? max_one_by_one(x, n) : m;
}

}  // namespace taeda::loops::TAEDA_ISA
