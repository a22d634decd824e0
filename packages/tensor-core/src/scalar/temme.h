// Temme's uniform expansion of the incomplete gamma functions for large a.
#pragma once
#include <cmath>

#include "scalar/base.h"

namespace taeda::loops::TAEDA_ISA {

/// Coefficients of Temme's uniform expansion for large a. NIST DLMF 8.12; the recurrences follow from 8.12.8
/// to 8.12.12.
struct TemmeTable {
  static constexpr int kOrders = 14, kTerms = 26, kFirst = kTerms + 2 * kOrders + 2;
  double d[kOrders][kTerms];
  TemmeTable() {
    long double alpha[kFirst + 3] = {0, 1}, inverse[kFirst + 2] = {1}, row[kFirst];
    for (int m = 3; m < kFirst + 3; ++m) {  // lambda - 1 = sum of alpha_n eta^n
      long double sum = 2 * alpha[m - 2] / m;
      for (int i = 2; i <= m - 2; ++i) sum -= alpha[i] * alpha[m - i];
      alpha[m - 1] = sum / 2;
    }
    for (int n = 1; n < kFirst + 1; ++n) {
      inverse[n] = 0;
      for (int i = 1; i <= n; ++i) inverse[n] -= alpha[i + 1] * inverse[n - i];
    }
    for (int n = 0; n < kFirst; ++n) row[n] = inverse[n + 1];
    for (int k = 0; k < kOrders; ++k) {
      for (int n = 0; n < kTerms; ++n) d[k][n] = double(row[n]);
      const long double factor = row[1];
      for (int n = 0; n + 2 < kFirst - 2 * k; ++n) row[n] = (n + 2) * row[n + 2] - factor * inverse[n + 1];
    }
  }
};
TAEDA_HD inline bool gamma_is_uniform(double a, double x) { return a > 20 && magnitude(x - a) < 0.3 * a; }

}  // namespace taeda::loops::TAEDA_ISA
