// Recurrent cells and layers in terms of linear, fused gates and, for LSTM, whole sequences.
#include "taeda/ops/rnn.h"

#include <algorithm>
#include <tuple>

#include "cpu/blas.h"
#include "taeda/checked.h"
#include "taeda/half.h"
#include "taeda/interrupt.h"
#include "taeda/ops.h"

namespace taeda::impl {
namespace {

void expect(bool fits, const char* op, const char* argument, const Tensor& t, const std::string& expected) {
  check(fits, ErrorKind::Runtime, op, ": argument '", argument, "' has shape ", shape_text(t.sizes()), ", expected ",
        expected);
}
void expect_cell(const char* op, const Tensor& input, const Tensor& hx, const Tensor& w_ih, const Tensor& w_hh,
                 int64_t gates) {
  expect(input.dim() == 1 || input.dim() == 2, op, "input", input, "(N, in) or (in)");
  expect(hx.dim() == input.dim(), op, "hx", hx, detail::concat(input.dim(), " dimensions, as 'input'"));
  expect(hx.dim() == 1 || hx.size(0) == input.size(0), op, "hx", hx,
         detail::concat("(", input.size(0), ", hidden), the batch of 'input' of shape ", shape_text(input.sizes())));
  expect(w_ih.dim() == 2 && w_ih.size(1) == input.size(-1), op, "w_ih", w_ih,
         detail::concat("(", gates, " * hidden, ", input.size(-1), ")"));
  expect(w_hh.dim() == 2 && w_hh.size(1) == hx.size(-1) && w_hh.size(0) == gates * hx.size(-1), op, "w_hh", w_hh,
         detail::concat("(", gates * hx.size(-1), ", ", hx.size(-1), ")"));
  expect(w_ih.size(0) == w_hh.size(0), op, "w_ih", w_ih, detail::concat(w_hh.size(0), " rows"));
}

/// Gates in the dtype of the state that they change: autocast computes them in fewer bits.
Tensor as_state(const Tensor& gates, const Tensor& state) {
  return gates.dtype() == state.dtype() ? gates : ops::cast(gates, state.dtype());
}

Tensor simple_cell(const char* op, const Tensor& input, const Tensor& hx, const Tensor& w_ih, const Tensor& w_hh,
                   const Tensor& b_ih, const Tensor& b_hh) {
  expect_cell(op, input, hx, w_ih, w_hh, 1);
  return ops::add(ops::linear(input, w_ih, b_ih), ops::linear(hx, w_hh, b_hh));
}

}  // namespace

std::tuple<Tensor, Tensor> lstm_cell(const Tensor& input, TensorList hx, const Tensor& w_ih, const Tensor& w_hh,
                                     const Tensor& b_ih, const Tensor& b_hh) {
  check(hx.size() == 2, ErrorKind::Runtime, "lstm_cell: argument 'hx' has ", hx.size(), " tensors, expected (h, c)");
  expect_cell("lstm_cell", input, hx[0], w_ih, w_hh, 4);
  const bool single = input.dim() == 1;
  const auto row = [&](const Tensor& t) { return single ? ops::unsqueeze(t, 0) : t; };
  const auto [h, c, gates] = ops::lstm_gates(as_state(ops::linear(row(input), w_ih, b_ih), hx[1]),
                                             as_state(ops::linear(row(hx[0]), w_hh, b_hh), hx[1]), row(hx[1]));
  if (single) return {ops::select(h, 0, 0), ops::select(c, 0, 0)};
  return {h, c};
}
Tensor gru_cell(const Tensor& input, const Tensor& hx, const Tensor& w_ih, const Tensor& w_hh, const Tensor& b_ih,
                const Tensor& b_hh) {
  expect_cell("gru_cell", input, hx, w_ih, w_hh, 3);
  const bool single = input.dim() == 1;
  const auto row = [&](const Tensor& t) { return single ? ops::unsqueeze(t, 0) : t; };
  const Tensor h = std::get<0>(ops::gru_gates(as_state(ops::linear(row(input), w_ih, b_ih), hx),
                                              as_state(ops::linear(row(hx), w_hh, b_hh), hx), row(hx)));
  return single ? ops::select(h, 0, 0) : h;
}
Tensor rnn_tanh_cell(const Tensor& input, const Tensor& hx, const Tensor& w_ih, const Tensor& w_hh, const Tensor& b_ih,
                     const Tensor& b_hh) {
  return ops::tanh(simple_cell("rnn_tanh_cell", input, hx, w_ih, w_hh, b_ih, b_hh));
}
Tensor rnn_relu_cell(const Tensor& input, const Tensor& hx, const Tensor& w_ih, const Tensor& w_hh, const Tensor& b_ih,
                     const Tensor& b_hh) {
  return ops::relu(simple_cell("rnn_relu_cell", input, hx, w_ih, w_hh, b_ih, b_hh));
}

namespace {

/// The parameters of one layer and direction.
struct Weights {
  Tensor w_ih, w_hh, b_ih, b_hh;
};

/// What the four kinds of layers share: stacking, directions, dropout, batch_first.
struct Stack {
  const char* op;
  bool has_biases;
  int64_t layers, directions;
  TensorList params;
  Weights weights(int64_t layer, int64_t direction) const {
    const size_t each = has_biases ? 4 : 2, at = size_t(layer * directions + direction) * each;
    return {params[at], params[at + 1], has_biases ? params[at + 2] : Tensor(), has_biases ? params[at + 3] : Tensor()};
  }
  void expect_arguments(const Tensor& input, const Tensor& h, bool batch_first, int64_t gates) const {
    check(input.dim() == 3, ErrorKind::Runtime, op, ": argument 'input' has shape ", shape_text(input.sizes()),
          ", expected 3 dimensions");
    check(layers >= 1, ErrorKind::Runtime, op, ": argument 'num_layers' must be at least 1, got ", layers);
    check((Count(layers) * directions * (has_biases ? 4 : 2)).is(int64_t(params.size())), ErrorKind::Runtime, op,
          ": argument 'params' has ", params.size(), " tensors, expected ", directions * (has_biases ? 4 : 2),
          " for each of ", layers, " layers");
    check(input.size(batch_first ? 1 : 0) > 0, ErrorKind::Runtime, op, ": argument 'input' has shape ",
          shape_text(input.sizes()), ", expected a sequence of at least one step");
    const int64_t batch = input.size(batch_first ? 0 : 1);
    expect_state(h, batch);
    for (int64_t i = 0; i < layers * directions; ++i)
      expect_weights(weights(i / directions, i % directions), i < directions ? input.size(2) : directions * h.size(2),
                     h.size(2), gates);
  }
  void expect_state(const Tensor& h, int64_t batch) const {
    check(h.dim() == 3 && h.size(0) == layers * directions && h.size(1) == batch, ErrorKind::Runtime, op,
          ": argument 'hx' has shape ", shape_text(h.sizes()), ", expected (", layers * directions, ", ", batch,
          ", hidden)");
  }
  void expect_weights(const Weights& w, int64_t in, int64_t hidden, int64_t gates) const {
    const int64_t rows = gates * hidden;
    const std::tuple<const Tensor&, Shape, const char*> expected[] = {{w.w_ih, Shape{rows, in}, "w_ih"},
                                                                      {w.w_hh, Shape{rows, hidden}, "w_hh"},
                                                                      {w.b_ih, Shape{rows}, "b_ih"},
                                                                      {w.b_hh, Shape{rows}, "b_hh"}};
    for (const auto& [t, sizes, which] : expected)
      check(!t.defined() || std::ranges::equal(t.sizes(), IntSpan(sizes)), ErrorKind::Runtime, op,
            ": argument 'params' has a ", which, " of shape ", shape_text(t.defined() ? t.sizes() : IntSpan()),
            ", expected ", shape_text(sizes), " for ", in, " inputs and ", hidden, " hidden");
  }
};

/// Runs `layer(sequence, weights, index, reverse)`, which gives the output sequence (T, N, H), over layers and
/// directions.
template <class Layer>
Tensor run_stack(const Stack& s, const Tensor& input, double dropout, bool train, bool batch_first,
                 const Layer& layer) {
  Tensor sequence = batch_first ? ops::transpose(input, 0, 1) : input;
  for (int64_t l = 0; l < s.layers; ++l) {
    if (l > 0 && dropout > 0 && train) sequence = ops::dropout(sequence, dropout, true);
    const Tensor forward = layer(sequence, s.weights(l, 0), l * s.directions, false);
    if (s.directions == 2) {
      const Tensor both[] = {forward, layer(sequence, s.weights(l, 1), l * 2 + 1, true)};
      sequence = ops::cat(both, 2);
    } else {
      sequence = forward;
    }
  }
  return batch_first ? ops::transpose(sequence, 0, 1) : sequence;
}

/// Layers whose cell is one function of (input gates of a step, h): step by step.
template <class Cell>
std::tuple<Tensor, Tensor> run_cells(const char* op, const Tensor& input, const Tensor& hx, TensorList params,
                                     bool has_biases, int64_t num_layers, double dropout, bool train,
                                     bool bidirectional, bool batch_first, int64_t gate_count, const Cell& cell) {
  const Stack s{op, has_biases, num_layers, bidirectional ? 2 : 1, params};
  s.expect_arguments(input, hx, batch_first, gate_count);
  std::vector<Tensor> last(size_t(s.layers * s.directions));
  const Tensor output = run_stack(s, input, dropout, train, batch_first,
                                  [&](const Tensor& sequence, const Weights& w, int64_t index, bool reverse) {
                                    const Tensor gates = ops::linear(sequence, w.w_ih, w.b_ih);
                                    const int64_t steps = sequence.size(0);
                                    std::vector<Tensor> outputs(static_cast<size_t>(steps));
                                    Tensor h = ops::select(hx, 0, index);
                                    for (int64_t t = 0; t < steps; ++t) {
                                      poll_signals();
                                      const int64_t p = reverse ? steps - 1 - t : t;
                                      h = cell(ops::select(gates, 0, p), ops::linear(h, w.w_hh, w.b_hh), h);
                                      outputs[size_t(p)] = h;
                                    }
                                    last[size_t(index)] = h;
                                    return ops::stack(outputs, 0);
                                  });
  return {output, ops::stack(last, 0)};
}

/// Whether halves go through an LSTM as they are, not in float32, which rounds but once: other devices have kernels
/// that keep what matters in float32, and large layers of bfloat16 are multiplied as such where that is faster.
bool passes_halves(const Tensor& input, TensorList hx, TensorList params, bool batch_first) {
  if (input.device().backend != 0) return true;
  const bool same = input.dtype() == DType::BFloat16 && std::ranges::all_of(params, [](const Tensor& t) {
                      return !t.defined() || t.dtype() == DType::BFloat16;
                    });
  const int64_t hidden = hx[0].size(-1), rows = input.size(batch_first ? 0 : 1);
  return same && rows * hidden >= 1 << 11 && blas::worth_bfloat16(rows, 4 * hidden, hidden);
}

}  // namespace

std::tuple<Tensor, Tensor, Tensor> lstm(const Tensor& input, TensorList hx, TensorList params, bool has_biases,
                                        int64_t num_layers, double dropout, bool train, bool bidirectional,
                                        bool batch_first) {
  check(hx.size() == 2, ErrorKind::Runtime, "lstm: argument 'hx' has ", hx.size(), " tensors, expected (h, c)");
  const Stack s{"lstm", has_biases, num_layers, bidirectional ? 2 : 1, params};
  s.expect_arguments(input, hx[0], batch_first, 4);
  s.expect_state(hx[1], hx[0].size(1));
  if (any_half(input, hx, params) && !passes_halves(input, hx, params, batch_first)) {
    const DType dtype = joint_dtype({TensorList(&input, 1), hx, params});
    return from_float32(lstm(in_float32(input), in_float32(hx), in_float32(params), has_biases, num_layers, dropout,
                             train, bidirectional, batch_first),
                        dtype);
  }
  const size_t count = size_t(s.layers * s.directions);
  std::vector<Tensor> last_h(count), last_c(count);
  const Tensor output = run_stack(s, input, dropout, train, batch_first,
                                  [&](const Tensor& sequence, const Weights& w, int64_t index, bool reverse) {
                                    const auto [y, h, c, gates, cells] = ops::lstm_sequence(
                                        ops::linear(sequence, w.w_ih, w.b_ih), ops::select(hx[0], 0, index),
                                        ops::select(hx[1], 0, index), w.w_hh, w.b_hh, reverse);
                                    last_h[size_t(index)] = h;
                                    last_c[size_t(index)] = c;
                                    return y;
                                  });
  return {output, ops::stack(last_h, 0), ops::stack(last_c, 0)};
}
std::tuple<Tensor, Tensor> gru(const Tensor& input, const Tensor& hx, TensorList params, bool has_biases,
                               int64_t num_layers, double dropout, bool train, bool bidirectional, bool batch_first) {
  return run_cells(
      "gru", input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first, 3,
      [](const Tensor& a, const Tensor& b, const Tensor& h) { return std::get<0>(ops::gru_gates(a, b, h)); });
}
std::tuple<Tensor, Tensor> rnn_tanh(const Tensor& input, const Tensor& hx, TensorList params, bool has_biases,
                                    int64_t num_layers, double dropout, bool train, bool bidirectional,
                                    bool batch_first) {
  return run_cells("rnn_tanh", input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first, 1,
                   [](const Tensor& a, const Tensor& b, const Tensor&) { return ops::tanh(ops::add(a, b)); });
}
std::tuple<Tensor, Tensor> rnn_relu(const Tensor& input, const Tensor& hx, TensorList params, bool has_biases,
                                    int64_t num_layers, double dropout, bool train, bool bidirectional,
                                    bool batch_first) {
  return run_cells("rnn_relu", input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first, 1,
                   [](const Tensor& a, const Tensor& b, const Tensor&) { return ops::relu(ops::add(a, b)); });
}

}  // namespace taeda::impl
