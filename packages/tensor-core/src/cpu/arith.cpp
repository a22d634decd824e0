// CPU kernels of the arith family.
#include "taeda/ops/arith.h"

#include <atomic>
#include <cmath>
#include <numeric>

#include "cpu/kernel.h"
#include "infer/numbers.h"

namespace taeda::cpu {
namespace {

template <class T>
T floor_divide(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    if (b == T(0)) return a / b;
    const T rest = std::fmod(a, b);
    T quotient = (a - rest) / b;
    if (rest != T(0) && (b < T(0)) != (rest < T(0))) quotient -= T(1);
    if (quotient == T(0)) return std::copysign(T(0), a / b);
    const T down = std::floor(quotient);
    return quotient - down > T(0.5) ? down + T(1) : down;
  } else if constexpr (std::is_signed_v<T>) {
    if (b == T(-1)) return T(-a);  // the lowest number wraps instead of trapping
    const T quotient = T(a / b);
    return T(quotient - ((a % b != 0) && ((a < 0) != (b < 0))));
  } else {
    return T(a / b);
  }
}
template <class T>
T trunc_divide(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) return std::trunc(a / b);
  else if constexpr (std::is_signed_v<T>) return b == T(-1) ? T(-a) : T(a / b);
  else return T(a / b);
}
template <class T>
T fmod_of(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) return std::fmod(a, b);
  else if constexpr (std::is_signed_v<T>) return b == T(-1) ? T(0) : T(a % b);
  else return T(a % b);
}
template <class T>
T remainder_of(T a, T b) {
  const T rest = fmod_of(a, b);
  if constexpr (std::is_signed_v<T> || std::is_floating_point_v<T>) return rest != T(0) && (rest < T(0)) != (b < T(0)) ? T(rest + b) : rest;
  else return rest;
}
template <class T>
T integer_power(T base, T exponent) {
  if constexpr (std::is_signed_v<T>)
    if (exponent < 0) return base == T(1) ? T(1) : base == T(-1) ? (exponent & 1 ? T(-1) : T(1)) : T(0);
  T result = 1;
  for (; exponent; exponent = T(exponent >> 1)) {
    if (exponent & 1) result = T(result * base);
    base = T(base * base);
  }
  return result;
}
template <class T>
T power(T a, T b) {
  if constexpr (std::is_integral_v<T>) return integer_power(a, b);
  else if constexpr (is_complex_v<T>) return b == T(0) ? T(1) : std::pow(a, b);
  else return std::pow(a, b);
}
template <class T>
T log_add_exp(T a, T b) {
  const T high = a > b ? a : b, low = a > b ? b : a;
  if (std::isinf(high) && a == b) return a;
  return high + std::log1p(std::exp(low - high));
}
template <class T>
T log_add_exp2(T a, T b) {
  const T high = a > b ? a : b, low = a > b ? b : a;
  if (std::isinf(high) && a == b) return a;
  return high + std::log1p(std::exp2(low - high)) * T(1.44269504088896340736);
}
template <class T>
T greatest_divisor(T a, T b) {
  using U = std::make_unsigned_t<T>;
  U x = a < 0 ? U(-U(a)) : U(a), y = b < 0 ? U(-U(b)) : U(b);
  while (y) x = std::exchange(y, U(x % y));
  return T(x);
}
template <class T>
T least_multiple(T a, T b) {
  const T g = greatest_divisor(a, b);
  if (g == 0) return 0;
  const T m = T(T(a / g) * b);
  return m < 0 ? T(-m) : m;
}
/// Half precision: neighbours of one sign differ by one in their bits.
template <class T>
T half_next(T a, T b) {
  const float x = a, y = b;
  if (x != x || y != y) return T(NAN);
  if (x == y) return b;
  T next;
  if (x == 0)
    next.bits = uint16_t((b.bits & 0x8000) | 1);
  else
    next.bits = uint16_t((x < y) == (x > 0) ? a.bits + 1 : a.bits - 1);
  return next;
}
template <class T>
void half_nextafter(char* const* p, const int64_t* s, int64_t n, const LoopParams*) {
  const auto at = [&](int k, int64_t i) { return reinterpret_cast<T*>(p[k] + i * s[k]); };
  for (int64_t i = 0; i < n; ++i) *at(0, i) = half_next(*at(1, i), *at(2, i));
}
template <class T>
T signum(T x) {
  if constexpr (is_complex_v<T>) return x == T(0) ? T(0) : x / std::abs(x);
  else if constexpr (std::is_same_v<T, bool>) return x;
  else if constexpr (std::is_floating_point_v<T>) return x != x ? x : T((x > T(0)) - (x < T(0)));
  else return T((x > T(0)) - (x < T(0)));
}

