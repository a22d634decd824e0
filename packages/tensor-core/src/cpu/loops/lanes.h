// Sums and maxima over contiguous elements in a fixed number of lanes: the same bits with every instruction set.
#pragma once
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace taeda::loops::TAEDA_ISA {

/// 64 bytes of T; the compiler splits it into whatever registers there are.
template <class T>
struct Lanes {
  typedef T type __attribute__((vector_size(64)));
  static constexpr int count = int(64 / sizeof(T));
};
template <class T> using Vec = typename Lanes<T>::type;
template <class T>
inline Vec<T> load(const T* p) {
  Vec<T> v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
template <class T>
inline Vec<T> spread(T value) {
  return Vec<T>{} + value;
}

/// Adds the lanes in a fixed tree.
template <class T>
inline T fold_add(Vec<T> v) {
  for (int step = Lanes<T>::count / 2; step; step /= 2)
    for (int i = 0; i < step; ++i) v[i] += v[i + step];
  return v[0];
}

/// Sum of up to a few thousand contiguous elements: four vectors of lanes, then the rest one by one.
template <class T>
inline T sum_block(const T* x, int64_t n) {
  constexpr int L = Lanes<T>::count;
  Vec<T> a{}, b{}, c{}, d{};
  int64_t i = 0;
  for (; i + 4 * L <= n; i += 4 * L) {
    a += load(x + i);
    b += load(x + i + L);
    c += load(x + i + 2 * L);
    d += load(x + i + 3 * L);
  }
  for (; i + L <= n; i += L) a += load(x + i);
  T rest = 0;
  for (; i < n; ++i) rest += x[i];
  return fold_add<T>((a + b) + (c + d)) + rest;
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
inline T max_contiguous(const T* x, int64_t n) {
  constexpr int L = Lanes<T>::count;
  T m = x[0];
  int64_t i = 0;
  if (n >= L) {
    Vec<T> a = load(x);
    for (i = L; i + L <= n; i += L) {
      const Vec<T> v = load(x + i);
      a = v > a || v != v ? v : a;
    }
    m = a[0];
    for (int k = 1; k < L; ++k) m = a[k] > m || a[k] != a[k] ? a[k] : m;
  }
  for (; i < n; ++i) m = x[i] > m || x[i] != x[i] ? x[i] : m;
  return m;
}

}  // namespace taeda::loops::TAEDA_ISA
