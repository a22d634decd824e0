// Recurrent cells and layers in terms of linear, fused gates and, for LSTM, whole sequences.
#include "taeda/ops/rnn.h"

#include <algorithm>
#include <tuple>

#include "composite/host.h"
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
  Tensor w_ih, w_hh, b_ih, b_hh, w_hr;
};
/// What goes from step to step: h, and c of an LSTM.
using State = std::vector<Tensor>;

/// What the four kinds of layers share: stacking, directions, dropout, batch_first, packed sequences.
struct Stack {
  const char* op;
  bool has_biases;
  int64_t layers, directions;
  double dropout;  // 0 outside of training
  TensorList params;
  int64_t gates;
  bool projected = false;

  size_t each() const { return (has_biases ? 4 : 2) + (projected ? 1 : 0); }
  Weights weights(int64_t index) const {
    const size_t at = size_t(index) * each();
    return {params[at], params[at + 1], has_biases ? params[at + 2] : Tensor(), has_biases ? params[at + 3] : Tensor(),
            projected ? params[at + each() - 1] : Tensor()};
  }
  /// `states` are checked against each other by those who know how many there are.
  void expect_arguments(const Tensor& input, TensorList states, int64_t batch) const {
    check(layers >= 1, ErrorKind::Runtime, op, ": argument 'num_layers' must be at least 1, got ", layers);
    check((Count(layers) * directions * int64_t(each())).is(int64_t(params.size())), ErrorKind::Runtime, op,
          ": argument 'params' has ", params.size(), " tensors, expected ", directions * int64_t(each()),
          " for each of ", layers, " layers");
    for (const Tensor& state : states) expect_state(state, batch);
    const int64_t hidden = states[states.size() - 1].size(2), out = states[0].size(2);
    for (int64_t i = 0; i < layers * directions; ++i)
      expect_weights(weights(i), i < directions ? input.size(-1) : directions * out, hidden, out);
  }
  void expect_state(const Tensor& h, int64_t batch) const {
    check(h.dim() == 3 && h.size(0) == layers * directions && h.size(1) == batch, ErrorKind::Runtime, op,
          ": argument 'hx' has shape ", shape_text(h.sizes()), ", expected (", layers * directions, ", ", batch,
          ", hidden)");
  }
  void expect_weights(const Weights& w, int64_t in, int64_t hidden, int64_t out) const {
    const int64_t rows = gates * hidden;
    const std::tuple<const Tensor&, Shape, const char*> expected[] = {{w.w_ih, Shape{rows, in}, "w_ih"},
                                                                      {w.w_hh, Shape{rows, out}, "w_hh"},
                                                                      {w.b_ih, Shape{rows}, "b_ih"},
                                                                      {w.b_hh, Shape{rows}, "b_hh"},
                                                                      {w.w_hr, Shape{out, hidden}, "w_hr"}};
    for (const auto& [t, sizes, which] : expected)
      check(!t.defined() || std::ranges::equal(t.sizes(), IntSpan(sizes)), ErrorKind::Runtime, op,
            ": argument 'params' has a ", which, " of shape ", shape_text(t.defined() ? t.sizes() : IntSpan()),
            ", expected ", shape_text(sizes), " for ", in, " inputs and ", hidden, " hidden");
  }
};

