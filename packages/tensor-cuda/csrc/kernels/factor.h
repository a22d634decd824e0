// What libraries of linear algebra are given beside matrices.
#pragma once
#include <cmath>

#include "kernels/launch.h"
#include "scalar/arith.h"

namespace taeda::cuda {

/// Where each matrix of a batch lies.
struct Places {
  uint64_t places, first, step;  // addresses, bytes
  TAEDA_HD void operator()(int64_t item) const { at<uint64_t>(places)[item] = first + uint64_t(item) * step; }
};
/// Exchanges of rows, from 1 to `rows`; others are reported, and exchange nothing that lies outside.
struct Pivots {
  uint64_t to, from;
  int64_t rows;
  Report report;
  TAEDA_HD void operator()(int64_t item) const {
    const int64_t row = at<int32_t>(from)[item];
    const bool good = row >= 1 && row <= rows;
    if (!good) report(Wrong::Pivots, row, rows);
    at<int64_t>(to)[item] = good ? row : 1;
  }
};

struct DeterminantParts {
  Array factors;  // by columns, packed
  uint64_t pivots;
  int64_t rows;
  bool logs;  // the sign and the logarithm of the size, else the product
  Array result, logarithm;
};
/// Of each matrix the product of U's diagonal, turned around by each exchange of rows.
template <class C>
struct Determinant {
  DeterminantParts parts;
  TAEDA_HD void operator()(int64_t item) const {
    const DeterminantParts& p = parts;
    const int32_t* const pivots = at<const int32_t>(p.pivots) + item * p.rows;
    C product = C(1);
    double logarithm = 0;
    for (int64_t j = 0; j < p.rows; ++j) {
      C factor = load<C>(p.factors, (item * p.rows + j) * p.rows + j);
      if (p.logs) {
        const double size = size_of(factor);
        logarithm += log(size);
        factor = size == 0 ? C(0) : divided(factor, size);
      }
      product = product * (pivots[j] == j + 1 ? factor : -factor);
    }
    store<C>(p.result, item, product);
    if (p.logs) store<double>(p.logarithm, item, logarithm);
  }

 private:
  TAEDA_HD static double size_of(double x) { return x < 0 ? -x : x; }
  TAEDA_HD static double size_of(Complex128 x) { return hypot(x.re, x.im); }
  TAEDA_HD static double divided(double x, double by) { return x / by; }
  TAEDA_HD static Complex128 divided(Complex128 x, double by) { return {x.re / by, x.im / by}; }
};

/// Systems of a block of a triangular matrix, whose lines of unknowns are each a thread's work. In the order in which
/// they are found the matrix is a lower one.
template <class C>
struct TriangularBlock {
  static constexpr int kThreads = 128, kMost = 32;
  struct Shared {
    C a[kMost][kMost];
  };
  struct Own {};
  Array a, x;
  int64_t batch_a, row_a, column_a, batch_x, line_x, row_x, lines, chunks;  // strides; of lines, and their portions
  int32_t rows, backward, ones, reserved;  // with `ones` these stand in the diagonal, whatever is there
  TAEDA_HD int phases() const { return 2; }
  TAEDA_HD int64_t place(int r) const { return backward ? rows - 1 - r : r; }
  TAEDA_HD void run(int phase, int64_t item, int thread, Shared& shared, Own&) const {
    const int64_t matrix = item / chunks, line = (item - matrix * chunks) * kThreads + thread;
    if (phase == 0) {
      for (int i = thread; i < kMost * kMost; i += kThreads) {
        const int r = i / kMost, q = i % kMost;
        const bool read = r < rows && q <= r && !(ones && q == r);
        const int64_t at_place = matrix * batch_a + place(r) * row_a + place(q) * column_a;
        shared.a[r][q] = read ? load<C>(a, at_place) : C(r == q ? 1 : 0);
      }
      return;
    }
    if (line >= lines) return;
    C found[kMost];
    const int64_t begin = matrix * batch_x + line * line_x;
    TAEDA_UNROLL
    for (int r = 0; r < kMost; ++r) found[r] = r < rows ? load<C>(x, begin + place(r) * row_x) : C(0);
    TAEDA_UNROLL
    for (int r = 0; r < kMost; ++r) {
      C sum = found[r];
      TAEDA_UNROLL
      for (int q = 0; q < r; ++q) sum = C(sum - shared.a[r][q] * found[q]);
      found[r] = loops::TAEDA_ISA::divide(sum, shared.a[r][r]);
    }
    TAEDA_UNROLL
    for (int r = 0; r < kMost; ++r)
      if (r < rows) store<C>(x, begin + place(r) * row_x, found[r]);
  }
};

/// LU factors of a small matrix of a batch, a block for each, with the largest pivot of each column and LAPACK's info.
template <class C>
struct SmallLu {
  static constexpr int kThreads = 64, kMost = 32, kSteps = 4;
  struct Shared {
    C a[kMost][kMost + 1];  // by rows; a gap, so that those of a column meet different banks
    int32_t pivot, info;
  };
  struct Own {};
  Array a;  // by columns, packed
  Address pivots, infos;
  int32_t rows, columns;
  TAEDA_HD int ranks() const { return rows < columns ? rows : columns; }
  TAEDA_HD int phases() const { return kSteps * ranks() + 2; }
  TAEDA_HD void run(int phase, int64_t item, int thread, Shared& shared, Own&) const {
    const int64_t begin = item * rows * columns;
    const int count = rows * columns, k = (phase - 1) / kSteps;
    if (phase == 0) {
      for (int i = thread; i < count; i += kThreads) shared.a[i % rows][i / rows] = load<C>(a, begin + i);
      if (thread == 0) shared.info = 0;
    } else if (phase == phases() - 1) {
      for (int i = thread; i < count; i += kThreads) store<C>(a, begin + i, shared.a[i % rows][i / rows]);
      if (thread == 0) at<int32_t>(infos)[item] = shared.info;
    } else {
      step((phase - 1) % kSteps, k, item, thread, shared);
    }
  }

