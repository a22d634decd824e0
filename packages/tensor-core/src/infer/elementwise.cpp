// Inference shared by the element-wise families: promotion, broadcasting, layout of the result.
#include "taeda/elementwise.h"

#include <algorithm>

#include "infer/arith.h"
#include "infer/compare.h"
#include "infer/dtypes.h"
#include "infer/memory_format.h"
#include "taeda/infer.h"

namespace taeda::infer {
namespace {

[[noreturn]] void unsupported(const char* op, DType d) {
  fail(ErrorKind::NotImplemented, op, ": not implemented for dtype ", name(d));
}
void refuse_complex(const char* op, DType d) {
  if (is_complex(d)) [[unlikely]]
    unsupported(op, d);
}

/// The first operand of the result's shape decides the layout where it is dense, else all of them.
Spec with_layout(Shape sizes, DType dtype, std::initializer_list<const Tensor*> operands) {
  Spec out{std::move(sizes), dtype, {}};
  for (const Tensor* t : operands) {
    if (!std::ranges::equal(t->sizes(), IntSpan(out.sizes))) continue;
    if (!t->dense()) [[unlikely]]
      out.strides = closed_strides(out.sizes, {operands.begin(), operands.size()});
    else if (!t->contiguous()) out.strides.assign(t->strides());
    break;
  }
  return out;
}
Spec like(const Tensor& self, DType dtype) {
  if (self.contiguous()) return Spec{Shape(self.sizes()), dtype, {}};
  return with_layout(Shape(self.sizes()), dtype, {&self});
}

/// That of a copy: the steps of the original where it has no gaps, also where others fit its shape.
Spec kept(const Tensor& self, DType dtype) {
  const bool forward = std::ranges::all_of(self.strides(), [](int64_t step) { return step >= 0; });
  if (!self.contiguous() || !self.numel() || !forward || stands_in_rows(self)) return like(self, dtype);
  return Spec{Shape(self.sizes()), dtype, Shape(self.strides())};
}

DType promoted(const Tensor& a, const Tensor& b) {
  const Tensor both[] = {a, b};
  return result_type(both);
}
Spec broadcast(const char* op, const Tensor& a, const Tensor& b, DType dtype) {
  if (a.contiguous() && (b.numel() == 1 && b.dim() <= a.dim())) return Spec{Shape(a.sizes()), dtype, {}};
  if (same_shape(a, b)) return with_layout(Shape(a.sizes()), dtype, {&a, &b});
  return with_layout(broadcast_shapes(a.sizes(), b.sizes(), op), dtype, {&a, &b});
}

}  // namespace

/// dtype of a binary operator; most calls have one dtype or a number beside a tensor.
DType common_dtype(const Tensor& a, const Tensor& b) {
  if (a.dtype() == b.dtype() && !(a.is_wrapped_number() && b.is_wrapped_number())) return a.dtype();
  if (b.is_wrapped_number() && !a.is_wrapped_number() && category(b.dtype()) <= category(a.dtype())) return a.dtype();
  return promoted(a, b);
}

Spec unary(const char*, const Tensor& self) { return like(self, self.dtype()); }
Spec unary_number(const char*, const Tensor& self) {
  return like(self, self.dtype() == DType::Bool ? DType::Int64 : self.dtype());
}
Spec unary_ordered(const char* op, const Tensor& self) {
  refuse_complex(op, self.dtype());
  return like(self, self.dtype());
}
Spec unary_float(const char*, const Tensor& self) { return like(self, float_of(self.dtype())); }
Spec unary_float_ordered(const char* op, const Tensor& self) {
  refuse_complex(op, self.dtype());
  return like(self, float_of(self.dtype()));
}
Spec unary_real(const char*, const Tensor& self) { return like(self, real_of(self.dtype())); }
Spec unary_angle(const char*, const Tensor& self) { return like(self, float_of(real_of(self.dtype()))); }
Spec unary_bits(const char* op, const Tensor& self) {
  if (!is_integral(self.dtype())) unsupported(op, self.dtype());
  return like(self, self.dtype());
}
Spec negation(const char* op, const Tensor& self) {
  check(self.dtype() != DType::Bool, ErrorKind::Runtime, op,
        ": Negation, the `-` operator, on a bool tensor is not supported. If you are trying to invert a mask, use the "
        "`~` or `logical_not()` operator instead.");
  return like(self, self.dtype());
}
Spec round(const Tensor& self, int64_t decimals) {
  check(decimals == 0 || !is_integral(self.dtype()), ErrorKind::NotImplemented,
        "round: argument 'decimals' must be 0 for dtype ", name(self.dtype()), ", got ", decimals);
  return unary_ordered("round", self);
}
Spec activation(const char* op, const Tensor& self) {
  if (!is_floating(self.dtype())) unsupported(op, self.dtype());
  return like(self, self.dtype());
}
Spec predicate(const char*, const Tensor& self) { return like(self, DType::Bool); }
Spec predicate_ordered(const char* op, const Tensor& self) {
  refuse_complex(op, self.dtype());
  return like(self, DType::Bool);
}

namespace {
/// Only integers from 2**63 up are wrapped as uint64: a smaller dtype has no result for them, not even a modular one.
void refuse_huge(const char* op, const Tensor& a, const Tensor& b, DType dtype) {
  if (a.dtype() == DType::UInt64) check_exact(op, "self", a, dtype);
  if (b.dtype() == DType::UInt64) check_exact(op, "other", b, dtype);
}
}  // namespace

Spec binary_slow(const char* op, const Tensor& a, const Tensor& b) {
  const DType dtype = common_dtype(a, b);
  if (is_integral(dtype)) refuse_huge(op, a, b, dtype);
  return broadcast(op, a, b, dtype);
}
Spec binary_ordered(const char* op, const Tensor& a, const Tensor& b) {
  Spec out = binary(op, a, b);
  refuse_complex(op, out.dtype);
  return out;
}
Spec binary_exact(const char* op, const Tensor& a, const Tensor& b) {
  Spec out = binary_ordered(op, a, b);
  check_exact(op, "self", a, out.dtype);
  check_exact(op, "other", b, out.dtype);
  return out;
}
Spec binary_float(const char* op, const Tensor& a, const Tensor& b) {
  const bool equal = a.dtype() == b.dtype();
  // Numbers go straight to floating point: huge ones are welcome.
  Spec out = equal ? binary(op, a, b) : broadcast(op, a, b, common_dtype(a, b));
  out.dtype = float_of(out.dtype);
  return out;
}
Spec binary_float_ordered(const char* op, const Tensor& a, const Tensor& b) {
  Spec out = binary_float(op, a, b);
  refuse_complex(op, out.dtype);
  return out;
}
Spec binary_int(const char* op, const Tensor& a, const Tensor& b) {
  Spec out = binary(op, a, b);
  if (!is_integral(out.dtype) || out.dtype == DType::Bool) unsupported(op, out.dtype);
  return out;
}
Spec binary_int_exact(const char* op, const Tensor& a, const Tensor& b) {
  Spec out = binary_int(op, a, b);
  check_exact(op, "self", a, out.dtype);
  check_exact(op, "other", b, out.dtype);
  return out;
}
Spec binary_bits(const char* op, const Tensor& a, const Tensor& b) {
  Spec out = binary(op, a, b);
  if (!is_integral(out.dtype)) unsupported(op, out.dtype);
  return out;
}
Spec compare(const char* op, const Tensor& a, const Tensor& b) {
  Spec out = binary(op, a, b);
  refuse_complex(op, out.dtype);
  out.dtype = DType::Bool;
  return out;
}
Spec compare_any(const char* op, const Tensor& a, const Tensor& b) {
  Spec out = binary(op, a, b);
  out.dtype = DType::Bool;
  return out;
}
Spec close(const char* op, const Tensor& self, const Tensor& other, double rtol, double atol) {
  check(rtol >= 0 && atol >= 0, ErrorKind::Runtime, op, ": arguments 'rtol' and 'atol' must not be negative, got ",
        rtol, " and ", atol);
  Spec out = compare_any(op, self, other);
  const DType dtype = common_dtype(self, other);
  check_exact(op, "self", self, dtype);
  check_exact(op, "other", other, dtype);
  return out;
}
namespace {
Shape broadcast_of(const char* op, const Tensor& a, const Tensor& b, const Tensor& c) {
  if (same_shape(a, b) && same_shape(a, c)) return Shape(a.sizes());
  return broadcast_shapes(broadcast_shapes(a.sizes(), b.sizes(), op), c.sizes(), op);
}
}  // namespace
Spec ternary(const char* op, const Tensor& a, const Tensor& b, const Tensor& c) {
  const Tensor all[] = {a, b, c};
  const DType dtype = result_type(all);
  return with_layout(broadcast_of(op, a, b, c), dtype, {&a, &b, &c});
}
Spec where(const Tensor& condition, const Tensor& a, const Tensor& b) {
  check(condition.dtype() == DType::Bool || condition.dtype() == DType::UInt8, ErrorKind::Runtime,
        "where: argument 'condition' has dtype ", name(condition.dtype()), ", expected bool");
  const Shape sizes = broadcast_of("where", a, b, condition);
  const DType dtype = common_dtype(a, b);
  check_number("where", "self", a, computing(dtype));
  check_number("where", "other", b, computing(dtype));
  return with_layout(sizes, dtype, {&a, &b, &condition});
}
Spec masked_fill(const Tensor& self, const Tensor& mask, const Tensor& value) {
  check(mask.dtype() == DType::Bool, ErrorKind::Runtime, "masked_fill: argument 'mask' has dtype ", name(mask.dtype()),
        ", expected bool");
  if (value.dim() != 0) [[unlikely]]
    fail(ErrorKind::Runtime, "masked_fill: argument 'value' has shape ", shape_text(value.sizes()),
         ", expected a number or a 0-dimensional tensor");
  check_number("masked_fill", "value", value, self.dtype());
  return Spec{broadcast_shapes(self.sizes(), mask.sizes(), "masked_fill"), self.dtype(), {}};  // row-major, as a copy
}

namespace {
void check_alpha(const char* op, DType dtype, const Scalar& alpha) {
  check(!alpha.is_floating() || !is_integral(dtype), ErrorKind::Runtime, op,
        ": argument 'alpha' must be an integer for dtype ", name(dtype));
  check(!alpha.is_complex() || is_complex(dtype), ErrorKind::Runtime, op, ": argument 'alpha' must be real for dtype ",
        name(dtype));
  check(alpha.kind() != Scalar::Kind::Bool || dtype == DType::Bool, ErrorKind::Runtime, op,
        ": argument 'alpha' must not be bool for dtype ", name(dtype));
  check_number(op, "alpha", alpha, dtype);
}
}  // namespace

Spec add(const Tensor& a, const Tensor& b, const Scalar& alpha) {
  Spec out = binary("add", a, b);
  if (alpha.kind() != Scalar::Kind::Int || is_integral(out.dtype)) check_alpha("add", out.dtype, alpha);
  return out;
}
// In the words that programs look for.
[[noreturn]] static void refuse_bool_difference(const Tensor& a, const Tensor& b) {
  if (a.dtype() == b.dtype())
    fail(ErrorKind::Runtime,
         "sub: Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` "
         "or `logical_xor()` operator instead.");
  fail(ErrorKind::Runtime,
       "sub: Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying "
       "to invert a mask, use the `~` or `logical_not()` operator instead.");
}
Spec sub(const Tensor& a, const Tensor& b, const Scalar& alpha) {
  Spec out = binary("sub", a, b);
  if (a.dtype() == DType::Bool || b.dtype() == DType::Bool) [[unlikely]]
    refuse_bool_difference(a, b);
  if (alpha.kind() != Scalar::Kind::Int || is_integral(out.dtype)) check_alpha("sub", out.dtype, alpha);
  return out;
}
Spec pow(const Tensor& a, const Tensor& b) {
  const DType dtype = common_dtype(a, b);
  if (is_integral(dtype) && b.is_wrapped_number() && b.dtype() == DType::Int64)
    check(*b.data<int64_t>() >= 0, ErrorKind::Runtime, "pow: integers to a negative integer power (",
          *b.data<int64_t>(), ") are not allowed");
  check_exact("pow", "exponent", b, dtype);
  return binary("pow", a, b);
}
Spec lerp(const Tensor& self, const Tensor& end, const Tensor& weight) {
  expect_dtype("lerp", "end", end, self.dtype(), "self");
  if (weight.dim() > 0) expect_dtype("lerp", "weight", weight, self.dtype(), "self");
  return ternary("lerp", self, end, weight);
}
Spec addcmul(const Tensor& self, const Tensor& a, const Tensor& b, const Scalar& value) {
  Spec out = ternary("addcmul", self, a, b);
  check(out.dtype != DType::Bool, ErrorKind::NotImplemented, "addcmul: not implemented for dtype bool");
  check_number("addcmul", "value", value, computing(out.dtype));
  return out;
}
Spec addcdiv(const Tensor& self, const Tensor& a, const Tensor& b, const Scalar& value) {
  Spec out = addcdiv(self, a, b);
  check_number("addcdiv", "value", value, computing(out.dtype));
  return out;
}
Spec addcdiv(const Tensor& self, const Tensor& a, const Tensor& b) {
  check(!(is_integral(a.dtype()) && is_integral(b.dtype())), ErrorKind::Runtime,
        "addcdiv: arguments 'tensor1' and 'tensor2' are integers; convert them to a floating-point dtype first");
  return ternary("addcdiv", self, a, b);
}
Spec clamp(const Tensor& self, const std::optional<Scalar>& min, const std::optional<Scalar>& max) {
  check(min || max, ErrorKind::Runtime, "clamp: at least one of the arguments 'min' and 'max' must not be None");
  DType dtype = self.dtype();
  for (const auto& bound : {min, max})
    if (bound && category(bound->dtype()) > category(dtype)) dtype = promoted(self, Tensor(*bound));
  refuse_complex("clamp", dtype);
  if (is_integral(dtype)) {  // bounds that no number of the dtype can meet
    if (min && side_of(*min, dtype) > 0) out_of_range("clamp", "min", *min, dtype);
    if (max && side_of(*max, dtype) < 0) out_of_range("clamp", "max", *max, dtype);
  }
  return like(self, dtype);
}
Spec clamp_bound(const char* op, const Tensor& self, const Tensor& bound) { return binary_ordered(op, self, bound); }

Spec cast(const Tensor& self, DType dtype) { return kept(self, dtype); }
Spec clone(const Tensor& self, std::optional<std::string_view> memory_format) {
  if (!memory_format || *memory_format == "preserve_format") return kept(self, self.dtype());
  if (*memory_format == "contiguous_format") return Spec{Shape(self.sizes()), self.dtype(), {}};
  return Spec{Shape(self.sizes()), self.dtype(), format_strides("clone", *memory_format, self.sizes())};
}
std::array<Spec, 2> native_dropout(const Tensor& self, double p) {
  check(p >= 0 && p <= 1, ErrorKind::Value, "native_dropout: argument 'p' must lie between 0 and 1, got ", p);
  if (!is_differentiable(self.dtype())) unsupported("native_dropout", self.dtype());
  return {like(self, self.dtype()), like(self, DType::Bool)};
}

}  // namespace taeda::infer