/// Steps after each other in which as many sequences are running.
struct Block {
  int64_t running, steps;
};
/// `batch` sequences, as the states say.
std::vector<Block> blocks_of(const char* op, const Tensor& data, const Tensor& batch_sizes, int64_t batch) {
  check(batch_sizes.dim() == 1 && batch_sizes.dtype() == DType::Int64, ErrorKind::Runtime, op,
        ": argument 'batch_sizes' is ", name(batch_sizes.dtype()), " of shape ", shape_text(batch_sizes.sizes()),
        ", expected one dimension of int64");
  check(data.dim() == 2, ErrorKind::Runtime, op, ": argument 'data' has shape ", shape_text(data.sizes()),
        ", expected (rows, in)");
  if (!readable(batch_sizes) && batch >= 1 && data.size(0) > batch)  // results have the same shapes however they end
    return {{batch, 1}, {1, data.size(0) - batch}};
  if (!readable(batch_sizes)) return {{data.size(0), 1}};
  const Tensor rows = on_host(batch_sizes);
  const int64_t* const running = rows.data<int64_t>();
  std::vector<Block> blocks;
  int64_t sum = 0;
  for (int64_t t = 0; t < rows.numel(); ++t) {
    check(running[t] >= 1 && (t == 0 || running[t] <= running[t - 1]), ErrorKind::Runtime, op,
          ": argument 'batch_sizes' has ", running[t], " at step ", t, ", expected 1 to ",
          t ? running[t - 1] : data.size(0), ": sequences end, and none begins later");
    sum += running[t];
    if (t && running[t] == running[t - 1]) ++blocks.back().steps;
    else blocks.push_back({running[t], 1});
  }
  check(!blocks.empty() && sum == data.size(0), ErrorKind::Runtime, op, ": argument 'batch_sizes' sums to ", sum,
        ", expected the ", data.size(0), " rows of 'data'");
  return blocks;
}
State part_of(const State& state, int64_t from, int64_t count) {
  State found;
  for (const Tensor& t : state) found.push_back(ops::narrow(t, 0, from, count));
  return found;
}
State joined(std::span<const State> parts) {
  State found;
  for (size_t kind = 0; kind < parts[0].size(); ++kind) {
    std::vector<Tensor> own;
    for (const State& part : parts) own.push_back(part[kind]);
    found.push_back(ops::cat(own, 0));
  }
  return found;
}
/// One layer in one direction over packed sequences by `run`, which takes blocks (T, running, in) from a state.
template <class Run>
Tensor run_packed(const Run& run, const Tensor& data, std::span<const Block> blocks, State& state, bool reverse) {
  std::vector<Tensor> outputs(blocks.size());
  std::vector<State> ended;
  const State initial = state;
  if (reverse) state = part_of(initial, 0, blocks.back().running);
  int64_t row = reverse ? data.size(0) : 0;
  for (size_t n = 0; n < blocks.size(); ++n) {
    const size_t at = reverse ? blocks.size() - 1 - n : n;
    const auto [running, steps] = blocks[at];
    const int64_t before = state[0].size(0);
    if (running < before) {  // some have ended
      ended.insert(ended.begin(), part_of(state, running, before - running));
      state = part_of(state, 0, running);
    } else if (running > before) {  // backwards they join, each from its own state
      const State parts[] = {state, part_of(initial, before, running - before)};
      state = joined(parts);
    }
    if (reverse) row -= running * steps;
    const Tensor block = ops::narrow(data, 0, row, running * steps);
    const Tensor out = run(ops::reshape(block, Shape{steps, running, data.size(1)}), state);
    outputs[at] = ops::reshape(out, Shape{running * steps, out.size(2)});
    if (!reverse) row += running * steps;
  }
  ended.insert(ended.begin(), state);
  state = joined(ended);
  return ops::cat(outputs, 0);
}

/// Runs `layer(sequence, weights, state, reverse)`, which gives the output sequence (T, N, H) and changes the state,
/// over layers and directions: of a sequence (T, N, in), or of a packed one in blocks. The states become the last ones.
template <class Layer>
Tensor run_stack(const Stack& s, Tensor sequence, std::span<const Block> blocks, State& states, const Layer& layer) {
  std::vector<std::vector<Tensor>> last(states.size());
  for (int64_t l = 0; l < s.layers; ++l) {
    if (l > 0 && s.dropout > 0) sequence = ops::dropout(sequence, s.dropout, true);
    std::vector<Tensor> outputs;
    for (int64_t d = 0; d < s.directions; ++d) {
      const int64_t index = l * s.directions + d;
      const Weights w = s.weights(index);
      State state;
      for (const Tensor& kind : states) state.push_back(ops::select(kind, 0, index));
      const auto run = [&](const Tensor& part, State& now) { return layer(part, w, now, d == 1); };
      outputs.push_back(blocks.empty() ? run(sequence, state) : run_packed(run, sequence, blocks, state, d == 1));
      for (size_t kind = 0; kind < last.size(); ++kind) last[kind].push_back(state[kind]);
    }
    sequence = outputs.size() == 1 ? outputs[0] : ops::cat(outputs, -1);
  }
  for (size_t kind = 0; kind < last.size(); ++kind) states[kind] = ops::stack(last[kind], 0);
  return sequence;
}
/// As `run_stack`, with sequences as a call gives them.
template <class Layer>
Tensor run_sequences(const Stack& s, const Tensor& input, State& states, bool batch_first, const Layer& layer) {
  check(input.dim() == 3, ErrorKind::Runtime, s.op, ": argument 'input' has shape ", shape_text(input.sizes()),
        ", expected 3 dimensions");
  check(input.size(batch_first ? 1 : 0) > 0, ErrorKind::Runtime, s.op, ": argument 'input' has shape ",
        shape_text(input.sizes()), ", expected a sequence of at least one step");
  s.expect_arguments(input, states, input.size(batch_first ? 0 : 1));
  if (!batch_first) return run_stack(s, input, {}, states, layer);
  return ops::transpose(run_stack(s, ops::transpose(input, 0, 1), {}, states, layer), 0, 1);
}
template <class Layer>
Tensor run_data(const Stack& s, const Tensor& data, const Tensor& batch_sizes, State& states, const Layer& layer) {
  const int64_t batch = states[0].dim() == 3 ? states[0].size(1) : 0;
  const std::vector<Block> blocks = blocks_of(s.op, data, batch_sizes, batch);
  s.expect_arguments(data, states, blocks[0].running);
  return run_stack(s, data, blocks, states, layer);
}

