// Inner loops of functions of one operand.
#include "cpu/loops/gamma.h"
#include "cpu/loops/inverse.h"
#include "cpu/loops/loop.h"
#include "cpu/loops/math.h"
#include "cpu/loops/tables.h"

namespace taeda::loops::TAEDA_ISA {
namespace {

template <class T>
inline T bit_not(T x) {
  if constexpr (std::is_same_v<T, bool>) return !x;
  else return T(~x);
}
template <class T>
inline bool infinite(T x) {
  if constexpr (is_complex_v<T>) return infinite(x.real()) | infinite(x.imag());
  else if constexpr (std::is_floating_point_v<T>) return magnitude(x) == std::numeric_limits<T>::infinity();
  else return false;
}
template <class T>
inline bool finite(T x) {
  if constexpr (is_complex_v<T>) return finite(x.real()) & finite(x.imag());
  else if constexpr (std::is_floating_point_v<T>) return magnitude(x) < std::numeric_limits<T>::infinity();
  else return true;
}

// Functors: constructed from the parameters, called on one element.

#define TAEDA_PLAIN(NAME, EXPRESSION)              \
  template <class T>                               \
  struct NAME {                                    \
    explicit NAME(const LoopParams*) {}            \
    auto operator()(T x) const { return EXPRESSION; } \
  };

TAEDA_PLAIN(Neg, T(-x))
TAEDA_PLAIN(Square, T(x * x))
TAEDA_PLAIN(Cube, T(x * x * x))
TAEDA_PLAIN(Sqrt, std::sqrt(x))
TAEDA_PLAIN(Rsqrt, T(1) / std::sqrt(x))
TAEDA_PLAIN(Reciprocal, T(1) / x)
TAEDA_PLAIN(Floor, std::floor(x))
TAEDA_PLAIN(Ceil, std::ceil(x))
TAEDA_PLAIN(Trunc, std::trunc(x))
TAEDA_PLAIN(Round, std::nearbyint(x))
TAEDA_PLAIN(LogicalNot, x == T(0))
TAEDA_PLAIN(BitNot, bit_not(x))
TAEDA_PLAIN(IsNan, x != x)
TAEDA_PLAIN(IsInf, infinite(x))
TAEDA_PLAIN(IsFinite, finite(x))
TAEDA_PLAIN(Relu, x < T(0) ? T(0) : x)
TAEDA_PLAIN(Exp, vexp(x))
TAEDA_PLAIN(Log, vlog(x))
TAEDA_PLAIN(Tanh, vtanh(x))
TAEDA_PLAIN(Sigmoid, vsigmoid(x))
TAEDA_PLAIN(Erf, verf(x))
TAEDA_PLAIN(Silu, x* vsigmoid(x))
// In float64 for both: float32 results are then right to half an ulp.
TAEDA_PLAIN(Exp2, T(vexp2(double(x))))
TAEDA_PLAIN(Atan, T(vatan(double(x))))
TAEDA_PLAIN(Asin, vasin(x))
TAEDA_PLAIN(Acos, vacos(x))
TAEDA_PLAIN(Asinh, T(vasinh(double(x))))
TAEDA_PLAIN(Acosh, T(vacosh(double(x))))
TAEDA_PLAIN(Atanh, vatanh(x))
TAEDA_PLAIN(Sinh, T(vsinh(double(x))))
TAEDA_PLAIN(Cosh, T(vcosh(double(x))))
TAEDA_PLAIN(Expm1, T(vexpm1(double(x))))
TAEDA_PLAIN(Log1p, T(vlog1p(double(x))))
TAEDA_PLAIN(Log2, T(vlog2(double(x))))
TAEDA_PLAIN(Log10, T(vlog(double(x)) * 0.43429448190325182765))
TAEDA_PLAIN(Lgamma, vlgamma(x))
TAEDA_PLAIN(Gelu, x* normal(x).below)
TAEDA_PLAIN(GeluTanh, T(0.5) * x * (T(1) + vtanh(T(0.79788456080286535588) * (x + T(0.044715) * x * x * x))))
#undef TAEDA_PLAIN

template <class T>
struct Abs {
  explicit Abs(const LoopParams*) {}
  T operator()(T x) const {
    if constexpr (std::is_floating_point_v<T>) return magnitude(x);
    else if constexpr (std::is_unsigned_v<T>) return x;
    else return x < T(0) ? T(-x) : x;
  }
};
template <class T>
struct Clamp {
  T low, high;
  explicit Clamp(const LoopParams* p) : low(p->get<T>(0)), high(p->get<T>(1)) {}
  T operator()(T x) const {
    x = x < low ? low : x;
    return x > high ? high : x;
  }
};
template <class T>
struct LeakyRelu {
  T slope;
  explicit LeakyRelu(const LoopParams* p) : slope(p->get<T>(0)) {}
  T operator()(T x) const { return x > T(0) ? x : x * slope; }
};

/// Periodic functions: vectorised where the reduction is exact, libm for the rare large arguments.
template <double (*Fast)(double), double (*Exact)(double), class T>
void periodic_loop(char* const* p, const int64_t* s, int64_t n, const LoopParams*) {
  constexpr int64_t block = 128;
  T in[block], out[block];
  for (int64_t done = 0; done < n; done += block) {
    const int64_t m = n - done < block ? n - done : block;
    const char* from = p[1] + done * s[1];
    if (s[1] == sizeof(T)) std::memcpy(in, from, size_t(m) * sizeof(T));
    else for (int64_t i = 0; i < m; ++i) in[i] = *reinterpret_cast<const T*>(from + i * s[1]);
    int large = 0;
    for (int64_t i = 0; i < m; ++i) large |= magnitude(in[i]) > T(trig_limit);
    for (int64_t i = 0; i < m; ++i) out[i] = T(Fast(double(in[i])));
    if (large)
      for (int64_t i = 0; i < m; ++i)
        if (magnitude(in[i]) > T(trig_limit)) out[i] = T(Exact(double(in[i])));
    char* to = p[0] + done * s[0];
    if (s[0] == sizeof(T)) std::memcpy(to, out, size_t(m) * sizeof(T));
    else for (int64_t i = 0; i < m; ++i) *reinterpret_cast<T*>(to + i * s[0]) = out[i];
  }
}
template <double (*Fast)(double), double (*Exact)(double)>
constexpr LoopRow periodic_row() {
  LoopRow row;
  row.fn[int(DType::Float32)] = &periodic_loop<Fast, Exact, float>;
  row.fn[int(DType::Float64)] = &periodic_loop<Fast, Exact, double>;
  return row;
}
double exact_sin(double x) { return std::sin(x); }
double exact_cos(double x) { return std::cos(x); }
double exact_tan(double x) { return std::tan(x); }

constexpr UnaryTable make() {
  UnaryTable t;
  LoopRow* r = t.rows;
  r[kNeg] = unary_row<Neg>(Numbers{});
  r[kAbs] = unary_row<Abs>(Ordered{});
  r[kSquare] = unary_row<Square>(Numbers{});
  r[kCube] = unary_row<Cube>(Numbers{});
  r[kSqrt] = unary_row<Sqrt>(Floats{});
  r[kRsqrt] = unary_row<Rsqrt>(Floats{});
  r[kReciprocal] = unary_row<Reciprocal>(Inexact{});
  r[kExp] = unary_row<Exp>(Floats{});
  r[kExp2] = unary_row<Exp2>(Floats{});
  r[kAtan] = unary_row<Atan>(Floats{});
  r[kAsin] = unary_row<Asin>(Floats{});
  r[kAcos] = unary_row<Acos>(Floats{});
  r[kAsinh] = unary_row<Asinh>(Floats{});
  r[kAcosh] = unary_row<Acosh>(Floats{});
  r[kAtanh] = unary_row<Atanh>(Floats{});
  r[kSinh] = unary_row<Sinh>(Floats{});
  r[kCosh] = unary_row<Cosh>(Floats{});
  r[kExpm1] = unary_row<Expm1>(Floats{});
  r[kLog] = unary_row<Log>(Floats{});
  r[kLog1p] = unary_row<Log1p>(Floats{});
  r[kLog2] = unary_row<Log2>(Floats{});
  r[kLog10] = unary_row<Log10>(Floats{});
  r[kSin] = periodic_row<vsin, exact_sin>();
  r[kCos] = periodic_row<vcos, exact_cos>();
  r[kTan] = periodic_row<vtan, exact_tan>();
  r[kTanh] = unary_row<Tanh>(Floats{});
  r[kSigmoid] = unary_row<Sigmoid>(Floats{});
  r[kErf] = unary_row<Erf>(Floats{});
  r[kLgamma] = unary_row<Lgamma>(Types<float>{});
  r[kFloor] = unary_row<Floor>(Floats{});
  r[kCeil] = unary_row<Ceil>(Floats{});
  r[kTrunc] = unary_row<Trunc>(Floats{});
  r[kRound] = unary_row<Round>(Floats{});
  r[kClamp] = unary_row<Clamp>(Ordered{});
  r[kLogicalNot] = unary_row<LogicalNot>(All{});
  r[kBitNot] = unary_row<BitNot>(BoolInts{});
  r[kIsNan] = unary_row<IsNan>(All{});
  r[kIsInf] = unary_row<IsInf>(All{});
  r[kIsFinite] = unary_row<IsFinite>(All{});
  r[kRelu] = unary_row<Relu>(BoolOrdered{});
  r[kLeakyRelu] = unary_row<LeakyRelu>(Floats{});
  r[kGelu] = unary_row<Gelu>(Floats{});
  r[kGeluTanh] = unary_row<GeluTanh>(Floats{});
  r[kSilu] = unary_row<Silu>(Floats{});
  return t;
}

}  // namespace

constinit const UnaryTable unary = make();

}  // namespace taeda::loops::TAEDA_ISA
