// Complex numbers, and their elementary functions without branches.
//
// The functions compute in float64 for complex64 too, from the real ones. Each is right in a region that its `*_plain`
// tells; beyond it (infinities, NaN, zeros in some, huge angles) the values are those of C99's Annex G, from the host's
// library: see exact.h. Products are the textbook's, as in NumPy: recovering infinities would not vectorise.
#pragma once
#include "scalar/inverse.h"
#include "scalar/math.h"

namespace taeda::loops::TAEDA_ISA {

template <class R>
struct Complex {
  using Real = R;
  R re, im;
  Complex() = default;
  TAEDA_HD constexpr Complex(R real, R imag = R(0)) : re(real), im(imag) {}
};
template <class T> inline constexpr bool is_complex_number = false;
template <class R> inline constexpr bool is_complex_number<Complex<R>> = true;

template <class R>
TAEDA_HD inline Complex<R> operator-(Complex<R> a) {
  return {-a.re, -a.im};
}
template <class R>
TAEDA_HD inline Complex<R> operator+(Complex<R> a, Complex<R> b) {
  return {a.re + b.re, a.im + b.im};
}
template <class R>
TAEDA_HD inline Complex<R> operator-(Complex<R> a, Complex<R> b) {
  return {a.re - b.re, a.im - b.im};
}
/// The sum with a negated product is the difference, to the bit; of the difference GCC makes fused instructions in
/// whole vectors alone, against -ffp-contract=off, and the last digit would depend on the place of an element.
template <class R>
TAEDA_HD inline Complex<R> operator*(Complex<R> a, Complex<R> b) {
  return {a.re * b.re + (-a.im) * b.im, a.re * b.im + a.im * b.re};
}
template <class R>
TAEDA_HD inline Complex<R> operator*(R a, Complex<R> b) {
  return {a * b.re, a * b.im};
}
template <class R>
TAEDA_HD inline bool operator==(Complex<R> a, Complex<R> b) {
  return (a.re == b.re) & (a.im == b.im);
}
template <class R>
TAEDA_HD inline bool operator!=(Complex<R> a, Complex<R> b) {
  return (a.re != b.re) | (a.im != b.im);
}

using Wide = Complex<double>;
template <class R>
TAEDA_HD inline Wide wide(Complex<R> z) {
  return {double(z.re), double(z.im)};
}
template <class R>
TAEDA_HD inline Complex<R> narrow(Wide z) {
  return {R(z.re), R(z.im)};
}
TAEDA_HD inline bool within(double x, double bound) { return magnitude(x) <= bound; }

/// Beyond this the exponential may overflow or lose digits in subnormal numbers.
inline constexpr double exponent_limit = 700.0;
/// Squares of what lies between have all their digits.
inline constexpr double square_low = 0x1p-459, square_high = 0x1p511;

struct SineCosine {
  double sine, cosine;
};
TAEDA_HD inline SineCosine sine_cosine(double x) {
  const Quadrant a = quarter_turns(x);
  const double s = sin_core(a.r), c = cos_core(a.r);
  const double sine = flip_sign(a.q & 1 ? c : s, (a.q >> 1) & 1);
  return {x == 0.0 ? x : sine, flip_sign(a.q & 1 ? s : c, ((a.q + 1) >> 1) & 1)};
}
/// The hyperbolic pair for |x| <= 700.
TAEDA_HD inline SineCosine hyperbolic(double x) {
  const double e = vexpm1(magnitude(x)), inverse = 1.0 / (e + 1.0);
  return {with_sign_of(0.5 * (e + e * inverse), x), 0.5 * ((e + 1.0) + inverse)};
}

template <class R>
TAEDA_HD inline bool exp_plain(Complex<R> z) {
  return within(z.re, exponent_limit) & within(z.im, trig_limit);
}
TAEDA_HD inline Wide wide_exp(Wide z) {
  const double e = vexp(z.re);
  const SineCosine t = sine_cosine(z.im);
  return {e * t.cosine, e * t.sine};
}

template <class R>
TAEDA_HD inline bool sin_plain(Complex<R> z) {
  return within(z.re, trig_limit) & within(z.im, exponent_limit);
}
TAEDA_HD inline Wide wide_sin(Wide z) {
  const SineCosine t = sine_cosine(z.re), h = hyperbolic(z.im);
  return {t.sine * h.cosine, t.cosine * h.sine};
}
TAEDA_HD inline Wide wide_cos(Wide z) {
  const SineCosine t = sine_cosine(z.re), h = hyperbolic(z.im);
  return {t.cosine * h.cosine, -(t.sine * h.sine)};
}

template <class R>
TAEDA_HD inline bool tanh_plain(Complex<R> z) {
  return within(z.re, 20.0) & within(z.im, trig_limit);
}
TAEDA_HD inline Wide wide_tanh(Wide z) {
  const SineCosine t = sine_cosine(z.im), h = hyperbolic(z.re);
  const double scale = 1.0 / (h.sine * h.sine + t.cosine * t.cosine);
  return {h.sine * h.cosine * scale, t.sine * t.cosine * scale};
}

/// sin(z) = -i sinh(iz), and so on.
TAEDA_HD inline Wide turned(Wide z) { return {-z.im, z.re}; }
TAEDA_HD inline Wide turned_back(Wide z) { return {z.im, -z.re}; }

template <class R>
TAEDA_HD inline bool moderate(Complex<R> z) {
  const double a = magnitude(double(z.re)), b = magnitude(double(z.im)), large = a > b ? a : b;
  return (large >= square_low) & (large <= square_high) & (a == a) & (b == b);
}
/// The magnitude of a moderate number, right to an ulp: the square root of the sum of squares, then its error taken
/// off.
TAEDA_HD inline double wide_abs(Wide z) {
  const double a = magnitude(z.re), b = magnitude(z.im), x = a > b ? a : b, y = a > b ? b : a;
  const double h = sqrt(x * x + y * y);
  const bool even = h <= 2.0 * y;
  const double d = even ? h - y : h - x;
  const double first = even ? x * (2.0 * d - x) : 2.0 * d * (x - 2.0 * y);
  const double second = even ? (d - 2.0 * (x - y)) * d : (4.0 * d - y) * y + d * d;
  return y <= x * 0x1p-54 ? x + y : h - (first + second) / (2.0 * h);
}
TAEDA_HD inline Wide wide_sqrt(Wide z) {
  const double t = sqrt(0.5 * (wide_abs(z) + magnitude(z.re))), other = z.im / (2.0 * t);
  return {z.re < 0.0 ? magnitude(other) : t, z.re < 0.0 ? with_sign_of(t, z.im) : other};
}

/// Near the unit circle only complex64 keeps its digits in float64.
template <class R>
TAEDA_HD inline bool log_plain(Complex<R> z) {
  if constexpr (is_same<R, float>) return moderate(z);
  const double square = z.re * z.re + z.im * z.im;
  return moderate(z) & ((square < 0.75) | (square > 1.25));
}
TAEDA_HD inline double log_of_magnitude(Wide z) {
  const double a = magnitude(z.re), b = magnitude(z.im), x = a > b ? a : b, y = a > b ? b : a;
  const double square = x * x + y * y;
  const bool near = (square > 0.5) & (square < 2.0);
  // Of float32 numbers these products are exact.
  const double above = (x - 1.0) * (x + 1.0) + y * y;
  const double u = near ? above : 0.0;
  return 0.5 * (near ? vlog1p(u) : vlog(square));
}
TAEDA_HD inline Wide wide_log(Wide z) { return {log_of_magnitude(z), vatan2(z.im, z.re)}; }

template <class R>
TAEDA_HD inline bool sigmoid_plain(Complex<R> z) {
  return within(z.re, 300.0) & within(z.im, trig_limit);
}
TAEDA_HD inline Wide wide_sigmoid(Wide z) {
  const Wide e = wide_exp(-z), d{1.0 + e.re, e.im};
  const double scale = 1.0 / (d.re * d.re + d.im * d.im);
  return {d.re * scale, -d.im * scale};
}

template <class R>
TAEDA_HD inline bool finite_parts(Complex<R> z) {
  return (magnitude(z.re) < kInfinity<R>)&(magnitude(z.im) < kInfinity<R>);
}
/// complex64 is divided in float64, where nothing overflows.
TAEDA_HD inline bool quotient_plain(Complex<float> a, Complex<float> b) {
  return finite_parts(a) & finite_parts(b) & (b != Complex<float>(0.f));
}
TAEDA_HD inline Complex<float> quotient(Complex<float> a_, Complex<float> b_) {
  const Wide a = wide(a_), b = wide(b_);
  const double scale = b.re * b.re + b.im * b.im;
  return {float((a.re * b.re + a.im * b.im) / scale), float((a.im * b.re + (-a.re) * b.im) / scale)};
}
/// Smith's method: by the ratio of the divisor's parts.
TAEDA_HD inline bool quotient_plain(Wide a, Wide b) {
  constexpr double low = 0x1p-400, high = 0x1p400;
  const double x = magnitude(b.re), y = magnitude(b.im), large = x > y ? x : y, small = x > y ? y : x;
  const double p = magnitude(a.re), q = magnitude(a.im);
  return (large >= low) & (large <= high) & ((small >= low) | (small == 0.0)) & (p <= high) & (q <= high) &
         ((p >= low) | (p == 0.0)) & ((q >= low) | (q == 0.0));
}
TAEDA_HD inline Wide quotient(Wide a, Wide b) {
  const bool steep = magnitude(b.re) < magnitude(b.im);
  const double large = steep ? b.im : b.re, small = steep ? b.re : b.im, ratio = small / large;
  const double scale = small * ratio + large;
  // Sums alone, as in products.
  const double x = steep ? a.re * ratio + a.im : a.im * ratio + a.re;
  const double y = steep ? a.im * ratio + (-a.re) : (-a.re) * ratio + a.im;
  return {x / scale, y / scale};
}

}  // namespace taeda::loops::TAEDA_ISA