/// A layer step by step: `cell(input gates of a step, weights, state)` gives the next state.
template <class Cell>
auto by_steps(const Cell& cell) {
  return [&cell](const Tensor& sequence, const Weights& w, State& state, bool reverse) {
    const Tensor gates = ops::linear(sequence, w.w_ih, w.b_ih);
    const int64_t steps = sequence.size(0);
    std::vector<Tensor> outputs(static_cast<size_t>(steps));
    for (int64_t t = 0; t < steps; ++t) {
      poll_signals();
      const int64_t p = reverse ? steps - 1 - t : t;
      state = cell(ops::select(gates, 0, p), w, state);
      outputs[size_t(p)] = state[0];
    }
    return ops::stack(outputs, 0);
  };
}
Tensor hidden_gates(const Weights& w, const State& state) { return ops::linear(state[0], w.w_hh, w.b_hh); }
State gru_step(const Tensor& gates, const Weights& w, const State& state) {
  return {std::get<0>(ops::gru_gates(gates, hidden_gates(w, state), state[0]))};
}
State tanh_step(const Tensor& gates, const Weights& w, const State& state) {
  return {ops::tanh(ops::add(gates, hidden_gates(w, state)))};
}
State relu_step(const Tensor& gates, const Weights& w, const State& state) {
  return {ops::relu(ops::add(gates, hidden_gates(w, state)))};
}
State projected_step(const Tensor& gates, const Weights& w, const State& state) {
  const auto [h, c, active] = ops::lstm_gates(gates, hidden_gates(w, state), state[1]);
  return {ops::linear(h, w.w_hr, Tensor()), c};
}
/// All steps of an LSTM at once.
Tensor lstm_layer(const Tensor& sequence, const Weights& w, State& state, bool reverse) {
  const auto [y, h, c, gates, cells] =
      ops::lstm_sequence(ops::linear(sequence, w.w_ih, w.b_ih), state[0], state[1], w.w_hh, w.b_hh, reverse);
  state = {h, c};
  return y;
}

/// Whether halves go through an LSTM as they are, not in float32, which rounds but once: other devices have kernels
/// that keep what matters in float32, and large layers of bfloat16 are multiplied as such where that is faster.
bool passes_halves(const Tensor& input, TensorList hx, TensorList params) {
  if (input.device().backend != 0) return true;
  const bool same = input.dtype() == DType::BFloat16 && std::ranges::all_of(params, [](const Tensor& t) {
                      return !t.defined() || t.dtype() == DType::BFloat16;
                    });
  if (!same || hx[0].dim() != 3) return false;
  const int64_t hidden = hx[0].size(2), rows = hx[0].size(1);
  return rows * hidden >= 1 << 11 && blas::worth_bfloat16(rows, 4 * hidden, hidden);
}
/// Both forms of an LSTM: `run(stack, input, states, layer)` goes over the sequences.
template <class Run>
std::tuple<Tensor, Tensor, Tensor> run_lstm(const Tensor& input, TensorList hx, TensorList params, bool has_biases,
                                            int64_t num_layers, double dropout, bool train, bool bidirectional,
                                            const Run& run) {
  check(hx.size() == 2, ErrorKind::Runtime, "lstm: argument 'hx' has ", hx.size(), " tensors, expected (h, c)");
  if (any_half(input, hx, params) && !passes_halves(input, hx, params)) {
    const DType dtype = joint_dtype({TensorList(&input, 1), hx, params});
    return from_float32(run_lstm(in_float32(input), in_float32(hx), in_float32(params), has_biases, num_layers, dropout,
                                 train, bidirectional, run),
                        dtype);
  }
  Stack s{"lstm", has_biases, num_layers, bidirectional ? 2 : 1, train ? dropout : 0, params, 4};
  s.projected = hx[0].dim() == 3 && hx[1].dim() == 3 && hx[0].size(2) != hx[1].size(2);
  State states(hx.begin(), hx.end());
  const Tensor output =
      s.projected ? run(s, input, states, by_steps(projected_step)) : run(s, input, states, lstm_layer);
  return {output, states[0], states[1]};
}

}  // namespace

