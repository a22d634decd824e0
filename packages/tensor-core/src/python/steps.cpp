// Counts of optimizers' steps: a tensor of one number in the state of each parameter, read and raised in one call.
#include "python/internal.h"
#include "taeda/stub.h"

namespace taeda::py {
namespace {

/// The count of a state where it is one real number in host memory that no mode, level or graph watches; else null.
const Tensor* count_in(PyObject* state) {
  static PyObject* const name = PyUnicode_InternFromString("step");
  PyObject* const found = PyDict_Check(state) ? PyDict_GetItemWithError(state, name) : nullptr;
  if (!found || !is_plain(found)) return nullptr;
  const Tensor& count = tensor_of(found);
  const bool real = count.dtype() == DType::Float32 || count.dtype() == DType::Float64;
  const bool simple = real && count.dim() == 0 && count.keys() == KeySet::backend(kCPU) &&
                      !(count.impl()->flags & (kRequiresGrad | kCarries)) && !stub::is_fixed(count);
  return simple ? &count : nullptr;
}

double read(const Tensor& count) {
  return count.dtype() == DType::Float32 ? double(*count.data<float>()) : *count.data<double>();
}

void raise(const Tensor& count) {
  if (count.dtype() == DType::Float32) *count.data<float>() += 1;
  else *count.data<double>() += 1;
  static const uint16_t writer = find_op("add_")->id;
  count.bump_version(writer);
}

/// The counts after one more step, as ints; None where one is no such tensor.
PyObject* next_counts(PyObject*, PyObject* states) {
  return guarded([&]() -> PyObject* {
    if (!PyList_Check(states)) Py_RETURN_NONE;
    Object counts = own(PyList_New(PyList_GET_SIZE(states)));
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(states); ++i) {
      const Tensor* const count = count_in(PyList_GET_ITEM(states, i));
      ensure(count || !PyErr_Occurred());
      if (!count) Py_RETURN_NONE;
      PyList_SET_ITEM(counts.get(), i, own(PyLong_FromDouble(read(*count) + 1)).release());
    }
    return counts.release();
  });
}

/// Whether all were raised; none is where one cannot be.
PyObject* raise_counts(PyObject*, PyObject* states) {
  return guarded([&]() -> PyObject* {
    if (!PyList_Check(states)) Py_RETURN_FALSE;
    const Py_ssize_t length = PyList_GET_SIZE(states);
    for (Py_ssize_t i = 0; i < length; ++i)
      if (!count_in(PyList_GET_ITEM(states, i))) {
        ensure(!PyErr_Occurred());
        Py_RETURN_FALSE;
      }
    for (Py_ssize_t i = 0; i < length; ++i) raise(*count_in(PyList_GET_ITEM(states, i)));
    Py_RETURN_TRUE;
  });
}

}  // namespace

PyMethodDef step_functions[] = {{"_next_counts", next_counts, METH_O, nullptr},
                                {"_raise_counts", raise_counts, METH_O, nullptr},
                                {nullptr, nullptr, 0, nullptr}};

}  // namespace taeda::py
