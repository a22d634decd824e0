// Cross entropy, and the gates of recurrent cells.
#include "kernels/loss.h"

#include "ops/read.h"

namespace taeda::cuda {
namespace {

int64_t places(const Tensor& target) { return target.numel(); }
Scores scores_of(const Tensor& input, const Read& in, const Read& target, const Read& weight, const Array& logsumexp) {
  Scores s{};
  s.in = in.array(), s.target = target.array(), s.weight = weight.array(), s.logsumexp = logsumexp;
  const int dim = input.ndim() == 1 ? 0 : 1;
  s.classes = input.size(dim);
  s.inner = 1;
  for (int d = dim + 1; d < input.ndim(); ++d) s.inner *= input.size(d);
  return s;
}
void cross_entropy_forward(const Call& call) {
  const Tensor out = call.output(0), lse = call.output(1), total = call.output(2);
  const Tensor input = call.tensor(0), target = call.tensor(1);
  const int64_t count = places(target), reduction = call.integer(3);
  const Read in(call, input), classes(call, target), weight(call, call.tensor(2));
  const Target to(call, out), to_lse(call, lse), to_total(call, total);
  Scores s = scores_of(input, in, classes, weight, to_lse.array());
  s.ignored = call.integer(4), s.smoothing = call.real(5);
  const int dtype = out.dtype(), whole = dtype == TAEDA_FLOAT64 ? TAEDA_FLOAT64 : TAEDA_FLOAT32;
  const Tensor kept = call.empty({2, count}, whole);
  const Array weights{kept.address() + uint64_t(count * kept.item_size()), whole, 0};
  const Array losses = reduction ? kept.array() : to.array();
  launch_in<CrossEntropy>(call, dtype, count, s, losses, weights, call.report());
  launch_in<JoinLosses>(call, dtype, 1, losses, weights, reduction ? to.array() : Array{}, to_total.array(), count,
                        int32_t(reduction == 1), 0);
  for (const Target* t : {&to, &to_lse, &to_total}) t->done();
}
void cross_entropy_backward(const Call& call) {
  const Tensor out = call.output(0), input = call.tensor(1), target = call.tensor(2);
  const Read grad(call, call.tensor(0)), in(call, input), classes(call, target), weight(call, call.tensor(3)),
      lse(call, call.tensor(7)), total(call, call.tensor(8));
  const Target to(call, out);
  Scores s = scores_of(input, in, classes, weight, lse.array());
  s.ignored = call.integer(5), s.smoothing = call.real(6);
  launch_in<CrossEntropyGradient>(call, out.dtype(), places(target), s, grad.array(), total.array(), to.array(),
                                  call.report(), int32_t(call.integer(4)), 0);
  to.done();
}

// --- gates ---

Gates gates_of(const Tensor& state) { return {state.size(1)}; }

void lstm_gates(const Call& call) {
  const Tensor h_out = call.output(0), c_out = call.output(1), gates = call.output(2);
  const Read input(call, call.tensor(0)), hidden(call, call.tensor(1)), c(call, call.tensor(2));
  const Target to(call, h_out), to_c(call, c_out), to_gates(call, gates);
  launch_in<LstmGates>(call, h_out.dtype(), h_out.numel(), gates_of(h_out), input.array(), hidden.array(), Array{},
                       c.array(), to.array(), to_c.array(), to_gates.array());
  for (const Target* t : {&to, &to_c, &to_gates}) t->done();
}
void lstm_gates_backward(const Call& call) {
  const Tensor out = call.output(0), out_c = call.output(1);
  const Read grad_h(call, call.tensor(0)), grad_c(call, call.tensor(1)), gates(call, call.tensor(2)),
      c(call, call.tensor(3)), c_out(call, call.tensor(4));
  const Target to(call, out), to_c(call, out_c);
  launch_in<LstmGatesGradient>(call, out.dtype(), out_c.numel(), gates_of(out_c), grad_h.array(), Array{},
                               grad_c.array(), gates.array(), c.array(), c_out.array(), to.array(), to_c.array());
  to.done(), to_c.done();
}
void gru_gates(const Call& call) {
  const Tensor h_out = call.output(0), gates = call.output(1);
  const Read input(call, call.tensor(0)), hidden(call, call.tensor(1)), h(call, call.tensor(2));
  const Target to(call, h_out), to_gates(call, gates);
  launch_in<GruGates>(call, h_out.dtype(), h_out.numel(), gates_of(h_out), input.array(), hidden.array(), h.array(),
                      to.array(), to_gates.array());
  to.done(), to_gates.done();
}
void gru_gates_backward(const Call& call) {
  const Tensor out_input = call.output(0), out_hidden = call.output(1), out_h = call.output(2);
  const Read grad(call, call.tensor(0)), gates(call, call.tensor(1)), h(call, call.tensor(2));
  const Target to(call, out_input), to_hidden(call, out_hidden), to_h(call, out_h);
  launch_in<GruGatesGradient>(call, out_h.dtype(), out_h.numel(), gates_of(out_h), grad.array(), gates.array(),
                              h.array(), to.array(), to_hidden.array(), to_h.array());
  for (const Target* t : {&to, &to_hidden, &to_h}) t->done();
}

}  // namespace

const std::vector<Operation>& loss_operations() {
  static const std::vector<Operation> operations{
      {"cross_entropy_backward", cross_entropy_backward},
      {"cross_entropy_forward", cross_entropy_forward},
      {"gru_gates", gru_gates},
      {"gru_gates_backward", gru_gates_backward},
      {"lstm_gates", lstm_gates},
      {"lstm_gates_backward", lstm_gates_backward},
  };
  return operations;
}

}  // namespace taeda::cuda
