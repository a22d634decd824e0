/* Mathematical functions that C lacks. */
#pragma once
#include <math.h>
#include <stdint.h>

static const double kPi = 3.14159265358979323846;

/* exp(-|x|) times the modified Bessel function of the first kind: its power series, and far out the asymptotic one. */
static inline double bessel_scaled(int order, double x) {
  const double y = fabs(x);
  double term = 1, sum = 1;
  if (y < 30) {
    term = sum = order ? y / 2 : 1;
    for (int k = 1; k < 200; ++k) sum += term *= y * y / 4 / k / (k + order);
    sum *= exp(-y);
  } else {
    for (int k = 1; k < 25; ++k) sum += term *= -(4.0 * order * order - (2.0 * k - 1) * (2.0 * k - 1)) / (8.0 * k * y);
    sum /= sqrt(2 * kPi * y);
  }
  return isnan(x) ? x : order && x < 0 ? -sum : sum;
}
static inline double digamma(double x) {
  if (x == 0) return copysign(INFINITY, -x);
  if (x < 0) return x == floor(x) ? NAN : digamma(1 - x) - kPi / tan(kPi * x);
  double sum = 0;
  for (; x < 12; ++x) sum -= 1 / x;
  const double t = 1 / (x * x);
  return sum + log(x) - 0.5 / x -
         t * (1 / 12.0 - t * (1 / 120.0 - t * (1 / 252.0 - t * (1 / 240.0 - t * (1 / 132.0 - t * 691 / 32760.0)))));
}
/* A first guess, made exact by Halley's steps on the side where erf or erfc is exact. */
static inline double erfinv(double y) {
  if (!(fabs(y) < 1)) return fabs(y) == 1 ? copysign(INFINITY, y) : NAN;
  const double w = log1p(-y * y), t = 4.33075 + w / 2;
  double x = sqrt(sqrt(t * t - w / 0.147) - t);
  for (int i = 0; i < 4; ++i) {
    const double off = (fabs(y) < 0.5 ? erf(x) - fabs(y) : 1 - fabs(y) - erfc(x)) / (2 / sqrt(kPi) * exp(-x * x));
    x -= off / (1 + x * off);
  }
  return copysign(x, y);
}
static inline double python_mod(double a, double b) {
  const double r = fmod(a, b);
  return r == 0 ? copysign(0, b) : (r < 0) != (b < 0) ? r + b : r;
}
static inline double floor_div(double a, double b) {
  const double whole = (a - python_mod(a, b)) / b;
  return b == 0 ? a / b : whole == 0 ? copysign(0, a / b) : floor(whole + 0.5);
}
static inline int64_t floor_div_int(int64_t a, int64_t b) { return b == -1 ? -a : a / b - (a % b != 0 && (a < 0) != (b < 0)); }
static inline double rounded(double x, double decimals) {
  const double scale = pow(10, fabs(decimals));
  return decimals == 0 ? nearbyint(x) : decimals > 0 ? nearbyint(x * scale) / scale : nearbyint(x / scale) * scale;
}
static inline int64_t power(int64_t a, int64_t b) {
  if (b < 0) return a == 1 ? 1 : a == -1 ? (b & 1 ? a : 1) : 0;
  int64_t out = 1;
  for (; b; b >>= 1, a *= a)
    if (b & 1) out *= a;
  return out;
}
static inline int64_t gcd(int64_t a, int64_t b) { return b == 0 ? (a < 0 ? -a : a) : gcd(b, b == -1 ? 0 : a % b); }
static inline double log_add(double a, double b) {
  return isinf(a) || isinf(b) ? fmax(a, b) : fmax(a, b) + log1p(exp(-fabs(a - b)));
}
