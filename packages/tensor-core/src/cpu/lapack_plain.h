// Triangular factorisations and solutions as plain loops: the fastest way for small matrices, and the only one in a
// build without LAPACK.
#pragma once
#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "cpu/lapack.h"
#include "cpu/loops/total.h"

namespace taeda::lapack::plain {

template <class T>
T conjugate(T x) noexcept {
  if constexpr (is_complex<T>) return std::conj(x);
  else return x;
}
/// The size by which pivots are chosen.
template <class T>
Real<T> size_of(T x) noexcept {
  if constexpr (is_complex<T>) return std::abs(x.real()) + std::abs(x.imag());
  else return std::abs(x);
}

/// Calls `body` with the order of a matrix, the smallest as constants of which the compiler makes straight code.
template <class Body>
auto with_order(int n, const Body& body) {
  switch (n) {
    case 1: return body(std::integral_constant<int, 1>());
    case 2: return body(std::integral_constant<int, 2>());
    case 3: return body(std::integral_constant<int, 3>());
    case 4: return body(std::integral_constant<int, 4>());
    default: return body(n);
  }
}

/// y -= factor * x.
template <class T>
void subtract(int n, T factor, const T* x, T* y) noexcept {
  for (int i = 0; i < n; ++i) y[i] -= times(factor, x[i]);
}

template <class T>
[[gnu::always_inline]] inline int getrf_of(int m, int n, T* a, int lda, int* pivots) {
  int info = 0;
  for (int j = 0; j < std::min(m, n); ++j) {
    T* const column = a + int64_t(j) * lda;
    int best = j;
    Real<T> largest = size_of(column[j]);
    for (int i = j + 1; i < m; ++i)
      if (const Real<T> size = size_of(column[i]); size > largest) {
        largest = size;
        best = i;
      }
    pivots[j] = best + 1;
    if (column[best] == T(0)) {
      if (!info) info = j + 1;
      continue;
    }
    if (best != j)
      for (int k = 0; k < n; ++k) std::swap(a[j + int64_t(k) * lda], a[best + int64_t(k) * lda]);
    const T diagonal = column[j];
    if constexpr (is_complex<T>) {
      for (int i = j + 1; i < m; ++i) column[i] /= diagonal;
    } else if (std::abs(diagonal) >= std::numeric_limits<T>::min()) {
      const T inverse = T(1) / diagonal;
      for (int i = j + 1; i < m; ++i) column[i] *= inverse;
    } else {
      for (int i = j + 1; i < m; ++i) column[i] /= diagonal;
    }
    for (int k = j + 1; k < n; ++k) {
      T* const other = a + int64_t(k) * lda;
      subtract(m - j - 1, other[j], column + j + 1, other + j + 1);
    }
  }
  return info;
}
template <class T>
int getrf(int m, int n, T* a, int lda, int* pivots) {
  if (m != n) return getrf_of(m, n, a, lda, pivots);
  return with_order(n, [=](auto order) { return getrf_of(order, order, a, lda, pivots); });
}

template <class T>
[[gnu::always_inline]] inline int potrf_lower_of(int n, T* a, int lda) {
  for (int j = 0; j < n; ++j) {
    T* const column = a + int64_t(j) * lda;
    for (int k = 0; k < j; ++k) {
      const T* const before = a + int64_t(k) * lda;
      subtract(n - j, conjugate(before[j]), before + j, column + j);
    }
    const Real<T> square = std::real(column[j]);
    if (!(square > 0)) {
      column[j] = T(square);
      return j + 1;
    }
    const Real<T> root = std::sqrt(square);
    column[j] = T(root);
    for (int i = j + 1; i < n; ++i) column[i] /= root;
  }
  return 0;
}
template <class T>
int potrf_lower(int n, T* a, int lda) {
  return with_order(n, [=](auto order) { return potrf_lower_of(order, a, lda); });
}
template <class T>
int potrf_upper(int n, T* a, int lda) {
  for (int j = 0; j < n; ++j) {
    T* const column = a + int64_t(j) * lda;
    for (int i = 0; i < j; ++i) {
      const T* const before = a + int64_t(i) * lda;
      T sum = column[i];
      for (int k = 0; k < i; ++k) sum -= times(conjugate(before[k]), column[k]);
      column[i] = sum / std::real(before[i]);
    }
    Real<T> square = std::real(column[j]);
    for (int k = 0; k < j; ++k) square -= std::norm(column[k]);
    if (!(square > 0)) {
      column[j] = T(square);
      return j + 1;
    }
    column[j] = T(std::sqrt(square));
  }
  return 0;
}

/// op(A) x = b for one vector.
template <class T>
[[gnu::always_inline]] inline void trsv(bool upper, char op, bool unit, int n, const T* a, int lda, T* x) {
  const bool plain = op == 'N', forward = plain != upper;
  const auto of = [op](T v) { return op == 'C' ? conjugate(v) : v; };
  for (int step = 0; step < n; ++step) {
    const int j = forward ? step : n - 1 - step;
    const T* const column = a + int64_t(j) * lda;
    const int first = upper ? 0 : j + 1, count = upper ? j : n - j - 1;
    if (plain) {
      if (!unit) x[j] /= column[j];
      subtract(count, x[j], column + first, x + first);
    } else {
      T sum = x[j];
      for (int i = first; i < first + count; ++i) sum -= times(of(column[i]), x[i]);
      x[j] = unit ? sum : sum / of(column[j]);
    }
  }
}
/// x op(A) = b for rows of b (m, n), column by column.
template <class T>
void trsm_right(bool upper, char op, bool unit, int m, int n, const T* a, int lda, T* b, int ldb) {
  const bool plain = op == 'N', forward = plain == upper;
  const auto of = [op](T v) { return op == 'C' ? conjugate(v) : v; };
  for (int step = 0; step < n; ++step) {
    const int j = forward ? step : n - 1 - step;
    T* const column = b + int64_t(j) * ldb;
    if (!unit) {
      const T diagonal = of(a[j + int64_t(j) * lda]);
      for (int i = 0; i < m; ++i) column[i] /= diagonal;
    }
    for (int rest = step + 1; rest < n; ++rest) {
      const int k = forward ? rest : n - 1 - rest;
      const T factor = plain ? a[j + int64_t(k) * lda] : of(a[k + int64_t(j) * lda]);
      subtract(m, factor, column, b + int64_t(k) * ldb);
    }
  }
}
template <class T>
void trsm(bool left, bool upper, char op, bool unit, int m, int n, const T* a, int lda, T* b, int ldb) {
  if (!left) return trsm_right(upper, op, unit, m, n, a, lda, b, ldb);
  for (int j = 0; j < n; ++j) trsv(upper, op, unit, m, a, lda, b + int64_t(j) * ldb);
}

/// The exchanges of rows that pivots stand for, in their order or backwards.
template <class T>
[[gnu::always_inline]] inline void exchange_rows(int n, int columns, const int* pivots, bool backwards, T* b, int ldb) {
  for (int step = 0; step < n; ++step) {
    const int i = backwards ? n - 1 - step : step, other = pivots[i] - 1;
    if (i != other)
      for (int j = 0; j < columns; ++j) std::swap(b[i + int64_t(j) * ldb], b[other + int64_t(j) * ldb]);
  }
}
template <class T>
void getrs(char op, int n, int columns, const T* a, int lda, const int* pivots, T* b, int ldb) {
  if (op == 'N') {
    with_order(n, [=](auto order) {
      exchange_rows(order, columns, pivots, false, b, ldb);
      for (int j = 0; j < columns; ++j) {
        trsv(false, 'N', true, order, a, lda, b + int64_t(j) * ldb);
        trsv(true, 'N', false, order, a, lda, b + int64_t(j) * ldb);
      }
    });
  } else {
    trsm(true, true, op, false, n, columns, a, lda, b, ldb);
    trsm(true, false, op, true, n, columns, a, lda, b, ldb);
    exchange_rows(n, columns, pivots, true, b, ldb);
  }
}

/// The 2-norm of a vector, also where squares would leave the type's range.
template <class T>
Real<T> norm_of(int n, const T* x) {
  using R = Real<T>;
  R sum = 0;
  for (int i = 0; i < n; ++i) sum += std::norm(x[i]);
  constexpr R least = std::numeric_limits<R>::min() / std::numeric_limits<R>::epsilon();
  if (sum > least && sum < std::numeric_limits<R>::max()) return std::sqrt(sum);
  R largest = 0;
  for (int i = 0; i < n; ++i) largest = std::max(largest, size_of(x[i]));
  if (!(largest > 0) || !(largest <= std::numeric_limits<R>::max())) return std::sqrt(sum);
  sum = 0;
  for (int i = 0; i < n; ++i) sum += std::norm(x[i] / largest);
  return largest * std::sqrt(sum);
}
/// column -= factor * v v^H column, of n elements.
template <class T>
void reflect(int n, const T* v, T factor, T* column) noexcept {
  T sum = column[0];  // v begins with a 1 that is not stored
  for (int i = 1; i < n; ++i) sum += times(conjugate(v[i]), column[i]);
  sum = times(factor, sum);
  column[0] -= sum;
  for (int i = 1; i < n; ++i) column[i] -= times(sum, v[i]);
}
/// Householder's reflectors, one column after the other, as LAPACK stores them.
template <class T>
void geqrf(int m, int n, T* a, int lda, T* tau) {
  using R = Real<T>;
  for (int j = 0; j < std::min(m, n); ++j) {
    T* const v = a + j + int64_t(j) * lda;
    const int length = m - j;
    const R below = norm_of(length - 1, v + 1), real = std::real(v[0]), imaginary = std::imag(v[0]);
    if (below == 0 && imaginary == 0) {
      tau[j] = T(0);
      continue;
    }
    const R norm = std::hypot(std::hypot(real, imaginary), below), beta = real > 0 ? -norm : norm;
    if constexpr (is_complex<T>) tau[j] = T((beta - real) / beta, -imaginary / beta);
    else tau[j] = (beta - real) / beta;
    const T divisor = v[0] - T(beta);
    for (int i = 1; i < length; ++i) v[i] /= divisor;
    v[0] = T(beta);
    for (int k = j + 1; k < n; ++k) reflect(length, v, conjugate(tau[j]), a + j + int64_t(k) * lda);
  }
}
/// The first n columns of the product of k reflectors, in their place.
template <class T>
void orgqr(int m, int n, int k, T* a, int lda, const T* tau) {
  for (int j = k; j < n; ++j) {
    std::fill_n(a + int64_t(j) * lda, m, T(0));
    a[j + int64_t(j) * lda] = T(1);
  }
  for (int j = k - 1; j >= 0; --j) {
    T* const v = a + j + int64_t(j) * lda;
    for (int c = j + 1; c < n; ++c) reflect(m - j, v, tau[j], a + j + int64_t(c) * lda);
    for (int i = 1; i < m - j; ++i) v[i] = -times(tau[j], v[i]);
    v[0] = T(1) - tau[j];
    std::fill_n(a + int64_t(j) * lda, j, T(0));
  }
}

}  // namespace taeda::lapack::plain
