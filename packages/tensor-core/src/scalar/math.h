// Elementary functions without branches, so that loops over them vectorise; errors stay below about 2 ulp.
#pragma once
#include "scalar/base.h"

namespace taeda::loops::TAEDA_ISA {

// Polynomials are Chebyshev fits of our own. Multiply-adds are fused where `fma` is written and nowhere else, so
// results do not depend on the instruction set.

template <class T>
TAEDA_HD inline constexpr T poly(T, T c) {
  return c;
}
template <class T, class... C>
TAEDA_HD inline constexpr T poly(T x, T c, C... rest) {
  return fma(x, poly(x, T(rest)...), c);
}

/// 2^n for n + power_magic, within the normal range: the biased exponent stands in the low bits.
template <class T>
TAEDA_HD inline T power_of_two_at(T shifted) {
  return bit_cast<T>(bit_cast<Bits<T>>(shifted) << Format<T>::mantissa);
}
/// 2^n for whole n within the normal range.
template <class T>
TAEDA_HD inline T power_of_two(T n) {
  return power_of_two_at(n + Format<T>::power_magic);
}
/// p 2^n for n + two_powers_magic, in two steps, so that subnormal results and the overflow to infinity come out right:
/// the low bits are the sum of the biased exponents of two powers, one of which gets the larger half.
template <class T>
TAEDA_HD inline T times_power_of_two_at(T p, T shifted) {
  const Bits<T> both = bit_cast<Bits<T>>(shifted), half = both >> 1;
  return p * bit_cast<T>(half << Format<T>::mantissa) * bit_cast<T>((both - half) << Format<T>::mantissa);
}
/// p 2^n for whole n.
template <class T>
TAEDA_HD inline T times_power_of_two(T p, T n) {
  return times_power_of_two_at(p, n + Format<T>::two_powers_magic);
}

/// c[0] + c[1] x + ...: even and odd powers apart, as two short chains are faster than a long one.
template <int N>
TAEDA_HD inline double polynomial(const double (&c)[N], double x) {
  static_assert(N >= 2);
  constexpr int last_even = (N - 1) & ~1, last_odd = (N - 2) | 1;
  const double z = x * x;
  double even = c[last_even], odd = c[last_odd];
#pragma GCC unroll 32
  for (int k = last_even - 2; k >= 0; k -= 2) even = fma(even, z, c[k]);
#pragma GCC unroll 32
  for (int k = last_odd - 2; k >= 1; k -= 2) odd = fma(odd, z, c[k]);
  return fma(x, odd, even);
}

/// (e^r - 1 - r) / r^2 for |r| <= ln(2) / 2.
template <class T>
TAEDA_HD inline T expm1_series(T r) {
  if constexpr (is_same<T, float>) return poly(r, 0.5f, 0.1666657658f, 0.04166655411f, 0.00836324667f, 0.001392626805f);
  else
    return poly(r, 0.5, 0.16666666666666671, 0.0416666666666666698, 0.00833333333332606976, 0.00138888888888837016,
                0.000198412698750489052, 0.0000248015873257107583, 2.75572551109788893e-6, 2.75572734365704858e-7,
                2.51053372446652102e-8, 2.09147728322480897e-9);
}
/// e^r - 1 - r for |r| <= ln(2) / 2.
template <class T>
TAEDA_HD inline T expm1_tail(T r) {
  return r * r * expm1_series(r);
}
/// e^r - 1 for |r| <= ln(2) / 2.
template <class T>
TAEDA_HD inline T expm1_core(T r) {
  return fma(r * r, expm1_series(r), r);
}
/// x less n times log(2), for whole n, in two parts.
template <class T>
struct Reduced {
  T high, low;
};
template <class T>
TAEDA_HD inline Reduced<T> less_powers(T x, T n) {
  return {fma(-n, Format<T>::ln2_high, x), n * Format<T>::ln2_low};
}
/// x over log(2), rounded to a whole number, + power_magic.
template <class T>
TAEDA_HD inline T whole_powers(T x) {
  return fma(x, T(1.44269504088896340736), Format<T>::power_magic);
}

/// e^(high - low), with what the sum of 1 and `high` leaves out.
template <class T>
TAEDA_HD inline T exp_of_difference(T high, T low) {
  const T r = high - low, s = T(1) + high, left_out = high - (s - T(1));
  return s + (left_out + fma(r * r, expm1_series(r), -low));
}
/// e^(high - low) times `power` less `one`: in float64 with what the sums leave out.
template <class T>
TAEDA_HD inline T exp_less(T high, T low, T power, T one) {
  const T r = high - low;
  if constexpr (is_same<T, float>) return fma(expm1_core(r), power, power - one);
  const T tail = expm1_tail(r) + ((high - r) - low), y = r + tail, rest = (r - y) + tail;
  const T a = power - one, b = power * y, sum = a + b, back = sum - a;
  return sum + (((a - (sum - back)) + (b - back)) + power * rest);
}

template <class T>
TAEDA_HD inline T vexp(T x) {
  using F = Format<T>;
  x = x < F::exp_min ? F::exp_min : x;
  x = x > F::exp_max ? F::exp_max : x;
  const T shifted = fma(x, T(1.44269504088896340736), F::two_powers_magic), n = shifted - F::two_powers_magic;
  const Reduced<T> r = less_powers(x, n);
  return times_power_of_two_at(exp_of_difference(r.high, r.low), shifted);
}

/// e^x for -87.6 < x <= 0, of float64 numbers for -708 < x.
template <class T>
TAEDA_HD inline T vexp_small(T x) {
  using F = Format<T>;
  const T shifted = whole_powers(x), n = shifted - F::power_magic;
  const T r = fma(-n, F::ln2_low, fma(-n, F::ln2_high, x));
  return (T(1) + expm1_core(r)) * power_of_two_at(shifted);
}

/// e^x for x <= 0, of float32 numbers with nothing left below the normal range.
template <class T>
TAEDA_HD inline T vexp_down(T x) {
  if constexpr (!is_same<T, float>) return vexp(x);
  const T least = T(-87.5), result = vexp_small(x < least ? least : x);
  return x < least ? T(0) : result;
}

template <class T>
TAEDA_HD inline T vexp2(T x) {
  using F = Format<T>;
  constexpr T most = is_same<T, float> ? T(140) : T(1100), least = is_same<T, float> ? T(-160) : T(-1100);
  x = x < least ? least : x;
  x = x > most ? most : x;
  const T n = (x + F::magic) - F::magic;
  return times_power_of_two(T(1) + expm1_core((x - n) * T(0.69314718055994530942)), n);
}

/// For |x| within the exponent range; saturates at -1 and infinity.
template <class T>
TAEDA_HD inline T vexpm1(T x) {
  using F = Format<T>;
  const T low = is_same<T, float> ? T(-30) : T(-60);
  T y = x < low ? low : x;
  y = y > F::exp_max ? F::exp_max : y;
  const T n = whole_powers(y) - F::power_magic;
  // The largest power of two by half.
  const bool most = n > T(F::bias);
  const T power = power_of_two(most ? n - T(1) : n), one = most ? T(0.5) : T(1);
  const Reduced<T> r = less_powers(y, n);
  const T part = exp_less(r.high, r.low, power, one), result = most ? T(2) * part : part;
  const T bounded = n > T(F::bias + 1) ? kInfinity<T> : result;
  return x == T(0) ? x : bounded;
}

/// log(m * 2^k) as k and the two terms of log(m): what the logarithms to other bases share.
template <class T>
TAEDA_HD inline void log_parts(T x, T& k, T& f, T& correction) {
  using F = Format<T>;
  using B = Bits<T>;
  const T tiny = Format<T>::smallest;
  const bool subnormal = x < tiny;
  const T scaled = subnormal ? x * T(B(1) << F::mantissa) : x;
  const B root = bit_cast<B>(T(0.70710678118654752440));
  const B bits = bit_cast<B>(scaled);
  const B shifted = bits - root + (B(F::bias) << F::mantissa);
  const B e = shifted >> F::mantissa;
  const T base = T(B(1) << F::mantissa);
  k = bit_cast<T>(e | bit_cast<B>(base)) - (base + T(F::bias)) - (subnormal ? T(F::mantissa) : T(0));
  const T m = bit_cast<T>(bits - ((e - B(F::bias)) << F::mantissa));
  f = m - T(1);
  const T s = f / (T(2) + f), z = s * s, halved = T(0.5) * f * f;
  T r;
  if constexpr (is_same<T, float>) r = z * poly(z, 0.6666666655f, 0.4000012391f, 0.2855058704f, 0.2333681101f);
  else
    r = z * poly(z, 0.666666666666666981, 0.399999999998960705, 0.285714286275287956, 0.222222108819329271,
                 0.181829074976712178, 0.153311125879601676, 0.146239566082118787);
  correction = fma(-s, halved + r, halved);  // log(m) = f - correction
}
template <class T>
TAEDA_HD inline T log_special(T x, T result) {
  const T inf = kInfinity<T>;
  result = x == T(0) ? -inf : result;
  result = x < T(0) ? kNan<T> : result;
  return (x == inf) | (x != x) ? x : result;
}
template <class T>
TAEDA_HD inline T vlog(T x) {
  using F = Format<T>;
  T k, f, c;
  log_parts(x, k, f, c);
  return log_special(x, fma(k, F::ln2_high, f - fma(-k, F::ln2_low, c)));
}
TAEDA_HD inline double vlog2(double x) {
  double k, f, c;
  log_parts(x, k, f, c);
  // log2(e) in two parts keeps exact powers exact and the rest accurate.
  const double high = 0x1.715476p+0, low = 0x1.4ae0bf85ddf44p-26;
  const double y = f - c;
  const double head = bit_cast<double>(bit_cast<uint64_t>(y) & 0xfffffffff8000000ull);
  const double tail = (f - head) - c;
  return log_special(x, k + fma(head, high, fma(tail, high, y * low)));
}
TAEDA_HD inline double vlog10(double x) { return vlog(x) * 0.43429448190325182765; }
TAEDA_HD inline double vlog1p(double x) {
  const double u = 1.0 + x;
  const double exact = x - (u - 1.0);
  const double result = vlog(u) + exact / u;
  const double at_pole = x == -1.0 ? -kInfinity<double> : result;
  return (x == 0.0) | (u == kInfinity<double>) ? x : at_pole;
}

/// log(1 + x) in the type of x, for x from -1 on: the error of 1 + x cancels between numerator and denominator (Kahan).
template <class T>
TAEDA_HD inline T vlog1p_of_small(T x) {
  const T u = T(1) + x;
  return u == T(1) ? x : vlog(u) * x / (u - T(1));
}

/// Beyond this the reduction below loses accuracy and the caller falls back on libm.
inline constexpr double trig_limit = 1e6;
struct Quadrant {
  double r;
  uint64_t q;
};
TAEDA_HD inline Quadrant quarter_turns(double x) {
  const double shifted = fma(x, 0.63661977236758134308, Format<double>::magic);
  const double n = shifted - Format<double>::magic;
  const double r = fma(-n, 0x1.3198a2e037073p-69, fma(-n, 0x1.0b4611a6p-34, fma(-n, 0x1.921fb544p+0, x)));
  return {r, bit_cast<uint64_t>(shifted)};
}
TAEDA_HD inline double sin_core(double r) {
  const double z = r * r;
  return fma(r * z,
             poly(z, -0.166666666666666646, 0.0083333333333309461, -0.0001984126983675497, 2.75573161006830291e-6,
                  -2.50511314554279474e-8, 1.59181012302741203e-10),
             r);
}
TAEDA_HD inline double cos_core(double r) {
  const double z = r * r, halved = 0.5 * z, w = 1.0 - halved;
  return w + fma(z * z,
                 poly(z, 0.0416666666666666654, -0.00138888888888873957, 0.0000248015872987634332,
                      -2.75573172705603241e-7, 2.08761460246897466e-9, -1.13826148685563246e-11),
                 (1.0 - w) - halved);
}
TAEDA_HD inline double flip_sign(double v, uint64_t when) {
  return bit_cast<double>(bit_cast<uint64_t>(v) ^ (when << 63));
}
TAEDA_HD inline double vsin(double x) {
  const Quadrant a = quarter_turns(x);
  const double s = sin_core(a.r), c = cos_core(a.r);
  const double y = flip_sign(a.q & 1 ? c : s, (a.q >> 1) & 1);
  return x == 0.0 ? x : y;
}
TAEDA_HD inline double vcos(double x) {
  const Quadrant a = quarter_turns(x);
  const double s = sin_core(a.r), c = cos_core(a.r);
  return flip_sign(a.q & 1 ? s : c, ((a.q + 1) >> 1) & 1);
}
TAEDA_HD inline double vtan(double x) {
  const Quadrant a = quarter_turns(x);
  const double s = sin_core(a.r), c = cos_core(a.r);
  const double y = a.q & 1 ? -c / s : s / c;
  return x == 0.0 ? x : y;
}

TAEDA_HD inline double vatan(double x) {
  const double a = magnitude(x);
  // atan(a) = pi/2 - atan(1/a), then = pi/4 + atan((a - 1) / (a + 1)): the series runs on |t| < 0.4143 only.
  const bool steep = a > 1.0;
  const double b = steep ? 1.0 / a : a;
  const bool middle = b > 0.41421356237309504880;
  const double above = middle ? b - 1.0 : b, below = middle ? b + 1.0 : 1.0, t = above / below, z = t * t;
  // What the quotient leaves out; the upper halves' product is exact.
  const double th = bit_cast<double>(bit_cast<uint64_t>(t) & 0xfffffffff8000000ull), tl = t - th;
  const double bh = bit_cast<double>(bit_cast<uint64_t>(below) & 0xfffffffff8000000ull), bl = below - bh;
  const double above_rest = middle ? (b - above) - 1.0 : 0.0, below_rest = middle ? b - (below - 1.0) : 0.0;
  const double rest = ((((above - th * bh) - th * bl) - tl * bh) - tl * bl + (above_rest - t * below_rest)) / below +
                      3.061616997868383e-17 * middle;
  const double series =
      t * z *
      poly(z, -0.333333333333333302, 0.199999999999955194, -0.14285714284666275, 0.111111110152348118,
           -0.0909090457724829631, 0.0769218317048484969, -0.0666451116085916503, 0.058581464238093544,
           -0.0508543671326771413, 0.0392312820237433064, -0.019176426315546867);
  const double inner = (middle ? 0.78539816339744830962 : 0.0) + (t + (series + rest));
  const double outer = steep ? 1.57079632679489661923 - (inner - 6.123233995736766e-17) : inner;
  return x != x ? x : with_sign_of(outer, x);
}
/// asin(a), or, for `large` a beyond a half, half of what is missing to pi/2, as asin(a) = pi/2 - 2 asin(sqrt((1 - a) /
/// 2)): of its root s the upper half, what is missing from that, and s^3 times a series.
struct HalfAngle {
  double upper, rest, tail;
};
TAEDA_HD inline HalfAngle half_angle_parts(double a, bool large) {
  const double z = large ? (1.0 - a) * 0.5 : a * a, root = sqrt(z), s = large ? root : a;
  const double upper = large ? bit_cast<double>(bit_cast<uint64_t>(s) & 0xffffffff00000000ull) : a;
  const double rest = large & (z != 0.0) ? (z - upper * upper) / (s + upper) : 0.0;
  return {upper, rest,
          s * z *
              poly(z, 0.16666666666666669, 0.07499999999998433, 0.04464285714635543, 0.030381944138531247,
                   0.02237217294214989, 0.017352392720869973, 0.013971212973552933, 0.011479177415184906,
                   0.01032281435018578, 0.005457506718640358, 0.01740087944269402, -0.014851887071247204,
                   0.028757851367421566)};
}
TAEDA_HD inline double vasin(double x) {
  const double a = magnitude(x);
  const bool large = a > 0.5;
  const HalfAngle h = half_angle_parts(a, large);
  const double missing = 2.0 * h.tail - (6.123233995736766e-17 - 2.0 * h.rest);
  const double beyond = 0.78539816339744830962 - (missing - (0.78539816339744830962 - 2.0 * h.upper));
  return x != x ? x : with_sign_of(large ? beyond : a + h.tail, x);
}
TAEDA_HD inline double vacos(double x) {
  const double a = magnitude(x);
  const bool large = a > 0.5;
  const HalfAngle h = half_angle_parts(a, large);
  const double small = 2.0 * (h.upper + (h.tail + h.rest));
  const double opposite = 3.14159265358979323846 - 2.0 * (h.upper + (h.tail + h.rest - 6.123233995736766e-17));
  const double middle = 1.57079632679489661923 - (x - (6.123233995736766e-17 - with_sign_of(h.tail, x)));
  return large ? (x > 0.0 ? small : opposite) : middle;
}
TAEDA_HD inline double vatan2(double y, double x) {
  const double inf = kInfinity<double>, a = magnitude(y), b = magnitude(x);
  const double slope = a == 0.0 ? 0.0 : (a == inf) & (b == inf) ? 1.0 : a / b;
  const double first = vatan(slope);  // of the first quadrant
  const bool left = bit_cast<uint64_t>(x) >> 63;
  const double angle = left ? 3.14159265358979323846 - (first - 1.2246467991473532e-16) : first;
  return (x != x) | (y != y) ? x + y : with_sign_of(angle, y);
}
TAEDA_HD inline double vatanh(double x) {
  const double a = magnitude(x);
  const double y = 0.5 * vlog1p(2.0 * a / (1.0 - a));
  return (x != x) | (x == 0.0) ? x : with_sign_of(a > 1.0 ? kNan<double> : y, x);
}
/// Beyond `far` the square of x would overflow and 1 no longer counts: log(2 x), without a branch.
inline constexpr double inverse_far = 1e150;
TAEDA_HD inline double log_of_double(double x, double near) {
  const bool beyond = x > inverse_far;
  return vlog1p(beyond ? x : near) + (beyond ? 0.69314718055994530942 : 0.0);
}
TAEDA_HD inline double vasinh(double x) {
  const double a = magnitude(x), b = a > inverse_far ? inverse_far : a;
  const double y = log_of_double(a, b + b * b / (1.0 + sqrt(b * b + 1.0)));
  return (x != x) | (x == 0.0) ? x : with_sign_of(y, x);
}
TAEDA_HD inline double vacosh(double x) {
  const double t = (x > inverse_far ? inverse_far : x) - 1.0;
  const double y = log_of_double(x, t + sqrt(t * (t + 2.0)));
  return x < 1.0 ? kNan<double> : y;
}
/// From e^|x| - 1, which is accurate everywhere.
TAEDA_HD inline double vsinh(double x) {
  const double a = magnitude(x);
  const double e = vexpm1(a > 700.0 ? 700.0 : a), large = vexp(a * 0.5);
  const double y = a > 700.0 ? 0.5 * large * large : 0.5 * (e + e / (e + 1.0));
  return x != x ? x : with_sign_of(y, x);
}
TAEDA_HD inline double vcosh(double x) {
  const double a = magnitude(x);
  const bool large = a > 700.0;
  const double e = vexp(large ? a * 0.5 : a);
  return large ? 0.5 * e * e : 0.5 * (e + 1.0 / e);
}

template <class T>
TAEDA_HD inline T vtanh(T x) {
  using F = Format<T>;
  const T a = magnitude(x);
  const T limit = is_same<T, float> ? T(10) : T(22);
  // e^(2a) - 1, as vexpm1 gives it, but for numbers that need no bounds and whose power of two is in range.
  const T x2 = T(2) * (a > limit ? limit : a), shifted = whole_powers(x2);
  const Reduced<T> r = less_powers(x2, shifted - F::power_magic);
  const T e = exp_less(r.high, r.low, power_of_two_at(shifted), T(1));
  const T sum = e + T(2);
  T y = e / sum;
  if constexpr (is_same<T, double>) y -= y * ((e > T(2) ? T(2) - (sum - e) : e - (sum - T(2))) * (T(0.5) - T(0.5) * y));
  return (x == T(0)) | (x != x) ? x : with_sign_of(y, x);
}
template <class T>
TAEDA_HD inline T vsigmoid(T x) {
  using F = Format<T>;
  if constexpr (is_same<T, float>) {
    // e^-x from e^-80 on, where nothing is left of it beside 1: half of it is a normal number.
    T y = -x > T(88.8) ? T(88.8) : -x;
    y = y < T(-80) ? T(-80) : y;
    const T n = whole_powers(y) - F::power_magic;
    const Reduced<T> r = less_powers(y, n);
    return T(1) / fma(exp_of_difference(r.high, r.low) * power_of_two(n - T(1)), T(2), T(1));
  }
  // p / (p + e^r) with e^-x = e^r / p, where p is a power of two: from x = 40 on nothing is left beside 1.
  T y = -x > T(746) ? T(746) : -x;
  y = y < T(-40) ? T(-40) : y;
  const T n = whole_powers(y) - F::power_magic, power = times_power_of_two(T(1), -n);
  const Reduced<T> r = less_powers(y, n);
  return power / (power + exp_of_difference(r.high, r.low));
}

template <class T>
TAEDA_HD inline T verf(T x) {
  const T a = magnitude(x);
  const T limit = is_same<T, float> ? T(4) : T(6);
  const T z = a > limit ? limit : a;
  const T w = a < T(1) ? a * a : T(1);
  const T t = (z - T(2)) / (z + T(2));
  T near, far;
  if constexpr (is_same<T, float>) {
    near = poly(w, 1.128379166f, -0.3761262667f, 0.1128359472f, -0.02685421201f, 0.005189087423f, -0.0008016864287f,
                7.875875063e-5f);
    far = poly(t, 0.2553956763f, -0.4271858476f, 0.2416582111f, -0.07897852327f, 0.003732141351f, 0.006994855414f,
               -0.0008365899736f, -0.0009441596341f);
  } else {
    near = poly(w, 1.12837916709551257, -0.376126389031837481, 0.112837916709548787, -0.0268661706450767932,
                0.00522397762481801447, -0.000854832698083378991, 0.000120553311116427109, -0.0000149255952668311816,
                1.6461000484121368e-6, -1.6350312701054695e-7, 1.46597752740474358e-8, -1.13728488567916737e-9,
                5.9571761477489114e-11);
    far = poly(t, 0.255395676310505716, -0.427185847413958492, 0.241658194242487627, -0.0789785810157126937,
               0.00373289240165644815, 0.00699746173920057474, -0.000847143122941533342, -0.000981977111474071531,
               0.0000435526535981788277, 0.000174364772572567369, 0.0000275603527566783132, -0.0000276407278219128536,
               -0.0000141663390691171082, 1.85942738742940198e-6, 4.14630218326848772e-6, -2.22812957637235017e-7);
  }
  const T outer = with_sign_of(fma(-vexp_small(-z * z), far, T(1)), x);
  return x != x ? x : a < T(1) ? x * near : outer;
}

/// The standard normal distribution: the probability of values below x, and the density there.
template <class T>
struct Normal {
  T below, density;
};
TAEDA_HD inline Normal<double> normal(double x) {
  return {0.5 * (1.0 + verf(x * 0.70710678118654752440)), 0.39894228040143267794 * vexp(-0.5 * x * x)};
}
/// One exponential serves both, and the left tail keeps its relative accuracy.
TAEDA_HD inline Normal<float> normal(float x) {
  const float a = magnitude(x), z = a * 0.70710678f;
  const bool beyond = a > 12.5f;  // nothing is left in float32
  const float bounded = beyond ? 12.5f : a, e = vexp_small(-0.5f * bounded * bounded);
  const float kept = beyond ? 0.f : e, y = z > 7.f ? 7.f : z, t = (y - 2.5f) / (y + 2.5f);
  // exp(y^2) erfc(y) for 0 <= y <= 7.
  const float tail = poly(t, 0.2108063698f, -0.3717367351f, 0.2517125905f, -0.1250329465f, 0.03993234783f,
                          -0.003991378006f, -0.002695195843f, 0.0008339413325f, 0.0003167639079f);
  const float outer = 0.5f * kept * tail;
  const float below = x < 0.f ? outer : 1.f - outer;
  return {x != x ? x : below, 0.39894228f * kept};
}

/// Quotients below this are rounded to whole numbers that are wrong by one at most.
inline constexpr double exact_quotient_limit = 0x1p51;
struct Division {
  double quotient, rest;  // towards zero; the rest has the dividend's sign
};
/// Of numbers whose quotient is below the bound above: what is left of a whole number of divisors is exact.
TAEDA_HD inline Division divide_exactly(double a, double b) {
  const double magic = Format<double>::magic, x = magnitude(a), y = magnitude(b);
  double q = ((x / y + magic) - magic);
  double r = fma(-q, y, x);
  // The rounded quotient may be one too many.
  const bool over = r < 0.0;
  r = over ? r + y : r;
  q = over ? q - 1.0 : q;
  const bool whole = y == kInfinity<double>;  // q * y would be 0 * infinity
  r = whole ? x : r;
  q = whole ? 0.0 : q;
  return {q, with_sign_of(r, a)};
}
TAEDA_HD inline double vfmod(double a, double b) { return divide_exactly(a, b).rest; }
TAEDA_HD inline double vremainder(double a, double b) {
  const double r = divide_exactly(a, b).rest;
  return (r != 0.0) & ((r < 0.0) != (b < 0.0)) ? r + b : r;
}
TAEDA_HD inline double vfloor_divide(double a, double b) {
  const Division d = divide_exactly(a, b);
  const bool opposite = (a < 0.0) != (b < 0.0);
  const double q = opposite ? -(d.rest != 0.0 ? d.quotient + 1.0 : d.quotient) : d.quotient;
  const double sign = bit_cast<double>(bit_cast<uint64_t>(a) ^ bit_cast<uint64_t>(b));
  const double signed_zero = with_sign_of(0.0, sign);
  return d.rest != d.rest ? d.rest : q == 0.0 ? signed_zero : q;
}

}  // namespace taeda::loops::TAEDA_ISA
