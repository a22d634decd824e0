// Inner loops of functions of two operands.
#include <cstring>

#include "cpu/loops/inverse.h"
#include "cpu/loops/loop.h"
#include "cpu/loops/math.h"
#include "cpu/loops/power.h"
#include "cpu/loops/tables.h"

namespace taeda::loops::TAEDA_ISA {
namespace {

#define TAEDA_PLAIN(NAME, EXPRESSION)                  \
  template <class T>                                   \
  struct NAME {                                        \
    explicit NAME(const LoopParams*) {}                \
    auto operator()(T a, T b) const { return EXPRESSION; } \
  };

/// Complex products by the textbook formula: the standard's recovery of infinities would not vectorise.
template <class T>
inline T times(T a, T b) {
  if constexpr (is_complex_v<T>) return T(a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real());
  else return T(a * b);
}
template <class T>
inline T larger(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) return a > b || a != a ? a : b;
  else return a > b ? a : b;
}
template <class T>
inline T smaller(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) return a < b || a != a ? a : b;
  else return a < b ? a : b;
}
/// In float64, where squares of float32 numbers neither overflow nor vanish.
inline float hypotenuse(float a, float b) {
  const float inf = std::numeric_limits<float>::infinity();
  const double x = double(a), y = double(b);
  const float root = float(std::sqrt(x * x + y * y));
  return (magnitude(a) == inf) | (magnitude(b) == inf) ? inf : root;
}

TAEDA_PLAIN(Add, T(a + b))
TAEDA_PLAIN(Sub, T(a - b))
TAEDA_PLAIN(Mul, times(a, b))
TAEDA_PLAIN(Div, a / b)
TAEDA_PLAIN(Maximum, larger(a, b))
TAEDA_PLAIN(Minimum, smaller(a, b))
TAEDA_PLAIN(Pow, vpow(a, b))
TAEDA_PLAIN(Atan2, vatan2(a, b))
TAEDA_PLAIN(Hypot, hypotenuse(a, b))
TAEDA_PLAIN(Eq, a == b)
TAEDA_PLAIN(Ne, a != b)
TAEDA_PLAIN(Lt, a < b)
TAEDA_PLAIN(Le, a <= b)
TAEDA_PLAIN(LogicalAnd, bool((a != T(0)) & (b != T(0))))
TAEDA_PLAIN(LogicalOr, bool((a != T(0)) | (b != T(0))))
TAEDA_PLAIN(LogicalXor, (a != T(0)) != (b != T(0)))
TAEDA_PLAIN(BitAnd, T(a & b))
TAEDA_PLAIN(BitOr, T(a | b))
TAEDA_PLAIN(BitXor, T(a ^ b))
// Gradients: a is the gradient of the result, b the saved input or output.
TAEDA_PLAIN(SigmoidBackward, a*(T(1) - b) * b)
TAEDA_PLAIN(TanhBackward, a*(T(1) - b * b))
#undef TAEDA_PLAIN

template <class T>
struct AddAlpha {
  T alpha;
  explicit AddAlpha(const LoopParams* p) : alpha(p->get<T>(0)) {}
  T operator()(T a, T b) const { return T(a + times(alpha, b)); }
};
template <class T>
struct ThresholdBackward {
  T threshold;
  explicit ThresholdBackward(const LoopParams* p) : threshold(p->get<T>(0)) {}
  T operator()(T grad, T x) const { return x <= threshold ? T(0) : grad; }
};
template <class T>
struct LeakyReluBackward {
  T slope;
  explicit LeakyReluBackward(const LoopParams* p) : slope(p->get<T>(0)) {}
  T operator()(T grad, T x) const { return x > T(0) ? grad : grad * slope; }
};
template <class T>
struct GeluBackward {
  explicit GeluBackward(const LoopParams*) {}
  T operator()(T grad, T x) const {
    const Normal<T> n = normal(x);
    return grad * (n.below + x * n.density);
  }
};
template <class T>
struct GeluTanhBackward {
  explicit GeluTanhBackward(const LoopParams*) {}
  T operator()(T grad, T x) const {
    const T b = T(0.79788456080286535588), c = T(0.044715);
    const T t = vtanh(b * (x + c * x * x * x));
    return grad * (T(0.5) * (T(1) + t) + T(0.5) * x * (T(1) - t * t) * b * (T(1) + T(3) * c * x * x));
  }
};
template <class T>
struct SiluBackward {
  explicit SiluBackward(const LoopParams*) {}
  T operator()(T grad, T x) const {
    const T s = vsigmoid(x);
    return grad * s * (T(1) + x * (T(1) - s));
  }
};

