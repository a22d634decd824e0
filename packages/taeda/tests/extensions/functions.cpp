// Functions with a backward of their own, as sources for PyTorch's C++ API write them, and operators without a schema.
#include <torch/extension.h>

using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::Variable;
using torch::autograd::variable_list;

struct Linear : public Function<Linear> {
  static Variable forward(AutogradContext* ctx, Variable input, Variable weight, std::optional<Variable> bias) {
    ctx->save_for_backward({input, weight});
    ctx->saved_data["bias"] = bias.has_value();
    auto output = input.mm(weight.t());
    if (bias) output += bias->unsqueeze(0).expand_as(output);
    return output;
  }
  static variable_list backward(AutogradContext* ctx, variable_list gradients) {
    const auto saved = ctx->get_saved_variables();
    auto gradient = gradients[0];
    Variable of_bias;
    if (ctx->saved_data["bias"].toBool()) of_bias = gradient.sum(0);
    return {gradient.mm(saved[1]), gradient.t().mm(saved[0]), of_bias};
  }
};
torch::Tensor linear(torch::Tensor input, torch::Tensor weight, std::optional<torch::Tensor> bias) {
  return Linear::apply(input, weight, bias);
}

// Lists, numbers and texts among the arguments, and more results than one.
class Powers : public Function<Powers> {
 public:
  static variable_list forward(AutogradContext* ctx, double scale, at::TensorList given, const std::string& word,
                               int64_t power) {
    ctx->saved_data["scale"] = scale;
    ctx->saved_data["power"] = power;
    ctx->saved_data["word"] = word;
    ctx->saved_data["shape"] = given[0].sizes();
    ctx->save_for_backward({given[0], given[1]});
    auto places = given[0].argmax();
    ctx->mark_non_differentiable({places});
    return {given[0].pow(power) * scale, given[1] * given[0], places};
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& gradients) {
    const auto saved = ctx->get_saved_variables();
    const auto power = ctx->saved_data["power"].toInt();
    TORCH_CHECK(ctx->saved_data["word"].toStringRef() == "word", "the text is lost");
    TORCH_CHECK(ctx->saved_data["shape"].toIntList()[0] == saved[0].size(0), "the shape is lost");
    TORCH_CHECK(ctx->needs_input_grad(0), "the first tensor needs a gradient");
    auto first = gradients[0] * ctx->saved_data["scale"].toDouble() * power * saved[0].pow(power - 1);
    return {Variable(), first + gradients[1] * saved[1], gradients[1] * saved[0], Variable(), Variable()};
  }
};
std::vector<torch::Tensor> powers(double scale, std::vector<torch::Tensor> given, int64_t power) {
  return Powers::apply(scale, at::TensorList(given), std::string("word"), power);
}

struct Doubled : Function<Doubled> {
  static Variable forward(AutogradContext* ctx, Variable x) {
    x.mul_(2);
    ctx->mark_dirty({x});
    return x;
  }
  static variable_list backward(AutogradContext*, variable_list gradients) { return {gradients[0] * 2}; }
};
torch::Tensor doubled(torch::Tensor x) { return Doubled::apply(x); }

struct Wrong : Function<Wrong> {
  static Variable forward(AutogradContext*, Variable x, int64_t) { return x * 1; }
  static variable_list backward(AutogradContext*, variable_list gradients) { return {gradients[0]}; }
};
torch::Tensor wrong(torch::Tensor x) { return Wrong::apply(x, int64_t(1)); }

// The program's own loop: leaves, backward, gradients.
double slope(double at) {
  auto x = torch::full({}, at, torch::dtype(torch::kDouble)).requires_grad_();
  {
    torch::NoGradGuard unrecorded;
    TORCH_CHECK(!(x * x).requires_grad(), "recorded all the same");
  }
  (x * x * x).backward();
  return x.grad().item<double>();
}

// No schema: it is read off the function.
torch::Tensor twice(torch::Tensor x, std::optional<int64_t> times) { return x * (2 * times.value_or(1)); }
std::tuple<torch::Tensor, torch::Tensor> ends(const torch::Tensor& x, bool sorted) {
  auto y = sorted ? std::get<0>(x.sort()) : x;
  return {y[0], y[-1]};
}
TORCH_LIBRARY(cpp_functions, m) {
  m.def("linear", &linear);
  m.def("ends", &ends);
}
static auto registry = torch::RegisterOperators().op("cpp_functions::twice", &twice).op("cpp_functions::version", [] {
  return int64_t(7);
});

std::vector<at::Tensor> both(const at::Tensor& x, const at::optional<at::Tensor>& y, const int64_t n) {
  return {x * n, y ? *y : x};
}
static auto older = torch::RegisterOperators("cpp_functions::both", &both);

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("linear", &linear);
  m.def("powers", &powers);
  m.def("doubled", &doubled);
  m.def("wrong", &wrong);
  m.def("slope", &slope);
}
