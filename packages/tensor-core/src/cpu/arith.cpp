// CPU kernels of the arith family; those of plain lines follow from scalar/arith.inc.
#include "taeda/ops/arith.h"

#include <atomic>
#include <cmath>

#include "cpu/arith.h"
#include "infer/numbers.h"
#include "taeda/ops/cast.h"

#define TAEDA_FAMILY Arith
#define TAEDA_LINES "scalar/arith.inc"
#define TAEDA_ROWS arith_rows
#define TAEDA_OF_HALVES                                 \
  .of_halves(Arith::abs, Arith::half_abs)               \
      .of_halves(Arith::copysign, Arith::half_copysign) \
      .of_halves(Arith::neg, Arith::half_neg)
#include "cpu/family.h"

namespace taeda::cpu {

constinit const ElementRow* const shared_lines[] = {
    &family_lines.rows[int(Arith::add)],     &family_lines.rows[int(Arith::add_alpha)],
    &family_lines.rows[int(Arith::clamp)],   &family_lines.rows[int(Arith::div)],
    &family_lines.rows[int(Arith::maximum)], &family_lines.rows[int(Arith::minimum)],
    &family_lines.rows[int(Arith::mul)],     &family_lines.rows[int(Arith::sqrt)],
};

namespace {

/// Half precision: neighbours of one sign differ by one in their bits.
template <class T>
T half_next(T a, T b) {
  const float x = a, y = b;
  if (x != x || y != y) return T(NAN);
  if (x == y) return b;
  T next;
  if (x == 0) next.bits = uint16_t((b.bits & 0x8000) | 1);
  else next.bits = uint16_t((x < y) == (x > 0) ? a.bits + 1 : a.bits - 1);
  return next;
}
template <class T>
void half_nextafter(char* const* p, const int64_t* s, int64_t n, const LoopParams*) {
  const auto at = [&](int k, int64_t i) { return reinterpret_cast<T*>(p[k] + i * s[k]); };
  for (int64_t i = 0; i < n; ++i) *at(0, i) = half_next(*at(1, i), *at(2, i));
}
/// Steps in the dtype itself: a neighbour in float32 would round back.
void nextafter_kernel(const Tensor& out, const Tensor& a, const Tensor& b) {
  const DType d = float_of(infer::common_dtype(a, b));
  if (d != DType::Float16 && d != DType::BFloat16) return run_line(row(Arith::nextafter), "nextafter", d, out, a, b);
  const Loop loop = d == DType::Float16 ? half_nextafter<Half> : half_nextafter<BFloat16>;
  run_loop(loop, nullptr, {{&out, d}, {&a, d}, {&b, d}});
}

LoopParams negated(const Scalar& alpha) {
  LoopParams p{alpha};
  p.real[0] = -p.real[0];
  p.imag[0] = -p.imag[0];
  p.integer[0] = int64_t(-uint64_t(p.integer[0]));
  return p;
}

void add_kernel(const Tensor& out, const Tensor& a, const Tensor& b, const Scalar& alpha) {
  const DType d = operands_dtype(a, b);
  if (alpha.equal(1)) return run_line(row(Arith::add), "add", d, out, a, b);
  if (d == DType::Bool) return ops::copy_(out, a);  // alpha is False
  const LoopParams p{alpha};
  run_line(row(Arith::add_alpha), "add", d, out, a, b, &p);
}
void sub_kernel(const Tensor& out, const Tensor& a, const Tensor& b, const Scalar& alpha) {
  const DType d = operands_dtype(a, b);
  if (alpha.equal(1)) return run_line(row(Arith::sub), "sub", d, out, a, b);
  const LoopParams p = negated(alpha);
  run_line(row(Arith::add_alpha), "sub", d, out, a, b, &p);
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
template <class Op, Arith Line>
void division(const Tensor& out, const Tensor& a, const Tensor& b) {
  DType d = operands_dtype(a, b);
  check_divisor(Op::entry.name, b, d);
  if (d == DType::Bool) d = DType::UInt8;
  run_line(row(Line), Op::entry.name, d, out, a, b);
}

void pow_kernel(const Tensor& out, const Tensor& a, const Tensor& b) {
  DType d = operands_dtype(a, b);
  if (d == DType::Bool) d = DType::UInt8;
  if (b.numel() == 1 && b.dim() == 0 && !is_integral(d)) {
    const Scalar e = scalar_of(b);
    const auto shortcut = [&](Arith line) { run_line(row(line), "pow", d, out, a); };
    if (e.equal(2)) return shortcut(Arith::square);
    if (e.equal(3)) return shortcut(Arith::cube);
    if (e.equal(-1)) return shortcut(Arith::reciprocal);
    if (e.equal(0.5) && is_floating(d)) return shortcut(Arith::sqrt);
    if (e.equal(-0.5) && is_floating(d)) return shortcut(Arith::rsqrt);
    if (e.equal(1)) return copy_elements(out, a);
  }
  run_line(row(Arith::pow), "pow", d, out, a, b);
}

/// What does nothing to truth values copies them.
template <class Op, Arith Line>
void but_of_bool(const Tensor& out, const Tensor& self) {
  if (self.dtype() == DType::Bool) return copy_elements(out, self);
  LineKernel<Op, Line, Operands::Given, typename Op::Kernel>::run(out, self);
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
void clamp_kernel(const Tensor& out, const Tensor& self, const std::optional<Scalar>& min,
                  const std::optional<Scalar>& max) {
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
  run_line(row(Arith::clamp), "clamp", d, out, self, &p);
}

const bool registered = [] {
#include "cpu/register_lines.h"
  kernel<op::abs>(kCPU, but_of_bool<op::abs, Arith::abs>);
  kernel<op::add>(kCPU, add_kernel);
  kernel<op::clamp>(kCPU, clamp_kernel);
  line_kernel<op::clamp_max, Arith::minimum, Operands::Given>();
  line_kernel<op::clamp_min, Arith::maximum, Operands::Given>();
  kernel<op::floor_divide>(kCPU, division<op::floor_divide, Arith::floor_divide>);
  kernel<op::fmod>(kCPU, division<op::fmod, Arith::fmod>);
  kernel<op::nextafter>(kCPU, nextafter_kernel);
  kernel<op::pow>(kCPU, pow_kernel);
  kernel<op::remainder>(kCPU, division<op::remainder, Arith::remainder>);
  line_kernel<op::sgn, Arith::sign, Operands::Given>();
  kernel<op::square>(kCPU, but_of_bool<op::square, Arith::square>);
  kernel<op::sub>(kCPU, sub_kernel);
  kernel<op::trunc_divide>(kCPU, division<op::trunc_divide, Arith::trunc_divide>);
  return true;
}();

}  // namespace
}  // namespace taeda::cpu
