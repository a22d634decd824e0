// Python objects around libtaeda's values: Tensor, dtype, device, Generator; errors across the border.
#pragma once
#include <Python.h>

#include "taeda/dispatch.h"
#include "taeda/tensor.h"

namespace taeda::py {

/// The wrapper. `tensor` is always defined for a live object.
struct PyTensor {
  PyObject_HEAD
  Tensor tensor;
  PyObject* dict;
  PyObject* weakrefs;
};
extern PyTypeObject* TensorType;

inline bool is_tensor(PyObject* o) { return Py_TYPE(o) == TensorType || PyType_IsSubtype(Py_TYPE(o), TensorType); }
/// `o` must be a Tensor.
inline const Tensor& tensor_of(PyObject* o) { return reinterpret_cast<PyTensor*>(o)->tensor; }
/// New reference to the tensor's one wrapper; None when undefined.
PyObject* wrap(Tensor tensor);

struct PyDType {
  PyObject_HEAD
  DType value;
};
struct PyDevice {
  PyObject_HEAD
  Device value;
};
struct PyGenerator {
  PyObject_HEAD
  Generator value;
};
extern PyTypeObject* DTypeType;
extern PyTypeObject* DeviceType;
extern PyTypeObject* GeneratorType;
inline bool is_dtype(PyObject* o) { return Py_TYPE(o) == DTypeType; }
inline bool is_device(PyObject* o) { return Py_TYPE(o) == DeviceType; }
inline bool is_generator(PyObject* o) { return Py_TYPE(o) == GeneratorType || PyType_IsSubtype(Py_TYPE(o), GeneratorType); }
PyObject* wrap(DType dtype);
PyObject* wrap(Device device);
PyObject* wrap(const Generator& generator);
/// The tuple subclass that shapes are.
PyObject* wrap_size(IntSpan sizes);

/// Thrown when a Python error is already set.
struct PythonError {};
/// To be called in a catch block: sets the Python error that the current C++ exception stands for.
void set_python_error() noexcept;

/// The number in a one-element tensor.
Scalar scalar_of(const Tensor& tensor, const char* op);
PyObject* number_of(const Scalar& scalar);

}  // namespace taeda::py