TAEDA_BINARY(FloorDivide, floor_divide(a, b))
TAEDA_BINARY(TruncDivide, trunc_divide(a, b))
TAEDA_BINARY(Fmod, fmod_of(a, b))
TAEDA_BINARY(Remainder, remainder_of(a, b))
TAEDA_BINARY(Power, power(a, b))
TAEDA_BINARY(Fmax, (a > b || b != b ? a : b))
TAEDA_BINARY(Fmin, (a < b || b != b ? a : b))
TAEDA_BINARY(Hypot, std::hypot(a, b))
TAEDA_BINARY(Copysign, std::copysign(a, b))
TAEDA_BINARY(Nextafter, std::nextafter(a, b))
TAEDA_BINARY(LogAddExp, log_add_exp(a, b))
TAEDA_BINARY(LogAddExp2, log_add_exp2(a, b))
TAEDA_BINARY(Gcd, greatest_divisor(a, b))
TAEDA_BINARY(Lcm, least_multiple(a, b))
TAEDA_BINARY(XLogY, (b != b ? b : a == T(0) ? T(0) : a * std::log(b)))
TAEDA_BINARY(Heaviside, (a != a ? a : a < T(0) ? T(0) : a > T(0) ? T(1) : b))
TAEDA_UNARY(Sign, signum(x))
TAEDA_UNARY(Modulus, std::abs(x))
TAEDA_UNARY(ComplexSqrt, std::sqrt(x))
TAEDA_UNARY(ComplexRsqrt, T(1) / std::sqrt(x))

constexpr LoopRow floor_divide_row = binary_row<FloorDivide>(Ordered{});
constexpr LoopRow trunc_divide_row = binary_row<TruncDivide>(Ordered{});
constexpr LoopRow fmod_row = binary_row<Fmod>(Ordered{});
constexpr LoopRow remainder_row = binary_row<Remainder>(Ordered{});
constexpr LoopRow power_row = binary_row<Power>(Numbers{});
constexpr LoopRow fmax_row = binary_row<Fmax>(BoolOrdered{});
constexpr LoopRow fmin_row = binary_row<Fmin>(BoolOrdered{});
constexpr LoopRow hypot_row = binary_row<Hypot>(Types<double>{});
constexpr LoopRow copysign_row = binary_row<Copysign>(Floats{});
constexpr LoopRow nextafter_row = [] {
  LoopRow r = binary_row<Nextafter>(Floats{});
  r.fn[int(DType::Float16)] = &half_nextafter<Half>;
  r.fn[int(DType::BFloat16)] = &half_nextafter<BFloat16>;
  return r;
}();
/// Steps in the dtype itself: a neighbour in float32 would round back.
void nextafter_kernel(const Tensor& out, const Tensor& a, const Tensor& b) {
  const DType d = float_of(infer::common_dtype(a, b));
  run_binary(need(nextafter_row, d, "nextafter"), out, d, a, b, d);
}
constexpr LoopRow logaddexp_row = binary_row<LogAddExp>(Floats{});
constexpr LoopRow logaddexp2_row = binary_row<LogAddExp2>(Floats{});
constexpr LoopRow gcd_row = binary_row<Gcd>(Ints{});
constexpr LoopRow lcm_row = binary_row<Lcm>(Ints{});
constexpr LoopRow xlogy_row = binary_row<XLogY>(Floats{});
constexpr LoopRow heaviside_row = binary_row<Heaviside>(BoolOrdered{});
constexpr LoopRow sign_row = unary_row<Sign>(All{});
constexpr LoopRow modulus_row = unary_row<Modulus>(Complexes{});
constexpr LoopRow sqrt_row = unary_row<ComplexSqrt>(Complexes{});
constexpr LoopRow rsqrt_row = unary_row<ComplexRsqrt>(Complexes{});

LoopParams negated(const Scalar& alpha) {
  LoopParams p{alpha};
  p.real[0] = -p.real[0];
  p.imag[0] = -p.imag[0];
  p.integer[0] = int64_t(-uint64_t(p.integer[0]));
  return p;
}

void add_kernel(const Tensor& out, const Tensor& a, const Tensor& b, const Scalar& alpha) {
  const DType d = operands_dtype(a, b);
  if (alpha.equal(1)) return run_binary(need(row(kAdd), d, "add"), out, d, a, b, d);
  const LoopParams p{alpha};
  run_binary(need(row(kAddAlpha), d, "add"), out, d, a, b, d, &p);
}
void sub_kernel(const Tensor& out, const Tensor& a, const Tensor& b, const Scalar& alpha) {
  const DType d = operands_dtype(a, b);
  if (alpha.equal(1)) return run_binary(need(row(kSub), d, "sub"), out, d, a, b, d);
  const LoopParams p = negated(alpha);
  run_binary(need(row(kAddAlpha), d, "sub"), out, d, a, b, d, &p);
}
void div_kernel(const Tensor& out, const Tensor& a, const Tensor& b) {
  const DType d = compute_dtype(float_of(infer::common_dtype(a, b)));
  run_binary(need(row(kDiv), d, "div"), out, d, a, b, d);
}

