// All steps of a recurrent layer: for each a product and a kernel of gates; weights' gradients once for all of them.
#include <array>

#include "kernels/loss.h"
#include "ops/elementwise.h"
#include "ops/matrix.h"
#include "ops/read.h"

namespace taeda::cuda {
namespace {

using Three = std::array<int64_t, 3>;

/// Step t of (steps, rows, width), row-major.
Array step_of(const Tensor& t, int64_t step) {
  if (!t) return {};
  Array found = t.array();
  found.data += uint64_t(step * t.size(1) * t.size(2) * t.item_size());
  return found;
}
/// Some steps as one matrix in a batch of one, or it turned.
Tensor matrix(const Call& call, const Tensor& t, int64_t first, int64_t steps, bool turned = false) {
  const int64_t rows = steps * t.size(-2), width = t.size(-1), offset = first * t.size(-2) * width;
  if (turned) return call.view(t, Three{1, width, rows}, Three{0, 1, width}, offset);
  return call.view(t, Three{1, rows, width}, Three{0, width, 1}, offset);
}

void lstm_sequence(const Call& call) {
  const Tensor out = call.output(0), h_out = call.output(1), c_out = call.output(2);
  const Tensor gates = call.output(3), cells = call.output(4);
  const Read input(call, call.tensor(0)), h(call, call.tensor(1)), c(call, call.tensor(2)),
      weight(call, call.tensor(3)), bias(call, call.tensor(4));
  const bool reverse = call.flag(5);
  const Target to(call, out), to_gates(call, gates), to_cells(call, cells);
  const int64_t steps = out.size(0), rows = out.size(1), width = out.size(2);
  if (steps == 0 || rows == 0) {
    call.copy(h_out, call.tensor(1));
    return call.copy(c_out, call.tensor(2));
  }
  const Tensor product = call.empty({1, rows, 4 * width}, out.dtype());
  const Tensor turned = matrix(call, weight.rows(), 0, 1, true);
  int64_t last = -1;
  for (int64_t n = 0; n < steps; ++n) {
    const int64_t p = reverse ? steps - 1 - n : n;
    if (last < 0) multiply(call, product, matrix(call, h.rows(), 0, 1), turned);
    else multiply(call, product, matrix(call, to.tensor(), last, 1), turned);
    launch_in<LstmGates>(call, out.dtype(), rows * width, Gates{width}, step_of(input.rows(), p), product.array(),
                         bias.array(), last < 0 ? c.array() : step_of(to_cells.tensor(), last), step_of(to.tensor(), p),
                         step_of(to_cells.tensor(), p), step_of(to_gates.tensor(), p));
    last = p;
  }
  const std::array<int64_t, 2> sizes{rows, width}, strides{width, 1};
  call.copy(h_out, call.view(to.tensor(), sizes, strides, last * rows * width));
  call.copy(c_out, call.view(to_cells.tensor(), sizes, strides, last * rows * width));
  for (const Target* t : {&to, &to_gates, &to_cells}) t->done();
}
void lstm_sequence_backward(const Call& call) {
  const Tensor to_input = call.output(0), to_h = call.output(1), to_c = call.output(2), to_weight = call.output(3),
               to_bias = call.output(4);
  const Read grad(call, call.tensor(0)), h(call, call.tensor(3)), c(call, call.tensor(4)), weight(call, call.tensor(5)),
      output(call, call.tensor(6)), gates(call, call.tensor(7)), cells(call, call.tensor(8));
  const bool reverse = call.flag(9);
  const int64_t steps = to_input.size(0), rows = to_input.size(1), width = to_input.size(2) / 4;
  const Target slopes(call, to_input);
  // What goes from step to step is not rounded to halves.
  const int kept = is_half_type(to_h.dtype()) ? int(TAEDA_FLOAT32) : to_h.dtype();
  const Tensor dh = call.empty(to_h.sizes(), kept), dc = call.empty(to_c.sizes(), kept);
  const auto begin = [&](const Tensor& to, int argument) {
    if (const Tensor given = call.tensor(argument)) call.copy(to, given);
    else fill_elements(call, to, {}, TAEDA_FLOAT64);
  };
  const auto end = [&] { call.copy(to_h, dh), call.copy(to_c, dc); };
  begin(dh, 1), begin(dc, 2);
  if (steps == 0 || rows == 0) {
    for (const Tensor* t : {&to_input, &to_weight, &to_bias}) fill_elements(call, *t, {}, TAEDA_FLOAT64);
    return end();
  }
  const Tensor w = matrix(call, weight.rows(), 0, 1), dh_matrix = matrix(call, dh, 0, 1);
  for (int64_t n = steps; n-- > 0;) {
    const int64_t p = reverse ? steps - 1 - n : n, last = reverse ? p + 1 : p - 1;
    launch_in<LstmGatesGradient>(call, to_input.dtype(), rows * width, Gates{width}, dh.array(),
                                 step_of(grad.rows(), p), dc.array(), step_of(gates.rows(), p),
                                 n ? step_of(cells.rows(), last) : c.array(), step_of(cells.rows(), p),
                                 step_of(slopes.tensor(), p), dc.array());
    multiply(call, dh_matrix, matrix(call, slopes.tensor(), p, 1), w);
  }
  // A step's gates come from the output of the one before, the first one's from h.
  const Target to_w(call, to_weight);
  const Tensor w_matrix = matrix(call, to_w.tensor(), 0, 1);
  const int64_t first = reverse ? steps - 1 : 0;
  multiply(call, w_matrix, matrix(call, slopes.tensor(), first, 1, true), matrix(call, h.rows(), 0, 1));
  if (steps > 1)
    multiply(call, w_matrix, matrix(call, slopes.tensor(), reverse ? 0 : 1, steps - 1, true),
             matrix(call, output.rows(), reverse ? 1 : 0, steps - 1), &w_matrix, {1, 0, 1}, {1, 0, 1});
  sum_into(call, to_bias, slopes.tensor(), 0b011);
  end();
  for (const Target* t : {&slopes, &to_w}) t->done();
}

}  // namespace

const std::vector<Operation>& recurrent_operations() {
  static const std::vector<Operation> operations{{"lstm_sequence", lstm_sequence},
                                                 {"lstm_sequence_backward", lstm_sequence_backward}};
  return operations;
}

}  // namespace taeda::cuda
