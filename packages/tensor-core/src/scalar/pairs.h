// Pairs of numbers: results right to little more than half a unit in the last place, and differences that lose nothing.
//
// Sums and products with what their rounding leaves out: Knuth, The Art of Computer Programming, volume 2, 4.2.2;
// Dekker, "A floating-point technique for extending the available precision", 1971.
#pragma once
#include "scalar/math.h"

namespace taeda::loops::TAEDA_ISA {

/// An unevaluated sum of two numbers, the second small beside the first.
struct Pair {
  double high, low;
};
/// a * b with what its rounding leaves out.
TAEDA_HD inline Pair exact_product(double a, double b) {
  const double p = a * b;
  return {p, fma(a, b, -p)};
}
/// a + b with what its rounding leaves out.
TAEDA_HD inline Pair exact_sum(double a, double b) {
  const double s = a + b, t = s - a;
  return {s, (a - (s - t)) + (b - t)};
}
/// The same where b is not the larger one.
TAEDA_HD inline Pair ordered_sum(double a, double b) {
  const double s = a + b;
  return {s, (a - s) + b};
}
TAEDA_HD inline double rounded(Pair a) { return a.high + a.low; }
TAEDA_HD inline Pair operator-(Pair a) { return {-a.high, -a.low}; }
TAEDA_HD inline Pair operator+(Pair a, Pair b) {
  const Pair s = exact_sum(a.high, b.high), t = exact_sum(a.low, b.low);
  const Pair u = ordered_sum(s.high, s.low + t.high);
  return ordered_sum(u.high, u.low + t.low);
}
TAEDA_HD inline Pair operator+(Pair a, double b) {
  const Pair s = exact_sum(a.high, b);
  return ordered_sum(s.high, s.low + a.low);
}
TAEDA_HD inline Pair operator-(Pair a, Pair b) { return a + -b; }
TAEDA_HD inline Pair operator*(Pair a, Pair b) {
  const Pair p = exact_product(a.high, b.high);
  return ordered_sum(p.high, fma(a.high, b.low, fma(a.low, b.high, p.low)));
}
TAEDA_HD inline Pair operator*(Pair a, double b) {
  const Pair p = exact_product(a.high, b);
  return ordered_sum(p.high, fma(a.low, b, p.low));
}
TAEDA_HD inline Pair operator/(Pair a, Pair b) {
  const double q = a.high / b.high;
  const Pair rest = a - b * q;
  return ordered_sum(q, rounded(rest) / b.high);
}
TAEDA_HD inline Pair root_of(Pair a) {
  const double root = sqrt(a.high);
  return ordered_sum(root, rounded(a - exact_product(root, root)) / (2.0 * root));
}
/// a times a power of two.
TAEDA_HD inline Pair scaled(Pair a, double power) { return {a.high * power, a.low * power}; }

/// tan(x) of a float64 number: sine and cosine of the reduced angle and their quotient with what they leave out.
TAEDA_HD inline double tan_precise(double x) {
  const double magic = Format<double>::magic, shifted = fma(x, 0.63661977236758134308, magic), n = shifted - magic;
  const Pair first = exact_sum(fma(-n, 0x1.921fb544p+0, x), -n * 0x1.0b4611a6p-34);
  const Pair r = exact_sum(first.high, fma(-n, 0x1.3198a2e037073p-69, first.low));
  const double z = r.high * r.high, h = 0.5 * z, w = 1.0 - h;
  const double series = poly(z, -0.166666666666666646, 0.0083333333333309461, -0.0001984126983675497,
                             2.75573161006830291e-6, -2.50511314554279474e-8, 1.59181012302741203e-10);
  const double coseries = poly(z, 0.0416666666666666654, -0.00138888888888873957, 0.0000248015872987634332,
                               -2.75573172705603241e-7, 2.08761460246897466e-9, -1.13826148685563246e-11);
  const Pair s = ordered_sum(r.high, fma(r.high * z, series, r.low * w));
  const Pair c = ordered_sum(w, ((1.0 - w) - h) + fma(z * z, coseries, -r.high * r.low));
  const bool turned = bit_cast<uint64_t>(shifted) & 1;
  const Pair above = turned ? -c : s, below = turned ? s : c;
  const double q = above.high / below.high;
  const Pair back = exact_product(q, below.high);
  const double y = q + ((((above.high - back.high) - back.low) + above.low) - q * below.low) / below.high;
  return x == 0.0 ? x : y;
}

/// a = 2^k m with m in [sqrt(1/2), sqrt(2)), and half of log(m), right to about 2^-66 of its value.
struct HalfLogarithm {
  double k;
  Pair half;
};
TAEDA_HD inline HalfLogarithm half_logarithm(double a) {
  constexpr uint64_t root = 0x3fe6a09e667f3bcdull, one = 0x3ff0000000000000ull;
  const bool subnormal = a < Format<double>::smallest;
  const uint64_t shifted = bit_cast<uint64_t>(subnormal ? a * 0x1p54 : a) + (one - root);
  const double bias = subnormal ? 4503599627370496.0 + 1023.0 + 54.0 : 4503599627370496.0 + 1023.0;
  const double k = bit_cast<double>((shifted >> 52) | 0x4330000000000000ull) - bias;
  const double m = bit_cast<double>((shifted & 0xfffffffffffffull) + root);
  // m = (1 + s) / (1 - s), and log(m) = 2 s (1 + s^2 / 3 + s^4 / 5 + ...)
  const double f = m - 1.0, d = m + 1.0, d_rest = m - (d - 1.0), s = f / d;
  const Pair back = exact_product(s, d);
  const double s_rest = (((f - back.high) - back.low) - s * d_rest) / d;
  const Pair z = exact_product(s, s), third = exact_product(z.high, 1.0 / 3);
  const double z_rest = z.low + 2.0 * s * s_rest;
  const double tail = z.high * z.high *
                      poly(z.high, 0.2, 0.1428571428571469, 0.11111111110823255, 0.090909091687316, 0.0769229737307108,
                           0.06667408120497743, 0.058529660841335915, 0.05863156873778479);
  const double w = third.high + tail;
  const double w_rest = ((third.high - w) + tail) + (third.low + (z.high * 1.850371707708594e-17 + z_rest * (1.0 / 3)));
  const Pair more = exact_product(s, w);
  const double y = s + more.high;
  return {k, {y, ((s - y) + more.high) + (more.low + (s * w_rest + (s_rest + s_rest * w)))}};
}
/// log2(a) of a finite a > 0.
TAEDA_HD inline Pair log2_pair(double a) {
  const HalfLogarithm log = half_logarithm(a);
  const Pair l = exact_product(log.half.high, 2.88539008177792681472);
  const double high = log.k + l.high;
  return {high, ((log.k - high) + l.high) +
                    (l.low + (log.half.high * 4.0710547481862066222e-17 + log.half.low * 2.88539008177792681472))};
}
/// log(a) of a finite a > 0: the product of k and the upper part of log(2) is exact.
TAEDA_HD inline Pair log_pair(Pair a) {
  const HalfLogarithm log = half_logarithm(a.high);
  const Pair sum = exact_sum(log.k * Format<double>::ln2_high, 2.0 * log.half.high);
  return ordered_sum(sum.high, sum.low + (log.k * Format<double>::ln2_low + 2.0 * log.half.low) + a.low / a.high);
}

/// exp(x) over 2^exponent, right to about 2^-66: by 32nds of log(2), whose powers are a table.
struct Exponential {
  Pair fraction;
  double exponent;
};
TAEDA_TABLE Pair kRootsOfTwo[32] = {{1.0, 0.0},
                                    {1.0218971486541166, 5.109225028973444e-17},
                                    {1.0442737824274138, 8.551889705537965e-17},
                                    {1.0671404006768237, -7.899853966841582e-17},
                                    {1.0905077326652577, -3.046782079812471e-17},
                                    {1.1143867425958924, 1.0410278456845571e-16},
                                    {1.1387886347566916, 8.912812676025408e-17},
                                    {1.1637248587775775, 3.8292048369240935e-17},
                                    {1.189207115002721, 3.982015231465646e-17},
                                    {1.215247359980469, -7.712630692681488e-17},
                                    {1.241857812073484, 4.658027591836937e-17},
                                    {1.2690509571917332, 2.667932131342186e-18},
                                    {1.2968395546510096, 2.5382502794888315e-17},
                                    {1.3252366431597413, -2.8587312100388614e-17},
                                    {1.3542555469368927, 7.70094837980299e-17},
                                    {1.383909881963832, -6.770511658794786e-17},
                                    {1.4142135623730951, -9.667293313452913e-17},
                                    {1.4451808069770467, -3.0237581349939873e-17},
                                    {1.4768261459394993, -3.483994556892796e-17},
                                    {1.5091644275934228, -1.016455327754295e-16},
                                    {1.5422108254079407, 7.949834809697621e-17},
                                    {1.5759808451078865, -1.0136916471278304e-17},
                                    {1.6104903319492543, 2.4707192569797888e-17},
                                    {1.645755478153965, -1.0125679913674773e-16},
                                    {1.681792830507429, 8.199010020581497e-17},
                                    {1.718619298122478, -1.851380418263111e-17},
                                    {1.7562521603732995, 2.960140695448873e-17},
                                    {1.7947090750031072, 1.8227458427912087e-17},
                                    {1.8340080864093424, 3.283107224245627e-17},
                                    {1.8741676341103, -6.122763413004143e-17},
                                    {1.9152065613971474, -1.0619946056195963e-16},
                                    {1.9571441241754002, 8.960767791036668e-17}};
TAEDA_HD inline Exponential exponential(Pair x) {
  const double bounded = x.high > 2000.0 ? 2000.0 : x.high < -2000.0 ? -2000.0 : x.high;
  const double magic = Format<double>::magic, shifted = fma(bounded, 46.16624130844683, magic), n = shifted - magic;
  // n times the upper part is exact, and so is the difference.
  const Pair r = exact_sum(bounded - n * 0x1.62e42fef80000p-6, x.low - n * 0x1.1cf79abc9e3b4p-41);
  const double square = r.high * r.high;
  const double tail = square * poly(r.high, 0.5, 1.0 / 6, 1.0 / 24, 1.0 / 120, 1.0 / 720, 1.0 / 5040, 1.0 / 40320);
  const Pair power = Pair{1.0, 0.0} + ordered_sum(r.high, r.low + (tail + r.high * r.low));
  return {power * kRootsOfTwo[bit_cast<uint64_t>(shifted) & 31], floor(n * (1.0 / 32))};
}
/// a times 2^exponent, in two steps so that results below the normal numbers are rounded once.
TAEDA_HD inline double scaled_by(Pair a, double exponent) { return times_power_of_two(rounded(a), exponent); }
/// exp(x), where it is a normal number.
TAEDA_HD inline Pair exp_pair(Pair x) {
  const Exponential e = exponential(x);
  const double power = power_of_two(e.exponent);
  return {e.fraction.high * power, e.fraction.low * power};
}
/// a^y of a finite a > 0, where it is a normal number.
TAEDA_HD inline Pair pow_pair(double a, double y) {
  const HalfLogarithm log = half_logarithm(a);
  const Pair sum = exact_sum(log.k * Format<double>::ln2_high, 2.0 * log.half.high);
  const Pair l = ordered_sum(sum.high, sum.low + (log.k * Format<double>::ln2_low + 2.0 * log.half.low));
  return exp_pair(l * y);
}

}  // namespace taeda::loops::TAEDA_ISA
