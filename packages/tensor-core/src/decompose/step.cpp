// Steps of recurrent layers and of optimizers.
#include "taeda/decompose/recurrent.h"
#include "taeda/wrappers.h"

#include <array>
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
Tensor plus(const Tensor& t, const Tensor& more) { return more.defined() ? t + more : t; }
Tensor sigmoid_slope(const Tensor& s) { return s * (Tensor(1) - s); }

Three lstm_cell(const Tensor& z, const Tensor& c) {
  const Tensor i = ops::sigmoid(gate(z, 0, 4)), f = ops::sigmoid(gate(z, 1, 4)), g = ops::tanh(gate(z, 2, 4)),
               o = ops::sigmoid(gate(z, 3, 4));
  const Tensor c_out = f * c + i * g;
  return {o * ops::tanh(c_out), c_out, joined({i, f, g, o})};
}
Three lstm_gates(const Tensor& input_gates, const Tensor& hidden_gates, const Tensor& c) {
  return lstm_cell(input_gates + hidden_gates, c);
}
Two lstm_gates_backward(const Tensor& grad_h, const Tensor& grad_c, const Tensor& gates, const Tensor& c,
                        const Tensor& c_out) {
  return lstm_step(grad_h, grad_c, Tensor(), gates, c, c_out);
}

Five lstm_sequence(const Tensor& input_gates, const Tensor& h0, const Tensor& c0, const Tensor& w_hh,
                   const Tensor& b_hh, bool reverse) {
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
Five lstm_sequence_backward(const Tensor& grad_output, const Tensor& grad_h, const Tensor& grad_c, const Tensor& h,
                            const Tensor& c, const Tensor& w_hh, const Tensor& output, const Tensor& gates,
                            const Tensor& cells, bool reverse) {
  return lstm_steps(std::array{grad_output, grad_h, grad_c, Tensor(), Tensor()}, h, c, w_hh, output, gates, cells,
                    reverse);
}

Two gru_gates(const Tensor& a, const Tensor& b, const Tensor& h) {
  const Tensor r = ops::sigmoid(gate(a, 0, 3) + gate(b, 0, 3)), z = ops::sigmoid(gate(a, 1, 3) + gate(b, 1, 3)),
               hn = gate(b, 2, 3);
  const Tensor n = ops::tanh(gate(a, 2, 3) + r * hn);
  return {(Tensor(1) - z) * n + z * h, joined({r, z, n, hn})};
}
Three gru_gates_backward(const Tensor& grad, const Tensor& gates, const Tensor& h) {
  return gru_step(grad, Tensor(), gates, h);
}

void sgd(TensorList params, TensorList grads, TensorList buffers, double lr, double momentum, double dampening,
         double weight_decay, bool nesterov, bool maximize, bool first_step) {
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
void adam(TensorList params, TensorList grads, TensorList firsts, TensorList seconds, TensorList largest, IntSpan steps,
          double lr, double beta1, double beta2, double eps, double weight_decay, bool amsgrad, bool maximize,
          bool decoupled) {
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

Two lstm_step(const Tensor& grad_h, const Tensor& grad_c, const Tensor& grad_gates, const Tensor& gates,
              const Tensor& c, const Tensor& c_out) {
  const Tensor i = gate(gates, 0, 4), f = gate(gates, 1, 4), g = gate(gates, 2, 4), o = gate(gates, 3, 4),
               t = ops::tanh(c_out);
  const Tensor dh = or_zero(grad_h, c), dc = plus(dh * o * (Tensor(1) - t * t), grad_c);
  const Tensor activated = plus(joined({dc * g, dc * c, dc * i, dh * t}), grad_gates);
  return {activated * joined({sigmoid_slope(i), sigmoid_slope(f), Tensor(1) - g * g, sigmoid_slope(o)}), dc * f};
}

Three gru_step(const Tensor& grad, const Tensor& grad_gates, const Tensor& gates, const Tensor& h) {
  const Tensor r = gate(gates, 0, 4), z = gate(gates, 1, 4), n = gate(gates, 2, 4), hn = gate(gates, 3, 4);
  const Tensor up = or_zero(grad, h), one(1);
  const auto more = [&](const Tensor& t, int64_t part) {
    return grad_gates.defined() ? t + gate(grad_gates, part, 4) : t;
  };
  const Tensor dn = more(up * (one - z), 2) * (one - n * n), dz = more(up * (h - n), 1) * sigmoid_slope(z),
               dr = more(dn * hn, 0) * sigmoid_slope(r);
  return {joined({dr, dz, dn}), joined({dr, dz, more(dn * r, 3)}), up * z};
}

Five lstm_steps(TensorList grads, const Tensor& h, const Tensor& c, const Tensor& w_hh, const Tensor& output,
                const Tensor& gates, const Tensor& cells, bool reverse) {
  const int64_t steps = gates.size(0);
  const auto at_step = [&](const Tensor& t, int64_t p) { return t.defined() ? ops::select(t, 0, p) : t; };
  std::vector<Tensor> slopes(static_cast<size_t>(steps)), before(static_cast<size_t>(steps));
  Tensor dh = or_zero(grads[1], h), dc = or_zero(grads[2], c);
  for (int64_t n = steps; n-- > 0;) {
    const int64_t p = reverse ? steps - 1 - n : n, last = reverse ? p + 1 : p - 1;
    before[size_t(p)] = n ? ops::select(output, 0, last) : h;
    std::tie(slopes[size_t(p)], dc) =
        lstm_step(plus(dh, at_step(grads[0], p)), plus(dc, at_step(grads[4], p)), at_step(grads[3], p),
                  ops::select(gates, 0, p), n ? ops::select(cells, 0, last) : c, ops::select(cells, 0, p));
    dh = ops::mm(slopes[size_t(p)], w_hh);
  }
  if (steps == 0) {
    const Tensor none = ops::zeros(Shape{w_hh.size(0)}, w_hh.dtype(), stated_device(w_hh));
    return {ops::zeros_like(gates), dh, dc, ops::zeros_like(w_hh), none};
  }
  const Tensor to_gates = ops::stack(slopes), rows = ops::flatten(to_gates, 0, 1);
  return {to_gates, dh, dc, ops::mm(ops::t(rows), ops::flatten(ops::stack(before), 0, 1)), ops::sum(rows, Shape{0})};
}

}  // namespace taeda::decompose