std::tuple<Tensor, Tensor, Tensor> lstm(const Tensor& input, TensorList hx, TensorList params, bool has_biases,
                                        int64_t num_layers, double dropout, bool train, bool bidirectional,
                                        bool batch_first) {
  return run_lstm(input, hx, params, has_biases, num_layers, dropout, train, bidirectional,
                  [&](const Stack& s, const Tensor& sequence, State& states, const auto& layer) {
                    return run_sequences(s, sequence, states, batch_first, layer);
                  });
}
std::tuple<Tensor, Tensor, Tensor> lstm_data(const Tensor& data, const Tensor& batch_sizes, TensorList hx,
                                             TensorList params, bool has_biases, int64_t num_layers, double dropout,
                                             bool train, bool bidirectional) {
  return run_lstm(data, hx, params, has_biases, num_layers, dropout, train, bidirectional,
                  [&](const Stack& s, const Tensor& rows, State& states, const auto& layer) {
                    return run_data(s, rows, batch_sizes, states, layer);
                  });
}

namespace {

/// Settings of a layer of cells as its operators are given them.
struct Settings {
  bool has_biases;
  int64_t num_layers;
  double dropout;
  bool train, bidirectional;
};
Stack stack_of(const char* op, int64_t gates, const Settings& with, TensorList params) {
  return {op,   with.has_biases, with.num_layers, with.bidirectional ? 2 : 1, with.train ? with.dropout : 0, params,
          gates};
}
template <class Step>
std::tuple<Tensor, Tensor> run_cells(const Stack& s, const Tensor& input, const Tensor& hx, bool batch_first,
                                     const Step& step) {
  State states{hx};
  const Tensor output = run_sequences(s, input, states, batch_first, by_steps(step));
  return {output, states[0]};
}
template <class Step>
std::tuple<Tensor, Tensor> run_cells(const Stack& s, const Tensor& data, const Tensor& batch_sizes, const Tensor& hx,
                                     const Step& step) {
  State states{hx};
  const Tensor output = run_data(s, data, batch_sizes, states, by_steps(step));
  return {output, states[0]};
}

}  // namespace

std::tuple<Tensor, Tensor> gru(const Tensor& input, const Tensor& hx, TensorList params, bool has_biases,
                               int64_t num_layers, double dropout, bool train, bool bidirectional, bool batch_first) {
  const Settings with{has_biases, num_layers, dropout, train, bidirectional};
  return run_cells(stack_of("gru", 3, with, params), input, hx, batch_first, gru_step);
}
std::tuple<Tensor, Tensor> gru_data(const Tensor& data, const Tensor& batch_sizes, const Tensor& hx, TensorList params,
                                    bool has_biases, int64_t num_layers, double dropout, bool train,
                                    bool bidirectional) {
  const Settings with{has_biases, num_layers, dropout, train, bidirectional};
  return run_cells(stack_of("gru", 3, with, params), data, batch_sizes, hx, gru_step);
}
std::tuple<Tensor, Tensor> rnn_tanh(const Tensor& input, const Tensor& hx, TensorList params, bool has_biases,
                                    int64_t num_layers, double dropout, bool train, bool bidirectional,
                                    bool batch_first) {
  const Settings with{has_biases, num_layers, dropout, train, bidirectional};
  return run_cells(stack_of("rnn_tanh", 1, with, params), input, hx, batch_first, tanh_step);
}
std::tuple<Tensor, Tensor> rnn_tanh_data(const Tensor& data, const Tensor& batch_sizes, const Tensor& hx,
                                         TensorList params, bool has_biases, int64_t num_layers, double dropout,
                                         bool train, bool bidirectional) {
  const Settings with{has_biases, num_layers, dropout, train, bidirectional};
  return run_cells(stack_of("rnn_tanh", 1, with, params), data, batch_sizes, hx, tanh_step);
}
std::tuple<Tensor, Tensor> rnn_relu(const Tensor& input, const Tensor& hx, TensorList params, bool has_biases,
                                    int64_t num_layers, double dropout, bool train, bool bidirectional,
                                    bool batch_first) {
  const Settings with{has_biases, num_layers, dropout, train, bidirectional};
  return run_cells(stack_of("rnn_relu", 1, with, params), input, hx, batch_first, relu_step);
}
std::tuple<Tensor, Tensor> rnn_relu_data(const Tensor& data, const Tensor& batch_sizes, const Tensor& hx,
                                         TensorList params, bool has_biases, int64_t num_layers, double dropout,
                                         bool train, bool bidirectional) {
  const Settings with{has_biases, num_layers, dropout, train, bidirectional};
  return run_cells(stack_of("rnn_relu", 1, with, params), data, batch_sizes, hx, relu_step);
}

}  // namespace taeda::impl
