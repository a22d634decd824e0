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

/// Adds the lanes in a fixed tree: halves of `Bytes` to each other.
template <class T, int Bytes = 32, class V = Vec<T>>
inline T fold_add(V v) {
  if constexpr (Bytes < int(sizeof(T))) {
    return v[0];
  } else {
    typedef T Half __attribute__((vector_size(Bytes)));
    Half low, high;
    std::memcpy(&low, &v, Bytes);
    std::memcpy(&high, reinterpret_cast<const char*>(&v) + Bytes, Bytes);
    return fold_add<T, Bytes / 2>(low + high);
  }
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
  Vec<T> a{}, b{}, c{}, d{};
  for (; i + 4 * L <= n; i += 4 * L) {
    a += load(x + i);
    b += load(x + i + L);
    c += load(x + i + 2 * L);
    d += load(x + i + 3 * L);
  }
  for (; i + L <= n; i += L) a += load(x + i);
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
/// As many bytes as a register has: of longer vectors the compiler compares the elements one by one.
#if defined(__AVX512F__)
inline constexpr int kRegister = 64;
#elif defined(__AVX2__)
inline constexpr int kRegister = 32;
#else
inline constexpr int kRegister = 16;
#endif
template <class T>
struct Register {
  typedef T type __attribute__((vector_size(kRegister)));
};

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