 private:
  TAEDA_HD static double size_of(float x) { return fabs(double(x)); }
  TAEDA_HD static double size_of(double x) { return fabs(x); }
  TAEDA_HD static double size_of(Complex128 x) { return fabs(x.re) + fabs(x.im); }
  TAEDA_HD void step(int which, int k, int64_t item, int thread, Shared& shared) const {
    if (which == 0) {
      if (thread > 0) return;
      int found = k;
      for (int r = k + 1; r < rows; ++r)
        if (size_of(shared.a[r][k]) > size_of(shared.a[found][k])) found = r;
      shared.pivot = found;
      at<int64_t>(pivots)[item * ranks() + k] = found + 1;
      if (size_of(shared.a[found][k]) == 0 && shared.info == 0) shared.info = k + 1;
    } else if (which == 1) {
      if (thread >= columns) return;
      const C other = shared.a[shared.pivot][thread];
      shared.a[shared.pivot][thread] = shared.a[k][thread];
      shared.a[k][thread] = other;
    } else if (which == 2) {
      const int r = k + 1 + thread;
      if (r < rows && size_of(shared.a[k][k]) != 0)
        shared.a[r][k] = loops::TAEDA_ISA::divide(shared.a[r][k], shared.a[k][k]);
    } else {
      const int c = k + 1 + thread % kMost;
      for (int r = k + 1 + thread / kMost; r < rows && c < columns; r += kThreads / kMost)
        shared.a[r][c] = C(shared.a[r][c] - shared.a[r][k] * shared.a[k][c]);
    }
  }
};
/// Systems by such factors, a thread for each right side: op(A) X = B, which is op(A) = A or its transpose, of
/// conjugates where that is asked for.
template <class C>
struct SmallSystems {
  static constexpr int kThreads = 128, kMost = SmallLu<C>::kMost;
  struct Shared {
    C a[kMost][kMost + 1];
    int32_t row[kMost];  // of B, that stands there after all exchanges
  };
  struct Own {};
  Array a, b;  // by columns, packed
  Address pivots;
  int64_t step_a, step_pivots, sides, chunks;
  int32_t n, turned, conjugate, reserved;
  TAEDA_HD int phases() const { return 2; }
  TAEDA_HD void run(int phase, int64_t item, int thread, Shared& shared, Own&) const {
    const int64_t matrix = item / chunks, side = (item - matrix * chunks) * kThreads + thread;
    if (phase == 0) {
      for (int i = thread; i < n * n; i += kThreads) {
        C value = load<C>(a, matrix * step_a + i);
        if constexpr (is_complex<C>)
          if (conjugate) value.im = -value.im;
        shared.a[i % n][i / n] = value;
      }
      if (thread > 0) return;
      for (int r = 0; r < n; ++r) shared.row[r] = r;
      for (int r = 0; r < n; ++r) {
        const int64_t other = at<const int64_t>(pivots)[matrix * step_pivots + r] - 1;
        const int32_t kept = shared.row[r];
        shared.row[r] = shared.row[other], shared.row[other] = kept;
      }
    } else if (side < sides) {
      turned ? solve_turned(shared, (matrix * sides + side) * n) : solve(shared, (matrix * sides + side) * n);
    }
  }

 private:
  TAEDA_HD void solve(const Shared& shared, int64_t begin) const {
    C x[kMost];
    for (int r = 0; r < n; ++r) {
      C sum = load<C>(b, begin + shared.row[r]);
      for (int q = 0; q < r; ++q) sum = C(sum - shared.a[r][q] * x[q]);
      x[r] = sum;
    }
    for (int r = n - 1; r >= 0; --r) {
      C sum = x[r];
      for (int q = r + 1; q < n; ++q) sum = C(sum - shared.a[r][q] * x[q]);
      x[r] = loops::TAEDA_ISA::divide(sum, shared.a[r][r]);
    }
    for (int r = 0; r < n; ++r) store<C>(b, begin + r, x[r]);
  }
  TAEDA_HD void solve_turned(const Shared& shared, int64_t begin) const {
    C x[kMost];
    for (int r = 0; r < n; ++r) {
      C sum = load<C>(b, begin + r);
      for (int q = 0; q < r; ++q) sum = C(sum - shared.a[q][r] * x[q]);
      x[r] = loops::TAEDA_ISA::divide(sum, shared.a[r][r]);
    }
    for (int r = n - 1; r >= 0; --r)
      for (int q = r + 1; q < n; ++q) x[r] = C(x[r] - shared.a[q][r] * x[q]);
    for (int r = 0; r < n; ++r) store<C>(b, begin + shared.row[r], x[r]);
  }
};

}  // namespace taeda::cuda
