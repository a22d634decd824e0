// Inference of the rnn family.
#include "taeda/ops/rnn.h"

#include <algorithm>
#include <tuple>

#include "taeda/half.h"
#include "infer/dtypes.h"

namespace taeda::infer {
namespace {

void expect_shape(const char* op, const char* argument, const Tensor& t, const Shape& expected) {
  check(std::ranges::equal(t.sizes(), IntSpan(expected)), ErrorKind::Runtime, op, ": argument '", argument,
        "' has shape ", shape_text(t.sizes()), ", expected ", shape_text(expected));
}
/// (N, gates * H) beside a state (N, H).
void expect_gates(const char* op, const Tensor& state, int64_t gates,
                  std::initializer_list<std::pair<const char*, const Tensor*>> arguments) {
  check(is_floating(state.dtype()), ErrorKind::NotImplemented, op, ": not implemented for dtype ", name(state.dtype()));
  check(state.dim() == 2, ErrorKind::Runtime, op, ": the state has shape ", shape_text(state.sizes()),
        ", expected (N, H)");
  for (const auto& [argument, t] : arguments) {
    expect_shape(op, argument, *t, Shape{state.size(0), gates * state.size(1)});
    expect_dtype(op, argument, *t, state.dtype());
  }
}

}  // namespace

std::array<Spec, 3> lstm_gates(const Tensor& input_gates, const Tensor& hidden_gates, const Tensor& c) {
  expect_gates("lstm_gates", c, 4, {{"input_gates", &input_gates}, {"hidden_gates", &hidden_gates}});
  return {spec(c.sizes(), c.dtype()), spec(c.sizes(), c.dtype()), spec(input_gates.sizes(), c.dtype())};
}
std::array<Spec, 2> lstm_gates_backward(const Tensor& grad_h, const Tensor& grad_c, const Tensor& gates,
                                        const Tensor& c, const Tensor& c_out) {
  expect_gates("lstm_gates_backward", c, 4, {{"gates", &gates}});
  expect_shape("lstm_gates_backward", "c_out", c_out, Shape(c.sizes()));
  if (grad_h.defined()) expect_shape("lstm_gates_backward", "grad_h", grad_h, Shape(c.sizes()));
  if (grad_c.defined()) expect_shape("lstm_gates_backward", "grad_c", grad_c, Shape(c.sizes()));
  return {spec(gates.sizes(), c.dtype()), spec(c.sizes(), c.dtype())};
}
std::array<Spec, 2> gru_gates(const Tensor& input_gates, const Tensor& hidden_gates, const Tensor& h) {
  expect_gates("gru_gates", h, 3, {{"input_gates", &input_gates}, {"hidden_gates", &hidden_gates}});
  return {spec(h.sizes(), h.dtype()), spec(Shape{h.size(0), 4 * h.size(1)}, h.dtype())};
}
std::array<Spec, 3> gru_gates_backward(const Tensor& grad, const Tensor& gates, const Tensor& h) {
  expect_gates("gru_gates_backward", h, 4, {{"gates", &gates}});
  expect_shape("gru_gates_backward", "grad", grad, Shape(h.sizes()));
  const Shape wide{h.size(0), 3 * h.size(1)};
  return {spec(wide, h.dtype()), spec(wide, h.dtype()), spec(h.sizes(), h.dtype())};
}

namespace {
/// Of what is kept for the gradient: as precise as it was computed.
DType kept_dtype(DType d) { return is_half(d) ? DType::Float32 : d; }
void expect_quarters(const char* op, const char* argument, const Tensor& t) {
  check(t.dim() == 3 && t.size(2) % 4 == 0, ErrorKind::Runtime, op, ": argument '", argument, "' has shape ",
        shape_text(t.sizes()), ", expected (T, N, 4H)");
  check(is_floating(t.dtype()), ErrorKind::NotImplemented, op, ": not implemented for dtype ", name(t.dtype()));
}
}  // namespace

std::array<Spec, 5> lstm_sequence(const Tensor& input_gates, const Tensor& h, const Tensor& c, const Tensor& w_hh,
                                  const Tensor& b_hh, bool) {
  const char* const op = "lstm_sequence";
  expect_quarters(op, "input_gates", input_gates);
  const int64_t steps = input_gates.size(0), n = input_gates.size(1), hidden = input_gates.size(2) / 4;
  expect_shape(op, "w_hh", w_hh, Shape{4 * hidden, hidden});
  expect_shape(op, "h", h, Shape{n, hidden});
  expect_shape(op, "c", c, Shape{n, hidden});
  if (b_hh.defined()) expect_shape(op, "b_hh", b_hh, Shape{4 * hidden});
  const DType dtype = input_gates.dtype();
  expect_dtype(op, "w_hh", w_hh, dtype);
  expect_dtype(op, "h", h, dtype);
  expect_dtype(op, "c", c, dtype);
  if (b_hh.defined()) expect_dtype(op, "b_hh", b_hh, dtype);
  return {spec(Shape{steps, n, hidden}, dtype), spec(Shape{n, hidden}, dtype), spec(Shape{n, hidden}, dtype),
          spec(input_gates.sizes(), kept_dtype(dtype)), spec(Shape{steps, n, hidden}, kept_dtype(dtype))};
}
std::array<Spec, 5> lstm_sequence_backward(const Tensor& grad_output, const Tensor& grad_h, const Tensor& grad_c,
                                           const Tensor& h, const Tensor& c, const Tensor& w_hh, const Tensor& output,
                                           const Tensor& gates, const Tensor& cells, bool) {
  const char* const op = "lstm_sequence_backward";
  expect_quarters(op, "gates", gates);
  const int64_t n = gates.size(1), hidden = gates.size(2) / 4;
  const Shape sequence{gates.size(0), n, hidden}, state{n, hidden}, square{4 * hidden, hidden};
  const DType dtype = w_hh.dtype();
  expect_dtype(op, "gates", gates, kept_dtype(dtype));
  expect_dtype(op, "cells", cells, kept_dtype(dtype));
  const std::tuple<const char*, const Tensor&, const Shape&> arguments[] = {{"output", output, sequence},
                                                                            {"cells", cells, sequence},
                                                                            {"h", h, state},
                                                                            {"c", c, state},
                                                                            {"w_hh", w_hh, square},
                                                                            {"grad_output", grad_output, sequence},
                                                                            {"grad_h", grad_h, state},
                                                                            {"grad_c", grad_c, state}};
  for (const auto& [argument, t, expected] : arguments) {
    if (!t.defined()) continue;
    expect_shape(op, argument, t, expected);
    if (&t != &cells) expect_dtype(op, argument, t, dtype);
  }
  return {spec(gates.sizes(), dtype), spec(h.sizes(), dtype), spec(c.sizes(), dtype), spec(w_hh.sizes(), dtype),
          spec(Shape{w_hh.size(0)}, dtype)};
}

}  // namespace taeda::infer
