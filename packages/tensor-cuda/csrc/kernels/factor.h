// What libraries of linear algebra are given beside matrices.
#pragma once
#include <cmath>

#include "kernels/launch.h"

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

}  // namespace taeda::cuda
