// Orthogonal polynomials of degree n, by their three-term recurrences in float64.
//
// Of a negative degree they are 0, as in PyTorch; degrees are cut to integers. Inside (-1, 1) Chebyshev's polynomials
// of higher degree are trigonometric functions of acos(x), outside those of very high degree hyperbolic ones.
#pragma once
#include <cmath>
#include <cstdint>

#include "scalar/special.h"

namespace taeda::loops::TAEDA_ISA {

/// Degrees beyond which a recurrence is not followed: the result is NaN there, as where it overflows.
inline constexpr int64_t kLargestDegree = 1 << 20;

/// p(k + 1) = next(k, p(k), p(k - 1)) up to degree n >= 1; overflow ends it.
template <class Next>
TAEDA_HD inline double by_recurrence(int64_t n, double zeroth, double first, Next next) {
  if (n > kLargestDegree) return NAN;
  double before = zeroth, p = first;
  for (int64_t k = 1; k < n && p == p; ++k) {
    const double after = next(double(k), p, before);
    before = p;
    p = after;
  }
  return p;
}

enum class Chebyshev { T, U, V, W };

/// At x = 1 and x = -1.
template <Chebyshev Kind>
TAEDA_HD inline double chebyshev_at_end(int64_t n, bool one) {
  const double sign = one || n % 2 == 0 ? 1 : -1, count = double(n);
  switch (Kind) {
    case Chebyshev::T: return sign;
    case Chebyshev::U: return sign * (count + 1);
    case Chebyshev::V: return one ? 1 : sign * (2 * count + 1);
    default: return one ? 2 * count + 1 : sign;
  }
}
/// Outside [-1, 1]: V and W change places where x is negative.
template <Chebyshev Kind>
TAEDA_HD inline double chebyshev_outside(double x, int64_t n) {
  const double a = std::acosh(std::abs(x)), count = double(n), sign = x < 0 && n % 2 != 0 ? -1 : 1;
  if (Kind == Chebyshev::T) return sign * std::cosh(count * a);
  if (std::isinf(a)) return sign * a;
  if (Kind == Chebyshev::U) return sign * (std::sinh((count + 1) * a) / std::sinh(a));
  const bool cosines = (Kind == Chebyshev::V) == (x > 0);
  return sign *
         (cosines ? std::cosh((count + 0.5) * a) / std::cosh(a / 2) : std::sinh((count + 0.5) * a) / std::sinh(a / 2));
}
template <Chebyshev Kind>
TAEDA_HD inline double chebyshev_of_degree(double x, int64_t n) {
  if (n < 0) return 0;
  if (std::abs(x) == 1) return chebyshev_at_end<Kind>(n, x > 0);
  if (n > 8 && std::abs(x) < 1) {
    const double angle = std::acos(x), count = double(n);
    switch (Kind) {
      case Chebyshev::T: return std::cos(count * angle);
      case Chebyshev::U: return std::sin((count + 1) * angle) / std::sin(angle);
      case Chebyshev::V: return std::cos((count + 0.5) * angle) / std::cos(angle / 2);
      default: return std::sin((count + 0.5) * angle) / std::sin(angle / 2);
    }
  }
  if (n == 0) return 1;
  if (n > 4096) return chebyshev_outside<Kind>(x, n);
  const double first = Kind == Chebyshev::T   ? x
                       : Kind == Chebyshev::U ? 2 * x
                       : Kind == Chebyshev::V ? 2 * x - 1
                                              : 2 * x + 1;
  return by_recurrence(n, 1, first, [x](double, double p, double before) { return 2 * x * p - before; });
}
TAEDA_HD inline double hermite_h(double x, int64_t n) {
  if (n <= 0) return n < 0 ? 0 : 1;
  return by_recurrence(n, 1, 2 * x, [x](double k, double p, double before) { return 2 * (x * p - k * before); });
}
TAEDA_HD inline double hermite_he(double x, int64_t n) {
  if (n <= 0) return n < 0 ? 0 : 1;
  return by_recurrence(n, 1, x, [x](double k, double p, double before) { return x * p - k * before; });
}
TAEDA_HD inline double laguerre_l(double x, int64_t n) {
  if (n <= 0) return n < 0 ? 0 : 1;
  if (x == 0) return 1;
  return by_recurrence(n, 1, 1 - x,
                       [x](double k, double p, double before) { return ((2 * k + 1 - x) * p - k * before) / (k + 1); });
}
TAEDA_HD inline double legendre_p(double x, int64_t n) {
  if (n <= 0) return n < 0 ? 0 : 1;
  if (std::abs(x) == 1) return x > 0 || n % 2 == 0 ? 1 : -1;
  return by_recurrence(n, 1, x,
                       [x](double k, double p, double before) { return ((2 * k + 1) * x * p - k * before) / (k + 1); });
}

/// A polynomial's value for operands of a line: a degree that is NaN or no number of 64 bits has no polynomial.
template <class Function>
TAEDA_HD inline double of_degree(Function function, double x, double n) {
  if (x != x || n != n) return NAN;
  if (n >= 0x1p62) return NAN;
  return function(x, n < 0 ? int64_t(n > -1 ? 0 : -1) : int64_t(n));
}

}  // namespace taeda::loops::TAEDA_ISA
