// Conversions between Python and the engine.
#include "python/objects.h"

namespace taeda::autograd::py {

Shared shared(PyObject* object) {
  return Shared(Py_NewRef(object), [](PyObject* o) {
    if (!Py_IsInitialized()) return;
    Gil gil;
    Py_DECREF(o);
  });
}

Tensor tensor_or_none(PyObject* o, const char* what) {
  if (o == Py_None) return Tensor();
  check(is_tensor(o), ErrorKind::Type, what, ": expected a Tensor or None, found ", Py_TYPE(o)->tp_name);
  return tensor_of(o);
}

std::vector<Tensor> tensors_of(PyObject* sequence, const char* what, bool none_allowed) {
  const Object items = own(PySequence_Fast(sequence, "expected a sequence of tensors"));
  std::vector<Tensor> tensors;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.get()); ++i) {
    const Object held = share(PySequence_Fast_GET_ITEM(items.get(), i));
    PyObject* item = held.get();
    check(none_allowed || item != Py_None, ErrorKind::Type, what, ": item ", i, " is None, expected a Tensor");
    tensors.push_back(tensor_or_none(item, what));
  }
  return tensors;
}

TensorHook tensor_hook(PyObject* hook) {
  return [call = shared(hook)](const Tensor& grad) {
    Gil gil;
    const Object given = own(wrap(grad));
    const Object result = own(called_out([&] { return PyObject_CallOneArg(call.get(), given.get()); }));
    return tensor_or_none(result.get(), "tensor hook: result");
  };
}

}  // namespace taeda::autograd::py