/// Sets integer[0] of its parameters when an element of data[0] is zero.
template <class T>
void zero_search(char* const* p, const int64_t* s, int64_t n, const LoopParams* params) {
  bool found = false;
  for (int64_t i = 0; i < n; ++i) found |= *reinterpret_cast<const T*>(p[0] + i * s[0]) == T(0);
  if (found) std::atomic_ref<int64_t>(const_cast<LoopParams*>(params)->integer[0]).store(1, std::memory_order_relaxed);
}
template <class... Ts>
constexpr LoopRow zero_search_row(Types<Ts...>) {
  LoopRow r;
  ((r.fn[int(dtype_of<Ts>)] = &zero_search<Ts>), ...);
  return r;
}
constexpr LoopRow zero_row = zero_search_row(BoolInts{});

/// Integer division by zero would trap in the loop: asked of the divisor as the loop sees it, after conversion.
void check_divisor(const char* op, const Tensor& b, DType d) {
  if (!is_integral(d)) return;
  LoopParams found;
  run_loop(zero_row.fn[int(d)], &found, {{&b, d}}, 0);
  check(found.integer[0] == 0, ErrorKind::ZeroDivision, op, ": integer division by zero");
}
/// bool operands are divided as small integers.
void division(const LoopRow& fast, const LoopRow& rare, const char* op, const Tensor& out, const Tensor& a, const Tensor& b) {
  DType d = operands_dtype(a, b);
  check_divisor(op, b, d);
  if (d == DType::Bool) d = DType::UInt8;
  run_binary(need(fast, rare, d, op), out, d, a, b, d);
}

void pow_kernel(const Tensor& out, const Tensor& a, const Tensor& b) {
  DType d = operands_dtype(a, b);
  if (d == DType::Bool) d = DType::UInt8;
  if (b.numel() == 1 && b.dim() == 0 && !is_integral(d)) {
    const Scalar e = scalar_of(b);
    const auto shortcut = [&](Unary code) { run_unary(row(code).fn[int(d)], out, d, a, d); };
    if (e.equal(2)) return shortcut(kSquare);
    if (e.equal(3)) return shortcut(kCube);
    if (e.equal(-1)) return shortcut(kReciprocal);
    if (e.equal(0.5) && is_floating(d)) return shortcut(kSqrt);
    if (e.equal(-0.5) && is_floating(d)) return shortcut(kRsqrt);
    if (e.equal(1)) return copy_elements(out, a);
  }
  run_binary(need(row(kPow), power_row, d, "pow"), out, d, a, b, d);
}

void abs_kernel(const Tensor& out, const Tensor& self) {
  const DType d = compute_dtype(self.dtype());
  if (d == DType::Bool) return copy_elements(out, self);
  run_unary(need(row(kAbs), modulus_row, d, "abs"), out, real_of(d), self, d);
}

void ternary(Ternary code, const char* op, const Tensor& out, const Tensor& self, const Tensor& a, const Tensor& b, const LoopParams* p) {
  const Tensor all[] = {self, a, b};
  const DType d = compute_dtype(result_type(all));
  run_loop(need(row(code), d, op), p, {{&out, d}, {&self, d}, {&a, d}, {&b, d}});
}
void addcmul_kernel(const Tensor& out, const Tensor& self, const Tensor& a, const Tensor& b, const Scalar& value) {
  const LoopParams p{value};
  ternary(kAddcmul, "addcmul", out, self, a, b, &p);
}
void addcdiv_kernel(const Tensor& out, const Tensor& self, const Tensor& a, const Tensor& b, const Scalar& value) {
  const LoopParams p{value};
  ternary(kAddcdiv, "addcdiv", out, self, a, b, &p);
}
void lerp_kernel(const Tensor& out, const Tensor& self, const Tensor& end, const Tensor& weight) {
  ternary(kLerp, "lerp", out, self, end, weight, nullptr);
}

