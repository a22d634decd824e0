// Steps of recurrent layers and of optimizers.
#include <cmath>

#include "decompose/common.h"

namespace taeda::decompose {
namespace {

/// Part `i` of the `count` equal parts of the last dimension.
Tensor gate(const Tensor& t, int64_t i, int64_t count) {
  const int64_t width = t.size(-1) / count;
  return ops::narrow(t, -1, i * width, width);
}
Tensor joined(std::initializer_list<Tensor> parts) { return ops::cat(std::vector<Tensor>(parts), -1); }
Tensor or_zero(const Tensor& t, const Tensor& like) { return t.defined() ? t : ops::zeros_like(like); }

Three lstm_cell(const Tensor& z, const Tensor& c) {
  const Tensor i = ops::sigmoid(gate(z, 0, 4)), f = ops::sigmoid(gate(z, 1, 4)), g = ops::tanh(gate(z, 2, 4)), o = ops::sigmoid(gate(z, 3, 4));
  const Tensor c_out = f * c + i * g;
  return {o * ops::tanh(c_out), c_out, joined({i, f, g, o})};
}
Three lstm_gates(const Tensor& input_gates, const Tensor& hidden_gates, const Tensor& c) { return lstm_cell(input_gates + hidden_gates, c); }
Two lstm_gates_backward(const Tensor& grad_h, const Tensor& grad_c, const Tensor& gates, const Tensor& c, const Tensor& c_out) {
  const Tensor i = gate(gates, 0, 4), f = gate(gates, 1, 4), g = gate(gates, 2, 4), o = gate(gates, 3, 4), t = ops::tanh(c_out), one(1);
  const Tensor gh = or_zero(grad_h, c), dc = or_zero(grad_c, c) + gh * o * (one - t * t);
  return {joined({dc * g * i * (one - i), dc * c * f * (one - f), dc * i * (one - g * g), gh * t * o * (one - o)}), dc * f};
}

using Five = std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor>;
Five lstm_sequence(const Tensor& input_gates, const Tensor& h0, const Tensor& c0, const Tensor& w_hh, const Tensor& b_hh, bool reverse) {
  const int64_t steps = input_gates.size(0);
  const size_t count = size_t(steps);
  std::vector<Tensor> outputs(count), gates(count), cells(count);
  Tensor h = h0, c = c0;
  for (int64_t n = 0; n < steps; ++n) {
    const size_t t = size_t(reverse ? steps - 1 - n : n);
    std::tie(h, c, gates[t]) = lstm_cell(ops::select(input_gates, 0, int64_t(t)) + ops::linear(h, w_hh, b_hh), c);
    outputs[t] = h;
    cells[t] = c;
  }
  return {ops::stack(outputs), h, c, ops::stack(gates), ops::stack(cells)};
}
Five lstm_sequence_backward(const Tensor& grad_output, const Tensor& grad_h, const Tensor& grad_c, const Tensor& h, const Tensor& c,
                            const Tensor& w_hh, const Tensor& output, const Tensor& gates, const Tensor& cells, bool reverse) {
  const int64_t steps = output.size(0);
  std::vector<Tensor> gx(static_cast<size_t>(steps));
  Tensor gh = or_zero(grad_h, h), gc = or_zero(grad_c, c), gw = ops::zeros_like(w_hh);
  for (int64_t n = steps; n-- > 0;) {
    const int64_t t = reverse ? steps - 1 - n : n, before = reverse ? t + 1 : t - 1;
    const Tensor up = grad_output.defined() ? gh + ops::select(grad_output, 0, t) : gh;
    const Tensor h_before = n ? ops::select(output, 0, before) : h, c_before = n ? ops::select(cells, 0, before) : c;
    std::tie(gx[size_t(t)], gc) = lstm_gates_backward(up, gc, ops::select(gates, 0, t), c_before, ops::select(cells, 0, t));
    gw = gw + ops::mm(ops::t(gx[size_t(t)]), h_before);
    gh = ops::mm(gx[size_t(t)], w_hh);
  }
  const Tensor all = ops::stack(gx);
  return {all, gh, gc, gw, ops::sum(all, Shape{0, 1})};
}

Two gru_gates(const Tensor& a, const Tensor& b, const Tensor& h) {
  const Tensor r = ops::sigmoid(gate(a, 0, 3) + gate(b, 0, 3)), z = ops::sigmoid(gate(a, 1, 3) + gate(b, 1, 3)), hn = gate(b, 2, 3);
  const Tensor n = ops::tanh(gate(a, 2, 3) + r * hn);
  return {(Tensor(1) - z) * n + z * h, joined({r, z, n, hn})};
}
Three gru_gates_backward(const Tensor& grad, const Tensor& gates, const Tensor& h) {
  const Tensor r = gate(gates, 0, 4), z = gate(gates, 1, 4), n = gate(gates, 2, 4), hn = gate(gates, 3, 4), one(1);
  const Tensor dn = grad * (one - z) * (one - n * n), dz = grad * (h - n) * z * (one - z), dr = dn * hn * r * (one - r);
  return {joined({dr, dz, dn}), joined({dr, dz, dn * r}), grad * z};
}

void sgd(TensorList params, TensorList grads, TensorList buffers, double lr, double momentum, double dampening, double weight_decay,
         bool nesterov, bool maximize, bool first_step) {
  for (size_t i = 0; i < params.size(); ++i) {
    Tensor step = maximize ? -grads[i] : grads[i];
    if (weight_decay != 0) step = step + params[i] * Tensor(weight_decay);
    if (momentum != 0) {
      ops::copy_(buffers[i], first_step ? step : buffers[i] * Tensor(momentum) + step * Tensor(1 - dampening));
      step = nesterov ? step + buffers[i] * Tensor(momentum) : buffers[i];
    }
    ops::copy_(params[i], params[i] - step * Tensor(lr));
  }
}
void adam(TensorList params, TensorList grads, TensorList firsts, TensorList seconds, TensorList largest, IntSpan steps, double lr,
          double beta1, double beta2, double eps, double weight_decay, bool amsgrad, bool maximize, bool decoupled) {
  for (size_t i = 0; i < params.size(); ++i) {
    const double t = double(steps[i]);
    Tensor g = maximize ? -grads[i] : grads[i], p = params[i];
    if (weight_decay != 0 && decoupled) p = p * Tensor(1 - lr * weight_decay);
    if (weight_decay != 0 && !decoupled) g = g + p * Tensor(weight_decay);
    ops::copy_(firsts[i], firsts[i] * Tensor(beta1) + g * Tensor(1 - beta1));
    ops::copy_(seconds[i], seconds[i] * Tensor(beta2) + g * conj_of(g) * Tensor(1 - beta2));
    if (amsgrad) ops::copy_(largest[i], ops::maximum(largest[i], seconds[i]));
    const Tensor second = (amsgrad ? largest[i] : seconds[i]) / Tensor(1 - std::pow(beta2, t));
    ops::copy_(params[i], p - firsts[i] * Tensor(lr / (1 - std::pow(beta1, t))) / (ops::sqrt(second) + Tensor(eps)));
  }
}

DECOMPOSE(lstm_gates)
DECOMPOSE(lstm_gates_backward)
DECOMPOSE(lstm_sequence)
DECOMPOSE(lstm_sequence_backward)
DECOMPOSE(gru_gates)
DECOMPOSE(gru_gates_backward)
TAEDA_DECOMPOSE(sgd, "_fused_sgd_", sgd)
TAEDA_DECOMPOSE(adam, "_fused_adam_", adam)

}  // namespace
}  // namespace taeda::decompose
