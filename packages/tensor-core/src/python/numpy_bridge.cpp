// NumPy arrays through NumPy's C API, which is imported when the first array is met.
#include "python/numpy_bridge.h"

#include <cstring>
#include <utility>

#include "python/internal.h"
#include "taeda/lent.h"
#include "taeda/exported.h"

#define NPY_NO_DEPRECATED_API NPY_1_7_API_VERSION
#include <numpy/arrayobject.h>

namespace taeda::py {
namespace {

void need_numpy() {
  static bool ready = false;
  if (ready) return;
  ensure(_import_array() >= 0);
  ready = true;
}

constexpr int kTypeNumbers[] = {NPY_BOOL,    NPY_INT8,   NPY_INT16, NPY_INT32, NPY_INT64, NPY_UINT8,  NPY_UINT16,
                                NPY_UINT32,  NPY_UINT64, NPY_HALF,  NPY_VOID,  NPY_FLOAT, NPY_DOUBLE, NPY_CFLOAT,
                                NPY_CDOUBLE, NPY_VOID,   NPY_VOID,  NPY_VOID,  NPY_VOID,  NPY_VOID};
static_assert(kTypeNumbers[size_t(DType::UInt64)] == NPY_UINT64 && kTypeNumbers[size_t(DType::Float32)] == NPY_FLOAT &&
              kTypeNumbers[size_t(DType::Complex128)] == NPY_CDOUBLE);

std::optional<DType> dtype_of(const PyArray_Descr* descr) {
  int number = descr->type_num;
  // C has two types of 64 bits; NPY_INT64 is one of them.
  if (number == NPY_LONGLONG) number = NPY_INT64;
  if (number == NPY_ULONGLONG) number = NPY_UINT64;
  if (number == NPY_VOID) return std::nullopt;
  for (size_t i = 0; i < std::size(kTypeNumbers); ++i)
    if (kTypeNumbers[i] == number) return DType(i);
  return std::nullopt;
}

/// What an array has as its base: memory of a tensor.
struct PyMemory {
  PyObject_HEAD Exported memory;
};
PyTypeObject* memory_type = nullptr;
PyMemory* spare = nullptr;  // of the array that was dropped last: most live shortly

void drop_memory(PyObject* self) {
  auto* dying = reinterpret_cast<PyMemory*>(self);
  dying->memory.~Exported();
  if (!spare) spare = dying;  // with its reference to the type
  else {
    PyObject_Free(dying);
    Py_DECREF(memory_type);
  }
}
void make_memory_type() {
  static PyType_Slot slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(drop_memory)}, {0, nullptr}};
  static PyType_Spec spec{"taeda_tensor_core._C._Memory", sizeof(PyMemory), 0,
                          Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
  memory_type = reinterpret_cast<PyTypeObject*>(own(PyType_FromSpec(&spec)).release());
}
Object hold(const Tensor& t) {
  if (!memory_type) make_memory_type();
  Exported memory(t.impl()->storage);
  PyMemory* made = std::exchange(spare, nullptr);
  if (made) _Py_NewReference(reinterpret_cast<PyObject*>(made));
  else
    made = reinterpret_cast<PyMemory*>(own(reinterpret_cast<PyObject*>(PyObject_New(PyMemory, memory_type))).release());
  new (&made->memory) Exported(std::move(memory));
  return own(reinterpret_cast<PyObject*>(made));
}

}  // namespace

bool is_swapped(PyObject* array) { return PyArray_ISBYTESWAPPED(reinterpret_cast<PyArrayObject*>(array)); }

bool is_ndarray(PyObject* o) {
  static PyTypeObject* known = nullptr;
  if (Py_TYPE(o) == known) return true;
  if (known || std::strcmp(Py_TYPE(o)->tp_name, "numpy.ndarray") != 0) return false;
  need_numpy();
  if (!PyArray_CheckExact(o)) return false;
  known = Py_TYPE(o);
  return true;
}

std::optional<ArrayView> view_of(PyObject* o) {
  auto* array = reinterpret_cast<PyArrayObject*>(o);
  const std::optional<DType> dtype = dtype_of(PyArray_DESCR(array));
  const size_t n = size_t(PyArray_NDIM(array));
  if (!dtype || !PyArray_ISNOTSWAPPED(array) || n > size_t(kMaxDims)) return std::nullopt;
  return ArrayView{static_cast<char*>(PyArray_DATA(array)), Shape(IntSpan(PyArray_DIMS(array), n)),
                   Shape(IntSpan(PyArray_STRIDES(array), n)), *dtype, !PyArray_ISWRITEABLE(array)};
}

PyObject* array_over(const Tensor& t) {
  need_numpy();
  npy_intp dims[kMaxDims], steps[kMaxDims];
  const int n = int(t.dim());
  for (int d = 0; d < n; ++d) {
    dims[d] = t.size(d);
    steps[d] = t.stride(d) * t.item_bytes();
  }
  const int flags = is_fixed(*t.impl()->storage) ? 0 : NPY_ARRAY_WRITEABLE;
  Object array =
      own(PyArray_New(&PyArray_Type, n, dims, kTypeNumbers[size_t(t.dtype())], steps, t.bytes(), 0, flags, nullptr));
  // Without memory of its own the tensor has nothing to share, and NumPy has allocated.
  if (t.bytes()) ensure(PyArray_SetBaseObject(reinterpret_cast<PyArrayObject*>(array.get()), hold(t).release()) == 0);
  return array.release();
}

}  // namespace taeda::py
