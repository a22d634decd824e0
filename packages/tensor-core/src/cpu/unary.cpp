// CPU kernels of the unary family; functions of complex numbers and rare ones by libm.
#include "taeda/ops/unary.h"

#include <cmath>

#include "cpu/kernel.h"

namespace taeda::cpu {
namespace {

constexpr double kPi = 3.14159265358979323846;

double error_inverse(double y) {
  if (!(y > -1 && y < 1)) return y == 1 ? INFINITY : y == -1 ? -INFINITY : NAN;
  // Winitzki's closed form, then Newton's method on erf (erfc near the ends).
  const double a = 0.147, l = std::log1p(-y * y), h = 2 / (kPi * a) + l / 2;
  double x = std::copysign(std::sqrt(std::sqrt(h * h - l / a) - h), y);
  for (int i = 0; i < 3; ++i) {
    const double gap = std::abs(y) < 0.5 ? std::erf(x) - y : ((1 - std::abs(y)) - std::erfc(std::abs(x))) * (y < 0 ? -1 : 1);
    const double step = gap / (2 / std::sqrt(kPi) * std::exp(-x * x));
    x -= step / (1 + x * step);
  }
  return x;
}
double log_gamma(double x) {
  int sign;
  return lgamma_r(x, &sign);
}
double digamma_of(double x) {
  if (x == 0) return std::copysign(INFINITY, -x);
  if (x < 0) {
    if (x == std::floor(x)) return NAN;
    return digamma_of(1 - x) - kPi / std::tan(kPi * (x - std::floor(x)));
  }
  double shift = 0;
  for (; x < 10; ++x) shift -= 1 / x;
  const double z = 1 / (x * x);
  // Asymptotic series with Bernoulli numbers.
  const double series = z * (1. / 12 - z * (1. / 120 - z * (1. / 252 - z * (1. / 240 - z * (1. / 132 - z * (691. / 32760 - z / 12))))));
  return shift + std::log(x) - 0.5 / x - series;
}
/// exp(-|x|) * I_n(|x|), n = 0 or 1: power series, beyond 30 the asymptotic one.
double bessel_scaled(int n, double x) {
  x = std::abs(x);
  if (x != x) return x;
  if (x < 30) {
    double term = n ? x / 2 : 1, sum = term;
    for (int k = 1; k < 200 && term > sum * 1e-17; ++k) {
      term *= x * x / 4 / (double(k) * (k + n));
      sum += term;
    }
    return sum * std::exp(-x);
  }
  double term = 1, sum = 1;
  for (int k = 1; k < 30; ++k) {
    const double next = term * -(4.0 * n * n - (2 * k - 1.0) * (2 * k - 1.0)) / (8 * x * k);
    if (std::abs(next) > std::abs(term)) break;
    sum += term = next;
  }
  return sum / std::sqrt(2 * kPi * x);
}
/// I_n(|x|); the exponential in two halves, since its product with the scaled function may be finite where it is not.
double bessel(int n, double x) {
  const double half = std::exp(std::abs(x) / 2);
  return std::abs(x) > 1500 ? INFINITY : bessel_scaled(n, x) * half * half;
}
template <class T>
T sinc_of(T x) {
  if (x == T(0)) return T(1);
  const T y = x * T(kPi);
  return std::sin(y) / y;
}
template <class T>
auto argument(T x) {
  if constexpr (is_complex_v<T>) return std::arg(x);
  else return x != x ? x : x < T(0) ? T(kPi) : T(0);
}
template <class T>
T conjugate(T x) {
  if constexpr (is_complex_v<T>) return std::conj(x);
  else return x;
}

TAEDA_UNARY(Asin, std::asin(x))
TAEDA_UNARY(Acos, std::acos(x))
TAEDA_UNARY(Atan, std::atan(x))
TAEDA_UNARY(Sinh, std::sinh(x))
TAEDA_UNARY(Cosh, std::cosh(x))
TAEDA_UNARY(Asinh, std::asinh(x))
TAEDA_UNARY(Acosh, std::acosh(x))
TAEDA_UNARY(Atanh, std::atanh(x))
TAEDA_UNARY(Erfc, std::erfc(x))
TAEDA_UNARY(ErfInverse, T(error_inverse(double(x))))
TAEDA_UNARY(LogGamma, T(log_gamma(double(x))))
TAEDA_UNARY(Digamma, T(digamma_of(double(x))))
TAEDA_UNARY(Sinc, sinc_of(x))
TAEDA_UNARY(BesselI0, T(bessel(0, double(x))))
TAEDA_UNARY(BesselI0e, T(bessel_scaled(0, double(x))))
TAEDA_UNARY(BesselI1, T(std::copysign(bessel(1, double(x)), double(x))))
TAEDA_UNARY(BesselI1e, T(std::copysign(bessel_scaled(1, double(x)), double(x))))
TAEDA_UNARY(Radians, x* T(kPi / 180))
TAEDA_UNARY(Degrees, x* T(180 / kPi))
TAEDA_UNARY(Frac, x - std::trunc(x))
TAEDA_UNARY(Argument, argument(x))
TAEDA_UNARY(Conjugate, conjugate(x))
TAEDA_UNARY(ComplexExp, std::exp(x))
TAEDA_UNARY(ComplexExp2, std::exp(x* typename T::value_type(0.69314718055994530942)))
TAEDA_UNARY(ComplexExpm1, std::exp(x) - T(1))
TAEDA_UNARY(ComplexLog, std::log(x))
TAEDA_UNARY(ComplexLog2, std::log(x) * typename T::value_type(1.44269504088896340736))
TAEDA_UNARY(ComplexLog10, std::log10(x))
TAEDA_UNARY(ComplexLog1p, std::log(T(1) + x))
TAEDA_UNARY(ComplexSin, std::sin(x))
TAEDA_UNARY(ComplexCos, std::cos(x))
TAEDA_UNARY(ComplexTan, std::tan(x))
TAEDA_UNARY(ComplexTanh, std::tanh(x))
TAEDA_UNARY(ComplexSigmoid, T(1) / (T(1) + std::exp(-x)))

template <class T>
struct Logit {
  T low, high;
  explicit Logit(const LoopParams* p) : low(p->get<T>(0)), high(T(1) - low) {}
  T operator()(T x) const {
    if (low >= T(0)) x = x < low ? low : x > high ? high : x;
    return std::log(x / (T(1) - x));
  }
};
template <class T>
struct RoundDecimals {
  T scale;
  bool divide;
  explicit RoundDecimals(const LoopParams* p) : scale(T(p->real[0])), divide(p->integer[1]) {}
  T operator()(T x) const { return divide ? std::nearbyint(x / scale) * scale : std::nearbyint(x * scale) / scale; }
};
template <class T>
struct NanToNum {
  T nan, high, low;
  explicit NanToNum(const LoopParams* p) : nan(T(p->real[0])), high(T(p->real[1])), low(T(p->real[2])) {}
  T operator()(T x) const {
    if constexpr (is_complex_v<T>) {
      const NanToNum<typename T::value_type> part{nan.real(), high.real(), low.real()};
      return T(part(x.real()), part(x.imag()));
    } else {
      return x != x ? nan : x == T(INFINITY) ? high : x == T(-INFINITY) ? low : x;
    }
  }
  NanToNum(T n, T h, T l) : nan(n), high(h), low(l) {}
};

#define TAEDA_ROW(NAME, FUNCTOR, TYPES) constexpr LoopRow NAME = unary_row<FUNCTOR>(TYPES{});
TAEDA_ROW(asin_row, Asin, Complexes)
TAEDA_ROW(acos_row, Acos, Complexes)
TAEDA_ROW(atan_row, Atan, Complexes)
TAEDA_ROW(sinh_row, Sinh, Complexes)
TAEDA_ROW(cosh_row, Cosh, Complexes)
TAEDA_ROW(asinh_row, Asinh, Complexes)
TAEDA_ROW(acosh_row, Acosh, Complexes)
TAEDA_ROW(atanh_row, Atanh, Complexes)
TAEDA_ROW(exp2_complex_row, ComplexExp2, Complexes)
TAEDA_ROW(erfc_row, Erfc, Floats)
TAEDA_ROW(erfinv_row, ErfInverse, Floats)
TAEDA_ROW(lgamma_row, LogGamma, Floats)
TAEDA_ROW(digamma_row, Digamma, Floats)
TAEDA_ROW(sinc_row, Sinc, Inexact)
TAEDA_ROW(i0_row, BesselI0, Floats)
TAEDA_ROW(i0e_row, BesselI0e, Floats)
TAEDA_ROW(i1_row, BesselI1, Floats)
TAEDA_ROW(i1e_row, BesselI1e, Floats)
TAEDA_ROW(radians_row, Radians, Floats)
TAEDA_ROW(degrees_row, Degrees, Floats)
TAEDA_ROW(frac_row, Frac, Floats)
TAEDA_ROW(argument_row, Argument, Inexact)
TAEDA_ROW(conjugate_row, Conjugate, Complexes)
TAEDA_ROW(exp_row, ComplexExp, Complexes)
TAEDA_ROW(expm1_row, ComplexExpm1, Complexes)
TAEDA_ROW(log_row, ComplexLog, Complexes)
TAEDA_ROW(log2_row, ComplexLog2, Complexes)
TAEDA_ROW(log10_row, ComplexLog10, Complexes)
TAEDA_ROW(log1p_row, ComplexLog1p, Complexes)
TAEDA_ROW(sin_row, ComplexSin, Complexes)
TAEDA_ROW(cos_row, ComplexCos, Complexes)
TAEDA_ROW(tan_row, ComplexTan, Complexes)
TAEDA_ROW(tanh_row, ComplexTanh, Complexes)
TAEDA_ROW(sigmoid_row, ComplexSigmoid, Complexes)
TAEDA_ROW(logit_row, Logit, Floats)
TAEDA_ROW(round_row, RoundDecimals, Floats)
TAEDA_ROW(nan_to_num_row, NanToNum, Inexact)
#undef TAEDA_ROW

/// floor, ceil, trunc, round: integers stay as they are.
template <Unary Code>
void rounding(const Tensor& out, const Tensor& self) {
  if (is_integral(self.dtype())) return copy_elements(out, self);
  unary_same<Code>(out, self);
}
void round_kernel(const Tensor& out, const Tensor& self, int64_t decimals) {
  if (decimals == 0) return rounding<kRound>(out, self);
  const DType d = compute_dtype(self.dtype());
  check(!is_integral(d), ErrorKind::NotImplemented, "round: argument 'decimals' must be 0 for dtype ", name(self.dtype()));
  const LoopParams p{Scalar(std::pow(10.0, std::abs(double(decimals)))), Scalar(decimals < 0)};
  run_unary(round_row.fn[int(d)], out, d, self, d, &p);
}
void frac_kernel(const Tensor& out, const Tensor& self) {
  const DType d = compute_dtype(self.dtype());
  check(!is_integral(d), ErrorKind::NotImplemented, "frac: not implemented for dtype ", name(self.dtype()));
  run_unary(frac_row.fn[int(d)], out, d, self, d);
}
void angle_kernel(const Tensor& out, const Tensor& self) {
  const DType d = compute_dtype(float_of(self.dtype()));
  run_unary(argument_row.fn[int(d)], out, real_of(d), self, d);
}
void conj_kernel(const Tensor& out, const Tensor& self) {
  if (!is_complex(self.dtype())) return copy_elements(out, self);
  run_unary(conjugate_row.fn[int(self.dtype())], out, self.dtype(), self, self.dtype());
}
void logit_kernel(const Tensor& out, const Tensor& self, std::optional<double> eps) {
  const DType d = compute_dtype(float_of(self.dtype()));
  const LoopParams p{Scalar(eps.value_or(-1.0))};
  run_unary(need(logit_row, d, "logit"), out, d, self, d, &p);
}
double largest(DType d) {
  switch (real_of(d)) {
    case DType::Float16: return 65504;
    case DType::BFloat16: return 0x1.fep127;
    case DType::Float32: return std::numeric_limits<float>::max();
    default: return std::numeric_limits<double>::max();
  }
}
void nan_to_num_kernel(const Tensor& out, const Tensor& self, std::optional<double> nan, std::optional<double> posinf, std::optional<double> neginf) {
  if (is_integral(self.dtype())) return copy_elements(out, self);
  const DType d = compute_dtype(self.dtype());
  const LoopParams p{Scalar(nan.value_or(0)), Scalar(posinf.value_or(largest(self.dtype()))), Scalar(neginf.value_or(-largest(self.dtype())))};
  run_unary(nan_to_num_row.fn[int(d)], out, d, self, d, &p);
}

const bool registered = [] {
  kernel<op::acos>(kCPU, unary_float<kAcos, acos_row>);
  kernel<op::acosh>(kCPU, unary_float<kAcosh, acosh_row>);
  kernel<op::angle>(kCPU, angle_kernel);
  kernel<op::asin>(kCPU, unary_float<kAsin, asin_row>);
  kernel<op::asinh>(kCPU, unary_float<kAsinh, asinh_row>);
  kernel<op::atan>(kCPU, unary_float<kAtan, atan_row>);
  kernel<op::atan2>(kCPU, binary_float<kAtan2>);
  kernel<op::atanh>(kCPU, unary_float<kAtanh, atanh_row>);
  kernel<op::ceil>(kCPU, rounding<kCeil>);
  kernel<op::conj>(kCPU, conj_kernel);
  kernel<op::cos>(kCPU, unary_float<kCos, cos_row>);
  kernel<op::cosh>(kCPU, unary_float<kCosh, cosh_row>);
  kernel<op::deg2rad>(kCPU, rare_float<radians_row>);
  kernel<op::digamma>(kCPU, rare_float<digamma_row>);
  kernel<op::erf>(kCPU, unary_float<kErf>);
  kernel<op::erfc>(kCPU, rare_float<erfc_row>);
  kernel<op::erfinv>(kCPU, rare_float<erfinv_row>);
  kernel<op::exp>(kCPU, unary_float<kExp, exp_row>);
  kernel<op::exp2>(kCPU, unary_float<kExp2, exp2_complex_row>);
  kernel<op::expm1>(kCPU, unary_float<kExpm1, expm1_row>);
  kernel<op::floor>(kCPU, rounding<kFloor>);
  kernel<op::frac>(kCPU, frac_kernel);
  kernel<op::i0>(kCPU, rare_float<i0_row>);
  kernel<op::i0e>(kCPU, rare_float<i0e_row>);
  kernel<op::i1>(kCPU, rare_float<i1_row>);
  kernel<op::i1e>(kCPU, rare_float<i1e_row>);
  kernel<op::lgamma>(kCPU, unary_float<kLgamma, lgamma_row>);
  kernel<op::log>(kCPU, unary_float<kLog, log_row>);
  kernel<op::log10>(kCPU, unary_float<kLog10, log10_row>);
  kernel<op::log1p>(kCPU, unary_float<kLog1p, log1p_row>);
  kernel<op::log2>(kCPU, unary_float<kLog2, log2_row>);
  kernel<op::logit>(kCPU, logit_kernel);
  kernel<op::nan_to_num>(kCPU, nan_to_num_kernel);
  kernel<op::rad2deg>(kCPU, rare_float<degrees_row>);
  kernel<op::round>(kCPU, round_kernel);
  kernel<op::sigmoid>(kCPU, unary_float<kSigmoid, sigmoid_row>);
  kernel<op::sin>(kCPU, unary_float<kSin, sin_row>);
  kernel<op::sinc>(kCPU, rare_float<sinc_row>);
  kernel<op::sinh>(kCPU, unary_float<kSinh, sinh_row>);
  kernel<op::tan>(kCPU, unary_float<kTan, tan_row>);
  kernel<op::tanh>(kCPU, unary_float<kTanh, tanh_row>);
  kernel<op::trunc>(kCPU, rounding<kTrunc>);
  return true;
}();

}  // namespace
}  // namespace taeda::cpu
