// Python objects around libtaeda's values: Tensor, dtype, device, Generator; errors across the border.
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <memory>
#include <optional>

#include "taeda/dispatch.h"
#include "taeda/generator.h"
#include "taeda/python_lock.h"
#include "taeda/tensor.h"

namespace taeda::py {

/// Note [Identity of wrappers]
/// A TensorImpl has at most one wrapper. `impl->python` points back to it without owning it; the wrapper owns the impl.
/// A wrapper that dies while C++ still holds the impl is simply dropped, unless somebody could notice (it has a
/// __dict__, weak references or a subclass): then ownership turns round and the impl owns the wrapper (kOwnsPython)
/// until it is wrapped again.
struct PyTensor {
  PyObject_HEAD Tensor tensor;  // always defined for a live object
  PyObject* dict;
  PyObject* weakrefs;
};
extern PyTypeObject* TensorType;

inline bool is_tensor(PyObject* o) { return Py_TYPE(o) == TensorType || PyType_IsSubtype(Py_TYPE(o), TensorType); }
/// The type of tensors that need no second look on this thread: Tensor itself, or null (Note [Plain tensors] in
/// override.h).
extern constinit thread_local PyTypeObject* plain_type __attribute__((tls_model("initial-exec")));
inline bool is_plain(PyObject* o) { return Py_TYPE(o) == plain_type; }
/// `o` must be a Tensor.
inline const Tensor& tensor_of(PyObject* o) { return reinterpret_cast<PyTensor*>(o)->tensor; }

/// A wrapper for an impl that has none yet; takes the reference over.
PyObject* wrap_fresh(Tensor&& tensor, PyTypeObject* type = TensorType);
/// The wrapper that an impl owns; ownership turns back.
PyObject* reclaim_wrapper(TensorImpl* impl) noexcept;

/// New reference to the tensor's one wrapper; None when undefined.
inline PyObject* wrap(Tensor&& tensor) {
  TensorImpl* impl = tensor.impl();
  if (!impl) Py_RETURN_NONE;
  if (!impl->python) [[likely]]
    return wrap_fresh(std::move(tensor));
  while (impl->python) {
    if (impl->flags & kOwnsPython) return reclaim_wrapper(impl);
    if (PyObject* known = try_share(impl->python)) return known;
    pass();
  }
  return wrap_fresh(std::move(tensor));
}
inline PyObject* wrap(const Tensor& tensor) { return wrap(Tensor(tensor)); }

struct PyDType {
  PyObject_HEAD DType value;
};
struct PyDevice {
  PyObject_HEAD Device value;
  int8_t said;  // the number of a kind that has one device, where the program gave one; else -1
};
struct PyGenerator {
  PyObject_HEAD Generator value;
};
extern PyTypeObject* DTypeType;
extern PyTypeObject* DeviceType;
extern PyTypeObject* GeneratorType;
extern PyTypeObject* SizeType;
inline bool is_dtype(PyObject* o) { return Py_TYPE(o) == DTypeType; }
inline bool is_device(PyObject* o) { return Py_TYPE(o) == DeviceType; }
inline bool is_generator(PyObject* o) {
  return Py_TYPE(o) == GeneratorType || PyType_IsSubtype(Py_TYPE(o), GeneratorType);
}
PyObject* wrap(DType dtype);
PyObject* wrap(Device device);
PyObject* wrap(const Generator& generator);
/// The tuple subclass that shapes are.
PyObject* wrap_size(IntSpan sizes);
PyObject* wrap_tuple(IntSpan values);

/// Thrown when a Python error is already set.
struct PythonError {
  virtual ~PythonError() = default;
};
/// A Python error on its way without the interpreter: thrown where Python's lock may be given up before it is caught.
struct CarriedError : PythonError {
  std::shared_ptr<PyObject> exception;
};
/// Takes the Python error that is set. The lock must be held.
CarriedError take_error();
/// In a catch block: python_api.carry_error.
std::exception_ptr carry_error(ErrorKind& kind, std::string& text) noexcept;
/// python_api.user_line and line_text.
uint32_t user_line() noexcept;
std::string line_text(uint32_t line);
/// To be called in a catch block: sets the Python error that the current C++ exception stands for. Where it speaks of
/// another operator than `called`, one that `called` is made of, both are named.
void set_python_error(const char* called = nullptr) noexcept;

/// Result of `body`, or null with the Python error set.
template <class Body>
PyObject* guarded(Body&& body) noexcept {
  const Turn turn;
  try {
    return body();
  } catch (...) {
    set_python_error();
    return nullptr;
  }
}

/// The number in a one-element tensor.
Scalar scalar_of(const Tensor& tensor, const char* op);
PyObject* number_of(const Scalar& scalar);

/// A Python or NumPy number (not a tensor) as Scalar; nothing for other objects. Integers beyond 64 bits:
/// OverflowError.
std::optional<Scalar> as_number(PyObject* o);
/// Device from a device object or its name; nothing for other objects.
std::optional<Device> as_device(PyObject* o);
/// Where a tensor says it is: one that wraps others is where they are.
Device shown_device(PyObject* tensor);
/// DType from a dtype object, Python's bool/int/float/complex, a NumPy dtype or scalar type; nothing for other objects.
std::optional<DType> as_dtype(PyObject* o);

}  // namespace taeda::py
