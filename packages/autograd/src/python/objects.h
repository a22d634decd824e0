// Python objects around graph nodes and tensors, and the guards that crossing between the engine and Python needs.
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <memory>
#include <vector>

#include "taeda/autograd/engine.h"
#include "taeda/autograd/hooks.h"
#include "taeda/autograd/saved.h"
#include "taeda/python_api.h"
#include "taeda/python_lock.h"

namespace taeda::autograd::py {

/// Owned PyObject reference; used while the interpreter's lock is held.
struct Decref {
  void operator()(PyObject* o) const noexcept { Py_DECREF(o); }
};
using Object = std::unique_ptr<PyObject, Decref>;

/// Throws the C++ exception that stands for the Python error now set.
[[noreturn]] inline void raise() {
  python_api.throw_error();
  std::abort();
}
/// Adopts a new reference; null means that a Python error is set.
inline Object own(PyObject* o) {
  if (!o) raise();
  return Object(o);
}
inline Object share(PyObject* o) { return Object(Py_NewRef(o)); }
inline void ensure(bool ok) {
  if (!ok) raise();
}

/// A Python object that C++ closures share and may drop on any thread.
using Shared = std::shared_ptr<PyObject>;
Shared shared(PyObject* object);

inline bool is_tensor(PyObject* o) { return python_api.is_tensor(o); }
inline const Tensor& tensor_of(PyObject* o) { return *python_api.tensor_of(o); }
inline PyObject* wrap(const Tensor& t) { return static_cast<PyObject*>(python_api.wrap(t)); }
/// Undefined for None; TypeError naming `what` for anything that is no tensor.
Tensor tensor_or_none(PyObject* o, const char* what);
std::vector<Tensor> tensors_of(PyObject* sequence, const char* what, bool none_allowed);

/// Result of `body`, or null with the Python error set.
template <class Body>
PyObject* guarded(Body&& body) noexcept {
  const Turn turn;
  try {
    return body();
  } catch (...) {
    python_api.set_error();
    return nullptr;
  }
}

/// New reference to the node's one wrapper; None when null.
PyObject* wrap(const Ref<Node>& node);
/// The node in a wrapper; TypeError otherwise.
Ref<Node> node_of(PyObject* o);

/// `hook` as the engine calls it.
TensorHook tensor_hook(PyObject* hook);

bool init_node(PyObject* module);
bool init_function(PyObject* module);
bool init_saved_hooks(PyObject* module);
/// Packs what is saved by a pair of Python functions.
void pack_saved(SavedTensor& saved, PyObject* pack, PyObject* unpack);
void init_anomaly();
extern PyMethodDef function_methods[];

}  // namespace taeda::autograd::py
