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
    at<int64_t>(to)[item] = within(report, row - 1, rows) ? row : 1;
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

}  // namespace taeda::cuda
