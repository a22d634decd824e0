// Gradients of fused recurrent cells. The activated gates are results with history, so that these formulas can be differentiated again.
#include "taeda/autograd/formulas.h"

namespace taeda::formulas {
namespace {

/// Part `k` of `parts` along the last dimension.
Tensor part(const Tensor& t, int64_t k, int64_t parts) {
  const int64_t h = t.size(-1) / parts;
  return ops::slice(t, -1, k * h, (k + 1) * h, 1);
}
Tensor joined(std::initializer_list<Tensor> parts) { return ops::cat(TensorList(parts.begin(), parts.size()), -1); }
Tensor sigmoid_slope(const Tensor& s) { return s * (1 - s); }
Tensor or_zeros(const Tensor& t, const Tensor& like) { return t.defined() ? t : zeros_of(like.sizes(), like); }
int64_t at_step(int64_t t, int64_t steps, bool reverse) { return reverse ? steps - 1 - t : t; }
Tensor step_of(const Tensor& t, int64_t p) { return t.defined() ? ops::select(t, 0, p) : t; }

}  // namespace

Two lstm_step_grads(const Tensor& grad_h, const Tensor& grad_c, const Tensor& grad_gates, const Tensor& gates, const Tensor& c, const Tensor& c_out) {
  const Tensor i = part(gates, 0, 4), f = part(gates, 1, 4), g = part(gates, 2, 4), o = part(gates, 3, 4);
  const Tensor t = ops::tanh(c_out), dh = or_zeros(grad_h, c);
  const Tensor dc = plus(dh * o * (1 - t * t), grad_c);
  const Tensor activated = plus(joined({dc * g, dc * c, dc * i, dh * t}), grad_gates);
  return {activated * joined({sigmoid_slope(i), sigmoid_slope(f), 1 - g * g, sigmoid_slope(o)}), dc * f};
}

Three lstm_gates_grads(TensorList grads, const Tensor& gates, const Tensor& c, const Tensor& c_out) {
  const bool fused = !recording() && !grads[2].defined();
  const auto [to_gates, to_c] =
      fused ? ops::lstm_gates_backward(grads[0], grads[1], gates, c, c_out) : lstm_step_grads(grads[0], grads[1], grads[2], gates, c, c_out);
  return {to_gates, to_gates, to_c};
}

Three gru_step_grads(const Tensor& grad, const Tensor& grad_gates, const Tensor& gates, const Tensor& h) {
  const Tensor r = part(gates, 0, 4), z = part(gates, 1, 4), n = part(gates, 2, 4), hn = part(gates, 3, 4);
  const Tensor up = or_zeros(grad, h), more = or_zeros(grad_gates, gates);
  const Tensor dn = (up * (1 - z) + part(more, 2, 4)) * (1 - n * n);
  const Tensor dz = (up * (h - n) + part(more, 1, 4)) * sigmoid_slope(z);
  const Tensor dr = (dn * hn + part(more, 0, 4)) * sigmoid_slope(r);
  return {joined({dr, dz, dn}), joined({dr, dz, dn * r + part(more, 3, 4)}), up * z};
}

Three gru_gates_grads(TensorList grads, const Tensor& gates, const Tensor& h) {
  if (recording() || grads[1].defined()) return gru_step_grads(grads[0], grads[1], gates, h);
  return ops::gru_gates_backward(grads[0], gates, h);
}

Five lstm_sequence_steps(TensorList grads, const Tensor& h, const Tensor& c, const Tensor& w_hh, const Tensor& output, const Tensor& gates,
                         const Tensor& cells, bool reverse) {
  const int64_t steps = gates.size(0);
  std::vector<Tensor> slopes(static_cast<size_t>(steps)), before(static_cast<size_t>(steps));
  Tensor dh = or_zeros(grads[1], h), dc = or_zeros(grads[2], c);
  for (int64_t t = steps - 1; t >= 0; --t) {
    const int64_t p = at_step(t, steps, reverse), q = at_step(t - 1, steps, reverse);
    before[size_t(p)] = t ? ops::select(output, 0, q) : h;
    const Tensor c_before = t ? ops::select(cells, 0, q) : c;
    std::tie(slopes[size_t(p)], dc) = lstm_step_grads(plus(dh, step_of(grads[0], p)), plus(dc, step_of(grads[4], p)), step_of(grads[3], p),
                                                      ops::select(gates, 0, p), c_before, ops::select(cells, 0, p));
    dh = ops::mm(slopes[size_t(p)], w_hh);
  }
  if (steps == 0) return {zeros_of(gates.sizes(), gates), dh, dc, zeros_of(w_hh.sizes(), w_hh), zeros_of(Shape{w_hh.size(0)}, w_hh)};
  const Tensor to_gates = ops::stack(slopes, 0), rows = ops::flatten(to_gates, 0, 1);
  const Tensor to_weight = ops::mm(ops::transpose(rows, 0, 1), ops::flatten(ops::stack(before, 0), 0, 1));
  const int64_t first = 0;
  return {to_gates, dh, dc, to_weight, ops::sum(rows, IntSpan(&first, 1))};
}

Five lstm_sequence_grads(TensorList grads, const Tensor& h, const Tensor& c, const Tensor& w_hh, const Tensor& output, const Tensor& gates,
                         const Tensor& cells, bool reverse) {
  if (recording() || grads[3].defined() || grads[4].defined()) return lstm_sequence_steps(grads, h, c, w_hh, output, gates, cells, reverse);
  return ops::lstm_sequence_backward(grads[0], grads[1], grads[2], h, c, w_hh, output, gates, cells, reverse);
}

}  // namespace taeda::formulas
