// The door for autograd providers in Python: what the core asks of autograd, answered by a Python object.
#include "python/library.h"
#include "taeda/autograd_api.h"

namespace taeda::py {
namespace {

PyObject* provider = nullptr;  // strong; null without one

/// Python state that travels with a tensor.
struct PyMeta final : GradMeta {
  PyObject* state;
  explicit PyMeta(PyObject* o) : state(Py_NewRef(o)) {}
  ~PyMeta() override {
    if (!Py_IsInitialized()) return;
    const Gil gil;
    Py_DECREF(state);
  }
};

Object ask(const char* method, const Tensor& self) {
  return own(called_out([&] { return PyObject_CallMethod(provider, method, "N", wrap(self)); }));
}
void api_set_requires_grad(const Tensor& self, bool value) {
  const Gil gil;
  own(called_out(
      [&] { return PyObject_CallMethod(provider, "set_requires_grad", "NN", wrap(self), PyBool_FromLong(value)); }));
}
Tensor api_grad(const Tensor& self) {
  const Gil gil;
  const Object found = ask("grad", self);
  if (found.get() == Py_None) return {};
  if (!is_tensor(found.get()))
    fail(ErrorKind::Type, "autograd provider: grad() must give a Tensor or None, found ", type_name(found.get()));
  return tensor_of(found.get());
}
void api_set_grad(const Tensor& self, const Tensor& grad) {
  const Gil gil;
  own(called_out([&] { return PyObject_CallMethod(provider, "set_grad", "NN", wrap(self), wrap(grad)); }));
}
bool api_is_leaf(const Tensor& self) {
  const Gil gil;
  return is_true(ask("is_leaf", self).get());
}
void* api_grad_fn(const Tensor& self) {
  const Gil gil;
  return ask("grad_fn", self).release();
}

PyObject* install(PyObject*, PyObject* object) {
  return guarded([&]() -> PyObject* {
    if (autograd_api.set_requires_grad && !provider)
      fail(
          ErrorKind::Runtime,
          "install_autograd: taeda_autograd is loaded already; two providers of gradients cannot stand in one process");
    Py_XDECREF(std::exchange(provider, Py_NewRef(object)));
    autograd_api.set_requires_grad = api_set_requires_grad;
    autograd_api.grad = api_grad;
    autograd_api.set_grad = api_set_grad;
    autograd_api.is_leaf = api_is_leaf;
    autograd_api.grad_fn = api_grad_fn;
    Py_RETURN_NONE;
  });
}

const Tensor& tensor_in(PyObject* o) {
  if (!is_tensor(o)) fail(ErrorKind::Type, "library: expected a Tensor, found ", type_name(o));
  return tensor_of(o);
}
void need_provider() { check(provider != nullptr, ErrorKind::Runtime, "library: install_autograd() comes first"); }

PyObject* attach(PyObject*, PyObject* args) {
  PyObject *o, *state;
  if (!PyArg_ParseTuple(args, "OO", &o, &state)) return nullptr;
  return guarded([&] {
    need_provider();
    TensorImpl* impl = tensor_in(o).impl();
    GradMeta* former = std::exchange(impl->grad, state == Py_None ? nullptr : new PyMeta(state));
    delete former;
    return Py_NewRef(Py_None);
  });
}
PyObject* attached(PyObject*, PyObject* o) {
  return guarded([&]() -> PyObject* {
    need_provider();
    auto* meta = static_cast<PyMeta*>(tensor_in(o).impl()->grad);
    return Py_NewRef(meta ? meta->state : Py_None);
  });
}
PyObject* mark(PyObject*, PyObject* args) {
  PyObject* o;
  int on;
  if (!PyArg_ParseTuple(args, "Op", &o, &on)) return nullptr;
  return guarded([&] {
    need_provider();
    TensorImpl* impl = tensor_in(o).impl();
    impl->flags = on ? impl->flags | kRequiresGrad : impl->flags & ~kRequiresGrad;
    if (on) impl->keys = impl->keys | KeySet::of(Layer::Autograd);
    else if (!impl->base) impl->keys = impl->keys.without(Layer::Autograd);
    return Py_NewRef(Py_None);
  });
}

}  // namespace

PyMethodDef library_autograd_functions[] = {{"_install_autograd", install, METH_O, nullptr},
                                            {"_attach_state", attach, METH_VARARGS, nullptr},
                                            {"_attached_state", attached, METH_O, nullptr},
                                            {"_mark_tracked", mark, METH_VARARGS, nullptr},
                                            {nullptr, nullptr, 0, nullptr}};

}  // namespace taeda::py