/// Bounds beyond an integer type's range become its ends; a missing bound is the end.
template <class T>
void set_bound(LoopParams& p, int k, const std::optional<Scalar>& bound, bool low) {
  if constexpr (std::is_integral_v<T>) {
    using L = std::numeric_limits<T>;
    T value = low ? L::lowest() : L::max();
    if (bound) {
      const int side = infer::side_of(*bound, dtype_of<T>);
      value = side < 0 ? L::lowest() : side > 0 ? L::max() : bound->to<T>();
    }
    p.integer[k] = int64_t(value);
  } else {
    p.real[k] = bound ? bound->to_double() : low ? -INFINITY : INFINITY;
  }
}
void clamp_kernel(const Tensor& out, const Tensor& self, const std::optional<Scalar>& min, const std::optional<Scalar>& max) {
  const DType d = compute_dtype(out.dtype());
  const auto is_nan = [](const std::optional<Scalar>& bound) { return bound && std::isnan(bound->to_double()); };
  // Comparisons with NaN would leave the elements as they are.
  if (is_nan(min) || is_nan(max)) return copy_elements(out, Tensor(NAN));
  LoopParams p;
  visit_dtype(d, [&]<class T>() {
    if constexpr (!is_complex_v<T> && !is_half_v<T>) {
      set_bound<T>(p, 0, min, true);
      set_bound<T>(p, 1, max, false);
    }
  });
  run_unary(need(row(kClamp), d, "clamp"), out, d, self, d, &p);
}

const bool registered = [] {
  kernel<op::abs>(kCPU, abs_kernel);
  kernel<op::add>(kCPU, add_kernel);
  kernel<op::addcdiv>(kCPU, addcdiv_kernel);
  kernel<op::addcmul>(kCPU, addcmul_kernel);
  kernel<op::clamp>(kCPU, clamp_kernel);
  kernel<op::clamp_max>(kCPU, binary_same<kMinimum>);
  kernel<op::clamp_min>(kCPU, binary_same<kMaximum>);
  kernel<op::copysign>(kCPU, rare_binary_float<copysign_row>);
  kernel<op::div>(kCPU, div_kernel);
  kernel<op::floor_divide>(kCPU, [](const Tensor& o, const Tensor& a, const Tensor& b) { division(row(kFloorDivide), floor_divide_row, "floor_divide", o, a, b); });
  kernel<op::fmax>(kCPU, rare_same<fmax_row>);
  kernel<op::fmin>(kCPU, rare_same<fmin_row>);
  kernel<op::fmod>(kCPU, [](const Tensor& o, const Tensor& a, const Tensor& b) { division(row(kFmod), fmod_row, "fmod", o, a, b); });
  kernel<op::gcd>(kCPU, rare_same<gcd_row>);
  kernel<op::heaviside>(kCPU, rare_same<heaviside_row>);
  kernel<op::hypot>(kCPU, binary_float<kHypot, hypot_row>);
  kernel<op::lcm>(kCPU, rare_same<lcm_row>);
  kernel<op::lerp>(kCPU, lerp_kernel);
  kernel<op::logaddexp>(kCPU, rare_binary_float<logaddexp_row>);
  kernel<op::logaddexp2>(kCPU, rare_binary_float<logaddexp2_row>);
  kernel<op::maximum>(kCPU, binary_same<kMaximum>);
  kernel<op::minimum>(kCPU, binary_same<kMinimum>);
  kernel<op::mul>(kCPU, binary_same<kMul>);
  kernel<op::neg>(kCPU, unary_same<kNeg>);
  kernel<op::nextafter>(kCPU, nextafter_kernel);
  kernel<op::pow>(kCPU, pow_kernel);
  kernel<op::reciprocal>(kCPU, unary_float<kReciprocal>);
  kernel<op::remainder>(kCPU, [](const Tensor& o, const Tensor& a, const Tensor& b) { division(row(kRemainder), remainder_row, "remainder", o, a, b); });
  kernel<op::rsqrt>(kCPU, unary_float<kRsqrt, rsqrt_row>);
  kernel<op::sgn>(kCPU, [](const Tensor& o, const Tensor& a) { run_unary(sign_row.fn[int(compute_dtype(a.dtype()))], o, compute_dtype(a.dtype()), a, compute_dtype(a.dtype())); });
  kernel<op::sign>(kCPU, [](const Tensor& o, const Tensor& a) { run_unary(sign_row.fn[int(compute_dtype(a.dtype()))], o, compute_dtype(a.dtype()), a, compute_dtype(a.dtype())); });
  kernel<op::sqrt>(kCPU, unary_float<kSqrt, sqrt_row>);
  kernel<op::square>(kCPU, [](const Tensor& out, const Tensor& self) {
    if (self.dtype() == DType::Bool) return copy_elements(out, self);
    unary_same<kSquare>(out, self);
  });
  kernel<op::sub>(kCPU, sub_kernel);
  kernel<op::trunc_divide>(kCPU, [](const Tensor& o, const Tensor& a, const Tensor& b) {
    division(trunc_divide_row, no_row, "div", o, a, b);
  });
  kernel<op::xlogy>(kCPU, rare_binary_float<xlogy_row>);
  return true;
}();

}  // namespace
}  // namespace taeda::cpu
