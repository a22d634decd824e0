// Size: the tuple subclass that shapes are.
#include <algorithm>
#include <utility>

#include "python/internal.h"

namespace taeda::py {

PyTypeObject* SizeType = nullptr;

namespace {

PyObject* fill(PyObject* tuple, IntSpan values) {
  for (size_t i = 0; tuple && i < values.size(); ++i) {
    PyObject* item = PyLong_FromLongLong(values[i]);
    if (!item) {
      Py_DECREF(tuple);
      return nullptr;
    }
    PyTuple_SET_ITEM(tuple, Py_ssize_t(i), item);
  }
  return tuple;
}

/// A Size made of a tuple's result; takes the reference over.
PyObject* as_size(PyObject* tuple) {
  if (!tuple || !PyTuple_CheckExact(tuple)) return tuple;
  const Py_ssize_t n = PyTuple_GET_SIZE(tuple);
  PyObject* made = SizeType->tp_alloc(SizeType, n);
  for (Py_ssize_t i = 0; made && i < n; ++i) PyTuple_SET_ITEM(made, i, Py_NewRef(PyTuple_GET_ITEM(tuple, i)));
  Py_DECREF(tuple);
  return made;
}

PyObject* construct(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  return guarded([&]() -> PyObject* {
    Object made = own(PyTuple_Type.tp_new(type, args, kwargs));
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(made.get()); ++i) {
      PyObject* item = PyTuple_GET_ITEM(made.get(), i);
      if (PyLong_Check(item)) continue;
      if (!PyIndex_Check(item)) fail(ErrorKind::Type, "Size: item ", i, " must be an int, found ", type_name(item));
      PyTuple_SET_ITEM(made.get(), i, own(PyNumber_Index(item)).release());
      Py_DECREF(item);
    }
    return made.release();
  });
}

PyObject* repr(PyObject* self) {
  const Object list = Object(PySequence_List(self));
  return list ? PyUnicode_FromFormat("%s(%R)", size_name(), list.get()) : nullptr;
}
/// The product as Python has it: what stands here need not be the sizes of a tensor.
PyObject* numel(PyObject* self, PyObject*) {
  return guarded([&] {
    Object total = own(PyLong_FromLong(1));
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(self); ++i)
      total = own(PyNumber_Multiply(total.get(), PyTuple_GET_ITEM(self, i)));
    return total.release();
  });
}
PyObject* concat(PyObject* a, PyObject* b) { return as_size(PyTuple_Type.tp_as_sequence->sq_concat(a, b)); }
/// Also where a plain tuple stands first.
PyObject* add(PyObject* a, PyObject* b) {
  if (!PyTuple_Check(a) || !PyTuple_Check(b)) Py_RETURN_NOTIMPLEMENTED;
  return concat(a, b);
}
PyObject* repeat(PyObject* a, Py_ssize_t n) { return as_size(PyTuple_Type.tp_as_sequence->sq_repeat(a, n)); }
PyObject* subscript(PyObject* self, PyObject* key) {
  PyObject* found = PyTuple_Type.tp_as_mapping->mp_subscript(self, key);
  return PySlice_Check(key) ? as_size(found) : found;
}
PyObject* reduce(PyObject* self, PyObject*) {
  return Py_BuildValue("O(N)", reinterpret_cast<PyObject*>(SizeType), PySequence_List(self));
}

PyMethodDef methods[] = {
    {"numel", numel, METH_NOARGS, "numel() -> int\n\nNumber of elements of a tensor of this shape."},
    {"__reduce__", reduce, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr}};
PyType_Slot slots[] = {{Py_tp_new, reinterpret_cast<void*>(construct)},
                       {Py_tp_repr, reinterpret_cast<void*>(repr)},
                       {Py_nb_add, reinterpret_cast<void*>(add)},
                       {Py_sq_concat, reinterpret_cast<void*>(concat)},
                       {Py_sq_repeat, reinterpret_cast<void*>(repeat)},
                       {Py_mp_subscript, reinterpret_cast<void*>(subscript)},
                       {Py_tp_methods, methods},
                       {Py_tp_doc, const_cast<char*>("Shape of a tensor: a tuple of ints with numel().")},
                       {0, nullptr}};
PyType_Spec spec{"taeda_tensor_core.Size", 0, 0, Py_TPFLAGS_DEFAULT, slots};

}  // namespace

/// Note [Shared sizes]
/// Programs ask for the same few shapes over and over. A Size cannot be changed, so the last one made of each kind is
/// given out again; the place in the table follows from the numbers, and a newcomer takes the place over.
PyObject* wrap_size(IntSpan sizes) {
  constexpr size_t kLongest = 6, kPlaces = 256;
  struct Known {
    PyObject* size;
    size_t ndim;
    int64_t dims[kLongest];
  };
  static Known table[kPlaces] = {};
  const size_t n = sizes.size();
  const auto make = [&] { return fill(SizeType->tp_alloc(SizeType, Py_ssize_t(n)), sizes); };
  if (n > kLongest) return make();
  uint64_t mixed = n;
  for (int64_t size : sizes) mixed = (mixed ^ uint64_t(size)) * 0x9e3779b97f4a7c15u;
  Known& known = table[mixed >> 56];
  if (known.size && known.ndim == n) {
    uint64_t apart = 0;  // a call of memcmp would take longer
    for (size_t d = 0; d < n; ++d) apart |= uint64_t(sizes[d] ^ known.dims[d]);
    if (apart == 0) return Py_NewRef(known.size);
  }
  PyObject* made = make();
  if (!made) return nullptr;
  std::copy(sizes.begin(), sizes.end(), known.dims);
  known.ndim = n;
  // Last, for it may run any code: the place is whole by then.
  PyObject* old = std::exchange(known.size, Py_NewRef(made));
  Py_XDECREF(old);
  return made;
}
PyObject* wrap_tuple(IntSpan values) { return fill(PyTuple_New(Py_ssize_t(values.size())), values); }

bool init_size(PyObject* module) {
  SizeType =
      reinterpret_cast<PyTypeObject*>(PyType_FromSpecWithBases(&spec, reinterpret_cast<PyObject*>(&PyTuple_Type)));
  return SizeType && PyModule_AddObjectRef(module, "Size", reinterpret_cast<PyObject*>(SizeType)) == 0;
}

}  // namespace taeda::py
