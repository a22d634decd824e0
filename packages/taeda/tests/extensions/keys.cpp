// Operators with functions under PyTorch's keys: kernels, what recorded calls do, shapes, and a form for every device.
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/util/irange.h>
#include <torch/extension.h>

namespace {

// Three times x, with a gradient of five, so that tests see who was asked.
at::Tensor scale(const at::Tensor& x, double k) {
  static auto op =
      c10::Dispatcher::singleton().findSchemaOrThrow("keyed::scale", "").typed<at::Tensor(const at::Tensor&, double)>();
  return op.call(x, k);
}
at::Tensor scale_kernel(const at::Tensor& x, double k) {
  auto out = at::empty_like(x);
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "scale", [&] {
    const scalar_t* from = x.data_ptr<scalar_t>();
    scalar_t* to = out.data_ptr<scalar_t>();
    for (const auto i : c10::irange(x.numel())) to[i] = scalar_t(k) * from[i];
  });
  return out;
}
at::Tensor scale_meta(const at::Tensor& x, double) { return at::empty_like(x); }

struct Scale : torch::autograd::Function<Scale> {
  static at::Tensor forward(torch::autograd::AutogradContext* ctx, const at::Tensor& x, double k) {
    at::AutoDispatchBelowADInplaceOrView guard;
    ctx->saved_data["k"] = k;
    return scale(x, k);
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* ctx,
                                                 torch::autograd::variable_list gradients) {
    return {gradients[0] * (ctx->saved_data["k"].toDouble() + 2), at::Tensor()};
  }
};
at::Tensor scale_autograd(const at::Tensor& x, double k) { return Scale::apply(x, k); }
at::Tensor quadruple(const at::Tensor& x) { return scale(x, 2) + scale(x, 2); }
void add_one(at::Tensor& x) { x += 1; }

}  // namespace

TORCH_LIBRARY(keyed, m) {
  m.def(TORCH_SELECTIVE_SCHEMA("scale(Tensor x, float k=3.0) -> Tensor"));
  m.def("quadruple(Tensor x) -> Tensor");
  m.def("add_one(Tensor(a!) x) -> ()");
}
TORCH_LIBRARY_IMPL(keyed, Autograd, m) { m.impl("scale", scale_autograd); }
TORCH_LIBRARY_IMPL(keyed, CPU, m) {
  m.impl(TORCH_SELECTIVE_NAME("keyed::scale"), TORCH_FN(scale_kernel));
  m.impl("add_one", &add_one);
}
TORCH_LIBRARY_IMPL(keyed, XPU, m) { m.impl("scale", &scale_kernel); }  // never asked where there is no such device
TORCH_LIBRARY_IMPL(keyed, Meta, m) { m.impl("scale", &scale_meta); }
TORCH_LIBRARY_IMPL(keyed, CompositeImplicitAutograd, m) { m.impl("quadruple", &quadruple); }

// A module without functions, as sources that are nothing but operators define it.
extern "C" PyObject* PyInit_keyed() {
  static PyModuleDef definition = {PyModuleDef_HEAD_INIT, "keyed", nullptr, -1, nullptr};
  return PyModule_Create(&definition);
}
