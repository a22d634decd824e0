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
/// Of many places in two steps.
void join_losses(const Call& call, int dtype, const Array& losses, const Array& weights, const Array& out,
                 const Array& total, int64_t count, bool mean) {
  constexpr int64_t kPart = 1 << 14;
  const int64_t parts = (count + kPart - 1) / kPart;
  if (parts <= 1)
    return launch_in<JoinLosses>(call, dtype, 1, losses, weights, out, total, count, kPart, int32_t(mean), 0);
  const int whole = weights.dtype;
  const Tensor sums = call.empty({2, parts}, whole);
  const Array of_losses = sums.array(), of_weights{sums.address() + uint64_t(parts * sums.item_size()), whole, 0};
  launch_in<JoinLosses>(call, dtype, parts, losses, weights, out.data ? of_losses : Array{}, of_weights, count, kPart,
                        0, 0);
  launch_in<JoinLosses>(call, dtype, 1, of_losses, of_weights, out, total, parts, parts, int32_t(mean), 0);
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
  join_losses(call, dtype, losses, weights, reduction ? to.array() : Array{}, to_total.array(), count, reduction == 1);
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

void nll_loss_forward(const Call& call) {
  const Tensor out = call.output(0), total = call.output(1), input = call.tensor(0), target = call.tensor(1);
  const int64_t count = places(target), reduction = call.integer(3);
  const Read in(call, input), classes(call, target), weight(call, call.tensor(2));
  const Target to(call, out), to_total(call, total);
  Scores s = scores_of(input, in, classes, weight, {});
  s.ignored = call.integer(4);
  const int dtype = out.dtype(), whole = dtype == TAEDA_FLOAT64 ? TAEDA_FLOAT64 : TAEDA_FLOAT32;
  const Tensor kept = call.empty({2, count}, whole);
  const Array weights{kept.address() + uint64_t(count * kept.item_size()), whole, 0};
  const Array losses = reduction ? kept.array() : to.array();
  launch_in<NllLosses>(call, dtype, count, s, losses, weights, call.report());
  join_losses(call, dtype, losses, weights, reduction ? to.array() : Array{}, to_total.array(), count, reduction == 1);
  to.done(), to_total.done();
}
void nll_loss_backward(const Call& call) {
  const Tensor out = call.output(0), input = call.tensor(1), target = call.tensor(2);
  const Read grad(call, call.tensor(0)), classes(call, target), weight(call, call.tensor(3)),
      total(call, call.tensor(6)), none(call, Tensor());
  const Target to(call, out);
  Scores s = scores_of(input, none, classes, weight, {});
  s.ignored = call.integer(5);
  launch_in<NllGradient>(call, out.dtype(), out.numel(), s, grad.array(), total.array(), to.array(), call.report(),
                         int32_t(call.integer(4)), 0);
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
      {"nll_loss_backward", nll_loss_backward},
      {"nll_loss_forward", nll_loss_forward},
  };
  return operations;
}

}  // namespace taeda::cuda
