// CPU kernels of the compare family: comparison, logic, bits, choice.
#include "taeda/ops/compare.h"

#include <cmath>

#include "cpu/kernel.h"

namespace taeda::cpu {
namespace {

template <class T>
T shift_left(T a, T b) {
  return b < T(0) || b >= T(sizeof(T) * 8) ? T(0) : T(a << b);
}
template <class T>
T shift_right(T a, T b) {
  const T most = T(sizeof(T) * 8 - 1);
  if (b < T(0) || b > most) return a < T(0) ? T(-1) : T(0);
  return T(a >> b);
}
template <class T>
bool sign_bit(T x) {
  if constexpr (std::is_floating_point_v<T>) return std::signbit(x);
  else return x < T(0);
}

TAEDA_BINARY(ShiftLeft, shift_left(a, b))
TAEDA_BINARY(ShiftRight, shift_right(a, b))
TAEDA_UNARY(SignBit, sign_bit(x))
TAEDA_UNARY(IsPositiveInf, bool(x == T(INFINITY)))
TAEDA_UNARY(IsNegativeInf, bool(x == T(-INFINITY)))
TAEDA_UNARY(Never, false)
/// Parameters: rtol, atol, equal_nan.
template <class T>
struct IsClose {
  double relative, absolute;
  bool equal_nan;
  explicit IsClose(const LoopParams* p) : relative(p->real[0]), absolute(p->real[1]), equal_nan(p->integer[2]) {}
  bool operator()(T a, T b) const {
    if (a == b) return true;
    if constexpr (std::is_integral_v<T>) {
      const double x = double(a), y = double(b);
      return std::abs(x - y) <= absolute + std::abs(relative * y);
    } else {
      if (a != a || b != b) return equal_nan && a != a && b != b;
      const double gap = double(std::abs(a - b));
      return std::isfinite(gap) && gap <= absolute + std::abs(relative * double(std::abs(b)));
    }
  }
};

constexpr LoopRow shift_left_row = binary_row<ShiftLeft>(Ints{});
constexpr LoopRow shift_right_row = binary_row<ShiftRight>(Ints{});
constexpr LoopRow close_row = binary_row<IsClose>(All{});
constexpr LoopRow sign_bit_row = unary_row<SignBit>(BoolOrdered{});
constexpr LoopRow never_row = unary_row<Never>(BoolInts{});
constexpr LoopRow positive_row = unary_row<IsPositiveInf>(Floats{});
constexpr LoopRow negative_row = unary_row<IsNegativeInf>(Floats{});

template <Unary Code>
void predicate(const Tensor& out, const Tensor& self) {
  const DType d = compute_dtype(self.dtype());
  run_unary(need(row(Code), d, "predicate"), out, DType::Bool, self, d);
}
template <const LoopRow& Row, const LoopRow& Other = no_row>
void rare_predicate(const Tensor& out, const Tensor& self) {
  const DType d = compute_dtype(self.dtype());
  run_unary(need(Row, Other, d, "predicate"), out, DType::Bool, self, d);
}
/// a > b is b < a.
template <Binary Code>
void swapped(const Tensor& out, const Tensor& a, const Tensor& b) {
  binary_bool<Code>(out, b, a);
}
void isclose_kernel(const Tensor& out, const Tensor& a, const Tensor& b, double rtol, double atol, bool equal_nan) {
  const DType d = operands_dtype(a, b);
  const LoopParams p{Scalar(rtol), Scalar(atol), Scalar(equal_nan)};
  run_binary(need(close_row, d, "isclose"), out, DType::Bool, a, b, d, &p);
}

void where_kernel(const Tensor& out, const Tensor& condition, const Tensor& a, const Tensor& b) {
  const DType d = operands_dtype(a, b);
  run_loop(need(row(kWhere), d, "where"), nullptr, {{&out, d}, {&condition, DType::Bool}, {&a, d}, {&b, d}});
}
void masked_fill_kernel(const Tensor& out, const Tensor& self, const Tensor& mask, const Tensor& value) {
  const DType d = compute_dtype(self.dtype());
  run_loop(need(row(kWhere), d, "masked_fill"), nullptr, {{&out, d}, {&mask, DType::Bool}, {&value, d}, {&self, d}});
}

const bool registered = [] {
  kernel<op::bitwise_and>(kCPU, binary_same<kBitAnd>);
  kernel<op::bitwise_left_shift>(kCPU, rare_same<shift_left_row>);
  kernel<op::bitwise_not>(kCPU, unary_same<kBitNot>);
  kernel<op::bitwise_or>(kCPU, binary_same<kBitOr>);
  kernel<op::bitwise_right_shift>(kCPU, rare_same<shift_right_row>);
  kernel<op::bitwise_xor>(kCPU, binary_same<kBitXor>);
  kernel<op::eq>(kCPU, binary_bool<kEq>);
  kernel<op::ge>(kCPU, swapped<kLe>);
  kernel<op::gt>(kCPU, swapped<kLt>);
  kernel<op::isclose>(kCPU, isclose_kernel);
  kernel<op::isfinite>(kCPU, predicate<kIsFinite>);
  kernel<op::isinf>(kCPU, predicate<kIsInf>);
  kernel<op::isnan>(kCPU, predicate<kIsNan>);
  kernel<op::isneginf>(kCPU, rare_predicate<negative_row, never_row>);
  kernel<op::isposinf>(kCPU, rare_predicate<positive_row, never_row>);
  kernel<op::le>(kCPU, binary_bool<kLe>);
  kernel<op::logical_and>(kCPU, binary_bool<kLogicalAnd>);
  kernel<op::logical_not>(kCPU, predicate<kLogicalNot>);
  kernel<op::logical_or>(kCPU, binary_bool<kLogicalOr>);
  kernel<op::logical_xor>(kCPU, binary_bool<kLogicalXor>);
  kernel<op::lt>(kCPU, binary_bool<kLt>);
  kernel<op::masked_fill>(kCPU, masked_fill_kernel);
  kernel<op::ne>(kCPU, binary_bool<kNe>);
  kernel<op::signbit>(kCPU, rare_predicate<sign_bit_row>);
  kernel<op::where>(kCPU, where_kernel);
  return true;
}();

}  // namespace
}  // namespace taeda::cpu
