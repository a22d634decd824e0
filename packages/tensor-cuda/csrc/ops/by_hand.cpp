// Element-wise operators that choose among lines, or treat a dtype apart; all others follow from their lines alone.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "ops/elementwise.h"

namespace taeda::cuda {
namespace {

Number number(double value) { return {value, 0, whole(value)}; }
Number number_of_whole(int64_t value) { return {double(value), 0, value}; }
Numbers numbers(std::initializer_list<Number> given) {
  Numbers to;
  size_t k = 0;
  for (const Number& n : given) to.as[k] = n, to.real[k++] = n.re;
  return to;
}
bool is(const Number& n, double value) { return n.re == value && n.im == 0; }

// --- arithmetic ---

void add(const Call& call) {
  static const Row &plain = line("add"), &scaled = line("add_alpha");
  const Tensor out = call.output(0), a = call.tensor(0), b = call.tensor(1);
  const Number alpha = call.number(2);
  const int dtype = common_dtype({&a, &b});
  if (is(alpha, 1)) return run_line(call, plain, dtype, out, {&a, &b});
  if (dtype == TAEDA_BOOL) return copy_elements(call, out, a);  // alpha is False
  run_line(call, scaled, dtype, out, {&a, &b}, numbers({alpha}));
}
void sub(const Call& call) {
  static const Row &plain = line("sub"), &scaled = line("add_alpha");
  const Tensor out = call.output(0), a = call.tensor(0), b = call.tensor(1);
  const Number alpha = call.number(2);
  const int dtype = common_dtype({&a, &b});
  if (is(alpha, 1)) return run_line(call, plain, dtype, out, {&a, &b});
  const Number negated{-alpha.re, -alpha.im, int64_t(-uint64_t(alpha.whole))};
  run_line(call, scaled, dtype, out, {&a, &b}, numbers({negated}));
}
/// bool operands are divided as small integers, and zero divisors are found by the kernel.
template <const char* Name>
void division(const Call& call) {
  static const Row& row = line(Name);
  const Tensor out = call.output(0), a = call.tensor(0), b = call.tensor(1);
  run_line(call, row, common_dtype({&a, &b}), out, {&a, &b}, {}, true);
}
void pow(const Call& call) {
  static const Row& row = line("pow");
  const Tensor out = call.output(0), a = call.tensor(0), b = call.tensor(1);
  const int dtype = common_dtype({&a, &b});
  if (b.on_host() && !is_whole_type(dtype)) {
    const Number e = number_of(b);
    const auto shortcut = [&](const char* name) { run_line(call, line(name), dtype, out, {&a}); };
    if (is(e, 2)) return shortcut("square");
    if (is(e, 3)) return shortcut("cube");
    if (is(e, -1)) return shortcut("reciprocal");
    if (is(e, 0.5) && !is_complex_type(dtype)) return shortcut("sqrt");
    if (is(e, -0.5) && !is_complex_type(dtype)) return shortcut("rsqrt");
    if (is(e, 1)) return copy_elements(call, out, a);
  }
  run_line(call, row, dtype, out, {&a, &b});
}
/// Steps in the dtype itself: a neighbour in float32 would round back.
void nextafter(const Call& call) {
  static const Row &plain = line("nextafter"), &half = line("half_next");
  const Tensor out = call.output(0), a = call.tensor(0), b = call.tensor(1);
  if (!is_half_type(out.dtype())) return run_line(call, plain, out.dtype(), out, {&a, &b});
  const auto bits = [&](const Tensor& t) {
    Tensor made = call.empty(t.sizes(), out.dtype());
    copy_elements(call, made, t);
    return made;
  };
  const Tensor x = bits(a), y = bits(b);
  const Tensor to = out.taken_for(TAEDA_UINT16), from = x.taken_for(TAEDA_UINT16), towards = y.taken_for(TAEDA_UINT16);
  const int64_t infinity = out.dtype() == TAEDA_FLOAT16 ? 0x7c00 : 0x7f80;
  run_line(call, half, TAEDA_UINT16, to, {&from, &towards}, numbers({number_of_whole(infinity)}));
}
/// What does nothing to truth values copies them.
template <const char* Name>
void but_of_bool(const Call& call) {
  static const Row& row = line(Name);
  const Tensor out = call.output(0), self = call.tensor(0);
  if (self.dtype() == TAEDA_BOOL) return copy_elements(call, out, self);
  run_line(call, row, self.dtype(), out, {&self});
}

template <class T>
Number end_of(bool low) {
  const T value = low ? std::numeric_limits<T>::lowest() : std::numeric_limits<T>::max();
  return {double(value), 0, int64_t(value)};
}
Number end_of_type(int dtype, bool low) {
  switch (dtype) {
    case TAEDA_INT8: return end_of<int8_t>(low);
    case TAEDA_INT16: return end_of<int16_t>(low);
    case TAEDA_INT32: return end_of<int32_t>(low);
    case TAEDA_INT64: return end_of<int64_t>(low);
    case TAEDA_UINT8: return end_of<uint8_t>(low);
    case TAEDA_UINT16: return end_of<uint16_t>(low);
    case TAEDA_UINT32: return end_of<uint32_t>(low);
    case TAEDA_UINT64: return end_of<uint64_t>(low);
    default: return number(low ? -INFINITY : INFINITY);
  }
}
/// Bounds beyond an integer type's range become its ends; a missing bound is the end.
Number bound(const Call& call, int i, int dtype, bool low) {
  const Number end = end_of_type(dtype, low), other = end_of_type(dtype, !low);
  if (!call.given(i)) return end;
  const Number n = call.number(i);
  if (!is_whole_type(dtype)) return n;
  const Number least = low ? end : other, most = low ? other : end;
  if (call.value(i).kind == TAEDA_VALUE_UINT) return dtype == TAEDA_UINT64 ? n : most;
  const bool natural = dtype == TAEDA_UINT64;
  if (n.re < least.re || (natural && n.whole < 0)) return least;
  if (n.re > most.re) return most;
  if (!natural && (n.whole < least.whole || n.whole > most.whole)) return n.whole < least.whole ? least : most;
  return n;
}
void clamp(const Call& call) {
  static const Row& row = line("clamp");
  const Tensor out = call.output(0), self = call.tensor(0);
  // Comparisons with NaN would leave the elements as they are.
  for (const int i : {1, 2})
    if (call.given(i) && std::isnan(call.number(i).re)) return fill_elements(call, out, number(NAN), TAEDA_FLOAT64);
  const int dtype = out.dtype();
  run_line(call, row, dtype, out, {&self}, numbers({bound(call, 1, dtype, true), bound(call, 2, dtype, false)}));
}
template <const char* Name>
void plain_of_two(const Call& call) {
  static const Row& row = line(Name);
  const Tensor out = call.output(0), a = call.tensor(0), b = call.tensor(1);
  run_line(call, row, common_dtype({&a, &b}), out, {&a, &b});
}

// --- comparison ---

/// Integers are finite numbers all.
template <const char* Name>
void predicate(const Call& call) {
  static const Row& row = line(Name);
  const Tensor out = call.output(0), self = call.tensor(0);
  if (!is_whole_type(self.dtype())) return run_line(call, row, self.dtype(), out, {&self});
  fill_elements(call, out, number_of_whole(std::string_view(Name) == "isfinite"), TAEDA_BOOL);
}
/// a > b is b < a.
template <const char* Name>
void swapped(const Call& call) {
  static const Row& row = line(Name);
  const Tensor out = call.output(0), a = call.tensor(0), b = call.tensor(1);
  run_line(call, row, common_dtype({&a, &b}), out, {&b, &a});
}
void where(const Call& call) {
  static const Row& row = line("select");
  const Tensor out = call.output(0), condition = call.tensor(0), a = call.tensor(1), b = call.tensor(2);
  run_line(call, row, common_dtype({&a, &b}), out, {&condition, &a, &b});
}
void masked_fill(const Call& call) {
  static const Row& row = line("select");
  const Tensor out = call.output(0), self = call.tensor(0), mask = call.tensor(1), value = call.tensor(2);
  run_line(call, row, self.dtype(), out, {&mask, &value, &self});
}

// --- functions ---

/// Integers stay as they are.
template <const char* Name>
void rounding(const Call& call) {
  static const Row& row = line(Name);
  const Tensor out = call.output(0), self = call.tensor(0);
  if (is_whole_type(self.dtype())) return copy_elements(call, out, self);
  run_line(call, row, self.dtype(), out, {&self});
}
constexpr char kRound[] = "round";
void round(const Call& call) {
  static const Row& row = line("round_decimals");
  const int64_t decimals = call.integer(1);
  if (decimals == 0) return rounding<kRound>(call);
  const Tensor out = call.output(0), self = call.tensor(0);
  const Number scale = number(std::pow(10.0, std::abs(double(decimals))));
  run_line(call, row, self.dtype(), out, {&self}, numbers({scale, number_of_whole(decimals < 0)}));
}
void conj(const Call& call) {
  static const Row& row = line("conj");
  const Tensor out = call.output(0), self = call.tensor(0);
  if (!is_complex_type(self.dtype())) return copy_elements(call, out, self);
  run_line(call, row, self.dtype(), out, {&self});
}
void logit(const Call& call) {
  static const Row& row = line("logit");
  const Tensor out = call.output(0), self = call.tensor(0);
  const int dtype = is_whole_type(self.dtype()) ? out.dtype() : self.dtype();
  run_line(call, row, dtype, out, {&self}, numbers({call.given(1) ? call.number(1) : number(-1)}));
}
double largest(int dtype) {
  switch (dtype) {
    case TAEDA_FLOAT16: return 65504;
    case TAEDA_BFLOAT16: return 0x1.fep127;
    case TAEDA_FLOAT32:
    case TAEDA_COMPLEX64: return std::numeric_limits<float>::max();
    default: return std::numeric_limits<double>::max();
  }
}
void nan_to_num(const Call& call) {
  static const Row& row = line("nan_to_num");
  const Tensor out = call.output(0), self = call.tensor(0);
  if (is_whole_type(self.dtype())) return copy_elements(call, out, self);
  const double most = largest(self.dtype());
  const auto given = [&](int i, double other) { return number(call.given(i) ? call.real(i) : other); };
  run_line(call, row, self.dtype(), out, {&self}, numbers({given(1, 0), given(2, most), given(3, -most)}));
}

// --- activations ---

void gelu(const Call& call) {
  static const Row &plain = line("gelu"), &by_tanh = line("gelu_tanh");
  const Tensor out = call.output(0), self = call.tensor(0);
  run_line(call, call.text(1) == "none" ? plain : by_tanh, self.dtype(), out, {&self});
}
void gelu_backward(const Call& call) {
  static const Row &plain = line("gelu_backward"), &by_tanh = line("gelu_tanh_backward");
  const Tensor out = call.output(0), grad = call.tensor(0), self = call.tensor(1);
  run_line(call, call.text(2) == "none" ? plain : by_tanh, common_dtype({&grad, &self}), out, {&grad, &self});
}
/// A bound that whole numbers are compared with.
Number whole_bound(const Call& call, int argument) {
  Number at = call.number(argument);
  if (call.value(argument).kind == TAEDA_VALUE_FLOAT) at.whole = whole(std::floor(at.re));
  return at;
}
void threshold(const Call& call) {
  static const Row &plain = line("threshold"), &of_whole = line("threshold_whole");
  const Tensor out = call.output(0), self = call.tensor(0);
  if (is_whole_type(self.dtype()))
    return run_line(call, of_whole, self.dtype(), out, {&self}, numbers({whole_bound(call, 1), call.number(2)}));
  run_line(call, plain, self.dtype(), out, {&self}, numbers({call.number(1), call.number(2)}));
}
void threshold_backward(const Call& call) {
  static const Row &plain = line("threshold_backward"), &of_whole = line("threshold_backward_whole");
  const Tensor out = call.output(0), grad = call.tensor(0), self = call.tensor(1);
  const int dtype = common_dtype({&grad, &self});
  if (!is_whole_type(dtype)) return run_line(call, plain, dtype, out, {&grad, &self}, numbers({call.number(2)}));
  run_line(call, of_whole, dtype, out, {&grad, &self}, numbers({whole_bound(call, 2)}));
}
/// A slope that is a function of the output `y`; where `y` is complex, the conjugate of it.
template <const char* Name>
void gradient_of_output(const Call& call) {
  static const Row &row = line(Name), &conjugate = line("conj");
  const Tensor out = call.output(0), grad = call.tensor(0), y = call.tensor(1);
  const int dtype = common_dtype({&grad, &y});
  if (!is_complex_type(y.dtype())) return run_line(call, row, dtype, out, {&grad, &y});
  const Tensor other = call.empty(y.sizes(), y.dtype());
  run_line(call, conjugate, y.dtype(), other, {&y});
  run_line(call, row, dtype, out, {&grad, &other});
}
/// The halves of a tensor along a dimension: what goes through a gate, and the gate.
std::array<Tensor, 2> halves_of(const Call& call, const Tensor& of, int dim, int64_t half) {
  std::vector<int64_t> sizes(of.sizes().begin(), of.sizes().end());
  sizes[size_t(dim)] = half;
  return {call.view(of, sizes, of.strides()), call.view(of, sizes, of.strides(), half * of.stride(dim))};
}
/// What a line makes of its operands, in new memory like that of `like`.
Tensor made_by(const Call& call, const char* name, const Tensor& like, std::initializer_list<const Tensor*> operands) {
  Tensor made = call.empty(like.sizes(), like.dtype());
  run_line(call, line(name), like.dtype(), made, operands);
  return made;
}
void glu(const Call& call) {
  static const Row& row = line("gated");
  const Tensor out = call.output(0), self = call.tensor(0);
  const int dim = wrapped(call.integer(1), self.ndim());
  const auto [value, gate] = halves_of(call, self, dim, out.size(dim));
  if (!is_complex_type(self.dtype())) return run_line(call, row, self.dtype(), out, {&value, &gate});
  const Tensor open = made_by(call, "sigmoid", gate, {&gate});
  run_line(call, line("mul"), self.dtype(), out, {&value, &open});
}
void glu_backward(const Call& call) {
  static const Row &of_value = line("gated"), &of_gate = line("gate_slope");
  const Tensor out = call.output(0), grad = call.tensor(0), self = call.tensor(1);
  const int dim = wrapped(call.integer(2), self.ndim()), dtype = common_dtype({&grad, &self});
  const int64_t half = grad.size(dim);
  const auto [value, gate] = halves_of(call, self, dim, half);
  const auto [to_value, to_gate] = halves_of(call, out, dim, half);
  if (!is_complex_type(dtype)) {
    run_line(call, of_value, dtype, to_value, {&grad, &gate});
    return run_line(call, of_gate, dtype, to_gate, {&grad, &value, &gate});
  }
  // grad conj(s) and grad conj(value s sigmoid(-gate)), s the sigmoid of the gate.
  const Tensor turned = made_by(call, "conj", gate, {&gate}), other = made_by(call, "conj", value, {&value}),
               open = made_by(call, "sigmoid", turned, {&turned}), against = made_by(call, "neg", turned, {&turned}),
               shut = made_by(call, "sigmoid", against, {&against});
  run_line(call, line("mul"), dtype, to_value, {&grad, &open});
  const Tensor passed = made_by(call, "mul", other, {&other, &open}),
               slope = made_by(call, "mul", passed, {&passed, &shut});
  run_line(call, line("mul"), dtype, to_gate, {&grad, &slope});
}
void dropout_backward(const Call& call) {
  static const Row &row = line("dropout_backward"), &product = line("mul"), &scaled = line("add_alpha");
  const Tensor out = call.output(0), grad = call.tensor(0), mask = call.tensor(1);
  if (!is_complex_type(out.dtype()))
    return run_line(call, row, out.dtype(), out, {&grad, &mask}, numbers({call.number(2)}));
  const Tensor kept = call.empty(out.sizes(), out.dtype()), none = call.empty(out.sizes(), out.dtype());
  run_line(call, product, out.dtype(), kept, {&grad, &mask});
  fill_elements(call, none, {}, TAEDA_COMPLEX128);
  run_line(call, scaled, out.dtype(), out, {&none, &kept}, numbers({call.number(2)}));
}

// --- copies ---

void cast(const Call& call) { copy_elements(call, call.output(0), call.tensor(0)); }
void copy_same(const Call& call) {
  const Tensor to(call.value(0).as.tensor), from(call.value(1).as.tensor);
  copy_elements(call, to, from);
}
void fill(const Call& call) {
  const Tensor to(call.value(0).as.tensor), from(call.value(1).as.tensor);
  copy_elements(call, to, from);
}

#define TAEDA_NAME(NAME) constexpr char k_##NAME[] = #NAME
TAEDA_NAME(abs);
TAEDA_NAME(square);
TAEDA_NAME(floor_divide);
TAEDA_NAME(fmod);
TAEDA_NAME(remainder);
TAEDA_NAME(trunc_divide);
TAEDA_NAME(minimum);
TAEDA_NAME(maximum);
TAEDA_NAME(isfinite);
TAEDA_NAME(isinf);
TAEDA_NAME(isnan);
TAEDA_NAME(isneginf);
TAEDA_NAME(isposinf);
TAEDA_NAME(le);
TAEDA_NAME(lt);
TAEDA_NAME(ceil);
TAEDA_NAME(floor);
TAEDA_NAME(trunc);
TAEDA_NAME(sigmoid_backward);
TAEDA_NAME(tanh_backward);
#undef TAEDA_NAME

void hardtanh(const Call& call) { clamp(call); }
constexpr char kSign[] = "sign";
void sgn(const Call& call) {
  static const Row& row = line(kSign);
  const Tensor out = call.output(0), self = call.tensor(0);
  run_line(call, row, self.dtype(), out, {&self});
}

}  // namespace

const std::vector<LineOperation>& line_operations() {
  static const std::vector<LineOperation> operations = [] {
    std::vector<LineOperation> all{
        {"abs", nullptr, but_of_bool<k_abs>},
        {"add", nullptr, add},
        {"cast", nullptr, cast},
        {"ceil", nullptr, rounding<k_ceil>},
        {"clamp", nullptr, clamp},
        {"clamp_max", nullptr, plain_of_two<k_minimum>},
        {"clamp_min", nullptr, plain_of_two<k_maximum>},
        {"clone", nullptr, cast},
        {"conj", nullptr, conj},
        {"copy_same_", nullptr, copy_same},
        {"fill_", nullptr, fill},
        {"floor", nullptr, rounding<k_floor>},
        {"floor_divide", nullptr, division<k_floor_divide>},
        {"fmod", nullptr, division<k_fmod>},
        {"ge", nullptr, swapped<k_le>},
        {"gelu", nullptr, gelu},
        {"gelu_backward", nullptr, gelu_backward},
        {"glu", nullptr, glu},
        {"glu_backward", nullptr, glu_backward},
        {"gt", nullptr, swapped<k_lt>},
        {"hardtanh", nullptr, hardtanh},
        {"isfinite", nullptr, predicate<k_isfinite>},
        {"isinf", nullptr, predicate<k_isinf>},
        {"isnan", nullptr, predicate<k_isnan>},
        {"isneginf", nullptr, predicate<k_isneginf>},
        {"isposinf", nullptr, predicate<k_isposinf>},
        {"logit", nullptr, logit},
        {"masked_fill", nullptr, masked_fill},
        {"nan_to_num", nullptr, nan_to_num},
        {"native_dropout_backward", nullptr, dropout_backward},
        {"nextafter", nullptr, nextafter},
        {"pow", nullptr, pow},
        {"remainder", nullptr, division<k_remainder>},
        {"round", nullptr, round},
        {"sgn", nullptr, sgn},
        {"sigmoid_backward", nullptr, gradient_of_output<k_sigmoid_backward>},
        {"square", nullptr, but_of_bool<k_square>},
        {"sub", nullptr, sub},
        {"tanh_backward", nullptr, gradient_of_output<k_tanh_backward>},
        {"threshold", nullptr, threshold},
        {"threshold_backward", nullptr, threshold_backward},
        {"trunc", nullptr, rounding<k_trunc>},
        {"trunc_divide", nullptr, division<k_trunc_divide>},
        {"where", nullptr, where},
    };
    for_each_row([&](const Row& row) {
      // C++ has no dots in names.
      const char* const name = std::string_view(row.name) == "polygamma_method" ? "polygamma.method" : row.name;
      if (row.operands != Operands::ByHand) all.push_back({name, &row, nullptr});
    });
    return all;
  }();
  return operations;
}

}  // namespace taeda::cuda