inline void fetch(float* to, const char* from, int64_t stride, int64_t n) {
  if (stride == sizeof(float)) std::memcpy(to, from, size_t(n) * sizeof(float));
  else for (int64_t i = 0; i < n; ++i) to[i] = *reinterpret_cast<const float*>(from + i * stride);
}
/// Divisions of float32 numbers by blocks: vectorised where the quotient is small enough to be exact, else one by one.
template <double (*Fast)(double, double), double (*Exact)(double, double)>
void division_loop(char* const* p, const int64_t* s, int64_t n, const LoopParams*) {
  constexpr int64_t block = 128;
  constexpr float bound = float(exact_quotient);
  float a[block], b[block], out[block];
  for (int64_t done = 0; done < n; done += block) {
    const int64_t m = n - done < block ? n - done : block;
    fetch(a, p[1] + done * s[1], s[1], m);
    fetch(b, p[2] + done * s[2], s[2], m);
    int large = 0;
    for (int64_t i = 0; i < m; ++i) large |= !(magnitude(a[i]) < bound * magnitude(b[i]));
    for (int64_t i = 0; i < m; ++i) out[i] = float(Fast(double(a[i]), double(b[i])));
    if (large)
      for (int64_t i = 0; i < m; ++i)
        if (!(magnitude(a[i]) < bound * magnitude(b[i]))) out[i] = float(Exact(double(a[i]), double(b[i])));
    for (int64_t i = 0; i < m; ++i) *reinterpret_cast<float*>(p[0] + (done + i) * s[0]) = out[i];
  }
}
template <double (*Fast)(double, double), double (*Exact)(double, double)>
constexpr LoopRow division_row() {
  LoopRow row;
  row.fn[int(DType::Float32)] = &division_loop<Fast, Exact>;
  return row;
}
double exact_fmod(double a, double b) { return std::fmod(a, b); }
double exact_remainder(double a, double b) {
  const double r = std::fmod(a, b);
  return r != 0.0 && (r < 0.0) != (b < 0.0) ? r + b : r;
}
double exact_floor_divide(double a, double b) {
  if (b == 0.0) return a / b;
  const double rest = std::fmod(a, b), quotient = (a - rest) / b - (rest != 0.0 && (rest < 0.0) != (b < 0.0) ? 1.0 : 0.0);
  return quotient == 0.0 ? with_sign_of(0.0, a / b) : quotient != quotient ? quotient : std::nearbyint(quotient);
}

constexpr BinaryTable make() {
  BinaryTable t;
  LoopRow* r = t.rows;
  r[kAdd] = binary_row<Add>(All{});
  r[kAddAlpha] = binary_row<AddAlpha>(Numbers{});
  r[kSub] = binary_row<Sub>(Numbers{});
  r[kMul] = binary_row<Mul>(All{});
  r[kDiv] = binary_row<Div>(Inexact{});
  r[kMaximum] = binary_row<Maximum>(BoolOrdered{});
  r[kMinimum] = binary_row<Minimum>(BoolOrdered{});
  r[kPow] = binary_row<Pow>(Types<float>{});
  r[kAtan2] = binary_row<Atan2>(Floats{});
  r[kHypot] = binary_row<Hypot>(Types<float>{});
  r[kFmod] = division_row<vfmod, exact_fmod>();
  r[kRemainder] = division_row<vremainder, exact_remainder>();
  r[kFloorDivide] = division_row<vfloor_divide, exact_floor_divide>();
  r[kEq] = binary_row<Eq>(All{});
  r[kNe] = binary_row<Ne>(All{});
  r[kLt] = binary_row<Lt>(BoolOrdered{});
  r[kLe] = binary_row<Le>(BoolOrdered{});
  r[kLogicalAnd] = binary_row<LogicalAnd>(All{});
  r[kLogicalOr] = binary_row<LogicalOr>(All{});
  r[kLogicalXor] = binary_row<LogicalXor>(All{});
  r[kBitAnd] = binary_row<BitAnd>(BoolInts{});
  r[kBitOr] = binary_row<BitOr>(BoolInts{});
  r[kBitXor] = binary_row<BitXor>(BoolInts{});
  r[kThresholdBackward] = binary_row<ThresholdBackward>(Floats{});
  r[kSigmoidBackward] = binary_row<SigmoidBackward>(Inexact{});
  r[kTanhBackward] = binary_row<TanhBackward>(Inexact{});
  r[kGeluBackward] = binary_row<GeluBackward>(Floats{});
  r[kGeluTanhBackward] = binary_row<GeluTanhBackward>(Floats{});
  r[kSiluBackward] = binary_row<SiluBackward>(Floats{});
  r[kLeakyReluBackward] = binary_row<LeakyReluBackward>(Floats{});
  return t;
}

}  // namespace

constinit const BinaryTable binary = make();

}  // namespace taeda::loops::TAEDA_ISA
