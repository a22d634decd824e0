// Bessel functions without branches, computed in float64: the modified ones of the first kind for both types, the
// others for float32.
//
// Series of powers, fitted with mpmath to 17 digits. Between 0 and 8 the functions, apart from logarithm and pole, are
// smooth in x^2; beyond, amplitude and phase are smooth in 8 / x (NIST Digital Library of Mathematical
// Functions, 10.17, 10.31, 10.40).
#pragma once
#include "scalar/power.h"

namespace taeda::loops::TAEDA_ISA {

/// exp(-|x|) I_n(|x|), for n = 1 with the sign of x.
template <int N>
TAEDA_HD inline double bessel_i_tail_of_single(double x) {
  constexpr double near0[] = {0.2070019212239867,     -0.11300432654348828,    0.09451562842516041,
                              -0.08904346645630873,   0.08734342458197082,     -0.08496284076533661,
                              0.07927504492355045,    -0.06954651412975588,    0.056778814790985566,
                              -0.04295725075501792,   0.030168286136064423,    -0.019775351506074058,
                              0.01199119818260163,    -0.006605936634764051,   0.0035544414024135983,
                              -0.0020461388965098723, 0.0009352321298116495,   -0.00020636329707506994,
                              0.00010271931878805943, -0.00013592006898095621, 4.9179807024730725e-05};
  constexpr double far0[] = {0.4021765094053054,     0.0033605520313900634,  0.000136217407834547,
                             1.1141542189580863e-05, 1.4754756356201013e-06, 3.0383309086686276e-07,
                             1.0910232941075882e-07, 3.3635802235185296e-08};
  constexpr double near1[] = {0.044687709875608835,   -0.06112433799007499,   0.06805759989689755,
                              -0.0684826091053086,    0.06376740463728496,    -0.055279976798581335,
                              0.044674552725048805,   -0.03367197055283874,   0.023686213041875678,
                              -0.0155679877622009,    0.009582902619497388,   -0.00554530937067591,
                              0.0030091916424835638,  -0.0015172283196528769, 0.0007375935634886747,
                              -0.0003684467431909782, 0.00015715397534503563, -4.077280388096948e-05,
                              1.7599730578225902e-05, -1.745472071400764e-05, 5.984122024648426e-06};
  constexpr double far1[] = {0.3893984590744713,      -0.009749577241315432,   -0.00021923738535629923,
                             -1.5037047143805947e-05, -1.8250069387125121e-06, -3.5481954165334105e-07,
                             -1.2318419674047784e-07, -3.7856024793316294e-08};
  const double a = magnitude(x), t = a * 0.25 - 1.0, u = 16.0 / a - 1.0, root = sqrt(a);
  const double near = N ? polynomial(near1, t) * a : polynomial(near0, t);
  const double far = (N ? polynomial(far1, u) : polynomial(far0, u)) / root;
  const double y = a <= 8.0 ? near : far;
  return x != x ? x : N ? with_sign_of(y, x) : y;
}
/// I_n(x) of a float32 number, and the same times exp(-|x|).
template <int N>
TAEDA_HD inline float bessel_i(float x) {
  const double a = magnitude(double(x)), y = bessel_i_tail_of_single<N>(double(x)) * exp_core(a);
  return a == kInfinity<double> ? (N ? x : float(a)) : float(y);
}
template <int N>
TAEDA_HD inline float bessel_i_scaled(float x) {
  return float(bessel_i_tail_of_single<N>(double(x)));
}

/// Beyond this the reduction of the angle fails.
TAEDA_HD inline bool cylinder_domain(float x) { return !(magnitude(x) > float(trig_limit)); }
TAEDA_HD inline bool cylinder_domain(double) { return false; }
/// J_n and Y_n of a float32 number x >= 0.
struct Cylinder {
  double j, y;
};
template <int N>
TAEDA_HD inline Cylinder cylinder(double x) {
  constexpr double j0[] = {0.04582966485981377,     0.9303012472958572,     -0.6484692830871837,
                           -0.808088807669687,      1.0383794611437211,     -0.507468045847102,
                           0.14598884856759264,     -0.028472718610869575,  0.004058078989140991,
                           -0.00044354592247272207, 3.8473197855944365e-05, -2.7177491450236107e-06,
                           1.5956109104549218e-07,  -7.915407738245845e-09, 3.3634475788173604e-10,
                           -1.2384637259147907e-11, 4.0037632815796753e-13, -1.1382224373024272e-14};
  constexpr double y0[] = {-0.382250654459425,      -0.8284358903604587,    1.6470964788745466,
                           0.14412632369302442,     -1.0775477338215995,    0.6721770783431723,
                           -0.21895747096171628,    0.0463670476813471,     -0.00702574105727097,
                           0.0008061586060550644,   -7.279541882454115e-05, 5.321318633735116e-06,
                           -3.2185078445935923e-07, 1.6391065268260488e-08, -7.13046146536789e-10,
                           2.681822137847736e-11,   -8.840112096073101e-13, 2.558039436392922e-14};
  constexpr double p0[] = {0.9994572757882519,      -0.0005363673192129672, 6.137416081283524e-06,
                           -2.0527448261170675e-07, 1.2803747743828764e-08, -1.2121098178951377e-09,
                           1.550640953808597e-10,   -2.491146535471666e-11, 4.674289307624388e-12,
                           -1.0157485021065676e-12, 3.455012974455743e-13,  -1.0251790052831013e-13};
  constexpr double q0[] = {-0.015555113879514113, 6.833149099446326e-05,   -1.477138803291195e-06,
                           7.106212839663936e-08, -5.6689469983817334e-09, 6.433889365604451e-10,
                           -9.40749173174669e-11, 1.6788319179069536e-11,  -4.270500077212706e-12,
                           1.089337610302838e-12};
  constexpr double j1[] = {-0.05814382795599107,    0.08105866038589796,    0.15151665143806634,
                           -0.2595948652859303,     0.15858376432721938,    -0.05474581821284722,
                           0.012456814392255438,    -0.0020290394945705996, 0.0002494945813909099,
                           -2.404574865968694e-05,  1.8684525371950874e-06, -1.196708186787801e-07,
                           6.4312687983276065e-09,  -2.943013798001659e-10, 1.1610590175819576e-11,
                           -4.0045728425886457e-13, 1.2095547964761484e-14};
  constexpr double y1[] = {0.07075985882118005,     -0.24337743079193114,   0.023367571720993584,
                           0.23507209206669755,     -0.19639839859930425,   0.07854786922242532,
                           -0.019628756833099423,   0.0034224907399188495,  -0.00044381734351149876,
                           4.467433012646365e-05,   -3.600999874357815e-06, 2.3804930420514178e-07,
                           -1.3153322551127247e-08, 6.169688029066965e-10,  -2.4887509903377128e-11,
                           8.760001143977853e-13,   -2.695138958384033e-14};
  constexpr double p1[] = {1.0009070262780821,      0.0008988049416705183,   -7.959694699684788e-06,
                           2.453676633366693e-07,   -1.4708498448932155e-08, 1.3602969253877949e-09,
                           -1.7137279585997966e-10, 2.72345126828134e-11,    -5.071495295696752e-12,
                           1.0954826479277623e-12,  -3.697244591244297e-13,  1.0923713653079462e-13};
  constexpr double q1[] = {0.04677687402744961,    -9.621458822163325e-05,  1.8212018198987733e-06,
                           -8.291958561618712e-08, 6.420379002494617e-09,   -7.152283155905121e-10,
                           1.0327925338672915e-10, -1.8264338936134035e-11, 4.603874026133158e-12,
                           -1.1676806131397881e-12};
  const double t = x * x * (1.0 / 32) - 1.0, l = vlog(x) * 0.63661977236758134308;
  const double near_j = N ? x * polynomial(j1, t) : polynomial(j0, t);
  const double rest = N ? x * polynomial(y1, t) : polynomial(y0, t);
  const double near_y = l * near_j + (N ? rest - 0.63661977236758134308 / x : rest);
  const double w = 8.0 / x, u = 2.0 * w * w - 1.0;
  const double p = N ? polynomial(p1, u) : polynomial(p0, u), q = w * (N ? polynomial(q1, u) : polynomial(q0, u));
  const double s = vsin(x), c = vcos(x), sum = s + c, difference = s - c;
  const double size = 0.56418958354775628695 / sqrt(x);  // 1 / sqrt(pi x)
  const double far_j = size * (N ? p * difference + q * sum : p * sum - q * difference);
  const double far_y = size * (N ? q * difference - p * sum : p * difference + q * sum);
  const bool near = x < 8.0;
  return {near ? near_j : far_j, x == 0.0 ? -kInfinity<double> : near ? near_y : far_y};
}
template <int N>
TAEDA_HD inline float bessel_j(float x) {
  const double y = cylinder<N>(magnitude(double(x))).j;
  return float(N && x < 0.0f ? -y : y);
}
template <int N>
TAEDA_HD inline float bessel_y(float x) {
  const double y = cylinder<N>(magnitude(double(x))).y;
  return float(x < 0.0f ? kNan<double> : y);
}

/// K_n of a float32 number, and the same times exp(x).
template <int N>
TAEDA_HD inline float bessel_k(float value, bool scaled) {
  constexpr double i0[] = {1.5660829297563308,    0.635861728191873,      0.07358986836168832,   0.003928564819204235,
                           0.0001198206826414951, 2.3581518413478157e-06, 3.2367353282159444e-08};
  constexpr double k0[] = {-0.3036207729157981,    0.3404973210858272,    0.07177701034376824,  0.005053392063629651,
                           0.00018280555146344958, 4.055665726441839e-06, 6.094452407104669e-08};
  constexpr double far0[] = {1.218595338495897,       -0.031071461770323192,   0.0030328930441579456,
                             -0.00047977054948864607, 9.954655383320624e-05,   -2.472363831865996e-05,
                             7.059519433282695e-06,   -2.2290165542356533e-06, 6.395695022099508e-07,
                             -2.1048593728014906e-07, 1.831627408076271e-07,   -8.148468986306829e-08};
  constexpr double i1[] = {0.6358617281560675,     0.1471797367243291,     0.011785695316945507,  0.0004792827254861735,
                           1.1787894764061958e-05, 1.9420919949985476e-07, 2.2915541416957693e-09};
  constexpr double k1[] = {-0.05745585613520291,   -0.10866462148958415,    -0.013254642948997837,
                           -0.0006724746239022027, -1.9109761956192327e-05, -3.496571043927951e-07,
                           -4.4743268243562645e-09};
  constexpr double far1[] = {1.3631518903914357,     0.10334973769168672,     -0.005566731297772725,
                             0.0007357258563617032,  -0.0001395741348426,     3.2830676796025706e-05,
                             -9.027078471713545e-06, 2.773212936976419e-06,   -7.878921864112133e-07,
                             2.5626498164857817e-07, -2.1454616367823225e-07, 9.439554752067234e-08};
  const double x = double(value), t = 0.5 * x * x - 1.0, l = vlog(0.5 * x);
  const double near0 = polynomial(k0, t) - l * polynomial(i0, t);
  const double near1 = 1.0 / x + x * (l * polynomial(i1, t) + polynomial(k1, t));
  const double u = 4.0 / x - 1.0, far = (N ? polynomial(far1, u) : polynomial(far0, u)) / sqrt(x);
  const bool close = x <= 2.0;
  const double power = scaled ? (close ? x : 0.0) : close ? 0.0 : -x;
  const double y = (close ? (N ? near1 : near0) : far) * exp_core(power);
  const double end = x == 0.0 ? kInfinity<double> : kNan<double>;
  return x != x ? value : float(x > 0.0 ? y : end);
}

}  // namespace taeda::loops::TAEDA_ISA
