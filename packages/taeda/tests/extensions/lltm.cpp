// The extension of a well-known tutorial on recurrent cells: forward and backward written by hand, here with taeda's
// namespace. Each formula is the cell's own.
#include <taeda/extension.h>

#include <vector>

taeda::Tensor d_sigmoid(taeda::Tensor z) {
  auto s = taeda::sigmoid(z);
  return (1 - s) * s;
}
taeda::Tensor d_tanh(taeda::Tensor z) { return 1 - z.tanh().pow(2); }
taeda::Tensor d_elu(taeda::Tensor z, taeda::Scalar alpha = 1.0) {
  auto e = z.exp();
  auto mask = (alpha * (e - 1)) < 0;
  return (z > 0).type_as(z) + mask.type_as(z) * (alpha * e);
}
std::vector<taeda::Tensor> lltm_forward(taeda::Tensor input, taeda::Tensor weights, taeda::Tensor bias,
                                        taeda::Tensor old_h, taeda::Tensor old_cell) {
  auto X = taeda::cat({old_h, input}, /*dim=*/1);
  auto gate_weights = taeda::addmm(bias, X, weights.transpose(0, 1));
  auto gates = gate_weights.chunk(3, /*dim=*/1);
  auto input_gate = taeda::sigmoid(gates[0]);
  auto output_gate = taeda::sigmoid(gates[1]);
  auto candidate_cell = taeda::elu(gates[2], /*alpha=*/1.0);
  auto new_cell = old_cell + candidate_cell * input_gate;
  auto new_h = taeda::tanh(new_cell) * output_gate;
  return {new_h, new_cell, input_gate, output_gate, candidate_cell, X, gate_weights};
}
std::vector<taeda::Tensor> lltm_backward(taeda::Tensor grad_h, taeda::Tensor grad_cell, taeda::Tensor new_cell,
                                         taeda::Tensor input_gate, taeda::Tensor output_gate,
                                         taeda::Tensor candidate_cell, taeda::Tensor X, taeda::Tensor gate_weights,
                                         taeda::Tensor weights) {
  auto d_output_gate = taeda::tanh(new_cell) * grad_h;
  auto d_tanh_new_cell = output_gate * grad_h;
  auto d_new_cell = d_tanh(new_cell) * d_tanh_new_cell + grad_cell;
  auto d_old_cell = d_new_cell;
  auto d_candidate_cell = input_gate * d_new_cell;
  auto d_input_gate = candidate_cell * d_new_cell;
  auto gates = gate_weights.chunk(3, /*dim=*/1);
  d_input_gate *= d_sigmoid(gates[0]);
  d_output_gate *= d_sigmoid(gates[1]);
  d_candidate_cell *= d_elu(gates[2]);
  auto d_gates = taeda::cat({d_input_gate, d_output_gate, d_candidate_cell}, /*dim=*/1);
  auto d_weights = d_gates.t().mm(X);
  auto d_bias = d_gates.sum(/*dim=*/0, /*keepdim=*/true);
  auto d_X = d_gates.mm(weights);
  const auto state_size = grad_h.size(1);
  auto d_old_h = d_X.slice(/*dim=*/1, 0, state_size);
  auto d_input = d_X.slice(/*dim=*/1, state_size);
  return {d_old_h, d_input, d_weights, d_bias, d_old_cell};
}
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("forward", &lltm_forward, "LLTM forward");
  m.def("backward", &lltm_backward, "LLTM backward");
}
