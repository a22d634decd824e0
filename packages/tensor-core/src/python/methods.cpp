// Hand-written methods of the Tensor type: facts about the tensor, numbers out of it, conversions.
#include "infer/memory_format.h"
#include "python/arguments.h"
#include "python/internal.h"
#include "python/override.h"
#include "taeda/lent.h"
#include "taeda/derived.h"
#include "taeda/exported.h"
#include "taeda/levels.h"
#include "taeda/ops.h"
#include "taeda/stream.h"

namespace taeda::py {
namespace {

PyObject* item(PyObject* self, PyObject*) {
  return guarded([&] { return number_of(scalar_of(tensor_of(self), "item")); });
}
PyObject* tolist(PyObject* self, PyObject*) {
  return guarded([&] { return to_nested_list(tensor_of(self)); });
}
PyObject* as_complex(PyObject* self, PyObject*) {
  return guarded([&] {
    const Scalar v = scalar_of(tensor_of(self), "complex");
    return PyComplex_FromDoubles(v.to_double(), v.imag());
  });
}

PyObject* dim(PyObject* self, PyObject*) { return PyLong_FromLongLong(tensor_of(self).dim()); }
PyObject* numel(PyObject* self, PyObject*) { return PyLong_FromLongLong(tensor_of(self).numel()); }
// Functions of their own, so that a call says by which name it came.
PyObject* ndimension(PyObject* self, PyObject* unused) { return dim(self, unused); }
PyObject* nelement(PyObject* self, PyObject* unused) { return numel(self, unused); }
PyObject* element_size(PyObject* self, PyObject*) { return PyLong_FromLongLong(tensor_of(self).item_bytes()); }
PyObject* storage_offset(PyObject* self, PyObject*) { return PyLong_FromLongLong(tensor_of(self).storage_offset()); }
PyObject* data_ptr(PyObject* self, PyObject*) {
  return guarded([&] {
    note_address(tensor_of(self).impl()->storage);
    return PyLong_FromVoidPtr(tensor_of(self).bytes());
  });
}
PyObject* is_floating_point(PyObject* self, PyObject*) { return PyBool_FromLong(is_floating(tensor_of(self).dtype())); }
PyObject* is_complex_method(PyObject* self, PyObject*) { return PyBool_FromLong(is_complex(tensor_of(self).dtype())); }
PyObject* is_signed_method(PyObject* self, PyObject*) { return PyBool_FromLong(is_signed(tensor_of(self).dtype())); }
PyObject* is_inference(PyObject* self, PyObject*) {
  return PyBool_FromLong(tensor_of(self).impl()->flags & kInference);
}
PyObject* is_view(PyObject* self, PyObject*) { return PyBool_FromLong(tensor_of(self).is_view()); }
PyObject* is_pinned(PyObject* self, PyObject*) { return PyBool_FromLong(taeda::is_pinned(tensor_of(self))); }
PyObject* get_device(PyObject* self, PyObject*) {
  const Device device = tensor_of(self).device();
  return PyLong_FromLong(device.backend == kCPU ? -1 : device.index);
}

/// One entry, or all of them.
PyObject* entry(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* names, const char* op,
                bool strides) {
  return guarded([&] {
    static Names known{"size", 1, {"dim", "axis"}};
    const Given given(known, args, count, names);
    const Tensor& t = tensor_of(self);
    const int dim = given[1] ? 1 : 0;
    if (!given.has(dim)) return strides ? wrap_tuple(t.strides()) : wrap_size(t.sizes());
    check(t.dim() > 0, ErrorKind::Index, op, ": argument 'dim' is ", given.integer(dim, 0),
          ", but the tensor has no dimensions");
    const int64_t d = wrap_dim(given.integer(dim, 0), t.dim(), op);
    return PyLong_FromLongLong(strides ? t.stride(d) : t.size(d));
  });
}
PyObject* size(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  return entry(self, args, count, names, "size", false);
}
PyObject* stride(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  return entry(self, args, count, names, "stride", true);
}

PyObject* is_contiguous(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  return guarded([&] {
    static Names known{"is_contiguous", 0, {"memory_format"}};
    const Given given(known, args, count, names);
    const std::string_view format = given.text(0, "contiguous_format");
    return PyBool_FromLong(infer::lies_as("is_contiguous", tensor_of(self), format));
  });
}

PyObject* requires_grad_(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  return guarded([&] {
    static Names known{"requires_grad_", 1, {"requires_grad"}};
    const Given given(known, args, count, names);
    if (given[0] && !is_bool(given[0])) given.wrong(0, "a bool");
    set_requires_grad(tensor_of(self), given.truth(0, true));
    return Py_NewRef(self);
  });
}

// --- conversions ---

/// The wrapper itself when nothing changed, so that subclasses and identity are kept.
PyObject* wrap_or_self(PyObject* self, Tensor made) {
  return made.same(tensor_of(self)) ? Py_NewRef(self) : wrap(std::move(made));
}

/// The tensor with steps of a memory format: itself where its own are of that kind.
Tensor in_order(const Tensor& t, std::string_view format) {
  const int64_t dims = format == "channels_last" ? 4 : format == "channels_last_3d" ? 5 : 0;
  if (!dims) return ops::contiguous(t, format);
  return t.dim() == dims && infer::channels_stand_last(t) ? t : ops::clone(t, format);
}

PyObject* to(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  return guarded([&] {
    static Names known{"to", 5, {"dtype", "device", "other", "non_blocking", "copy", "memory_format"}};
    // The leading positional argument may be a dtype, a device or a tensor.
    PyObject* const* rest = args;
    std::optional<DType> dtype;
    std::optional<Device> device;
    PyObject* other = nullptr;  // a dtype that is not the core's
    while (rest < args + count && !PyBool_Check(*rest)) {
      if (is_tensor(*rest)) {
        dtype = tensor_of(*rest).dtype();
        device = tensor_of(*rest).device();
      } else if (std::optional<Device> d = as_device(*rest)) {
        device = d;
      } else if (*rest != Py_None) {
        const std::optional<DType> t = as_dtype(*rest);
        if (!t && !(other = packing(*rest)))
          fail(ErrorKind::Type, "to: expected a dtype, a device or a Tensor as argument ", rest - args + 1, ", found ",
               type_name(*rest));
        dtype = t;
      }
      ++rest;
    }
    if (args + count - rest > 2)
      fail(ErrorKind::Type, "to: expected at most 2 arguments behind the dtype or device, found ", args + count - rest);
    bool copy = false, non_blocking = rest < args + count && is_true(rest[0]);
    if (rest + 1 < args + count) {
      if (!is_bool(rest[1])) fail(ErrorKind::Type, "to: argument 'copy' must be a bool, found ", type_name(rest[1]));
      copy = is_true(rest[1]);
    }
    const Given given(known, args + count, 0, names);
    if (given.has(0) && !(other = packing(given[0]))) dtype = given.dtype(0);
    if (given.has(1)) device = given.device(1);
    if (other) [[unlikely]]
      return packed(other, converted(tensor_of(self), std::nullopt, device));
    if (given.has(2)) {
      if (!is_tensor(given[2])) given.wrong(2, "a Tensor");
      dtype = tensor_of(given[2]).dtype();
      device = tensor_of(given[2]).device();
    }
    copy = given.truth(4, copy);
    non_blocking = given.truth(3, non_blocking);
    const Tensor& t = tensor_of(self);
    Tensor made;
    if (non_blocking && device && *device != t.device()) {
      const Tensor from = converted(t, dtype, std::nullopt);
      made = empty(from.sizes(), from.dtype(), *device);
      ops::copy_(made, from, true);
    } else {
      made = converted(t, dtype, device);
    }
    if (given.has(5)) made = in_order(made, given.text(5, ""));
    if (copy && made.same(t)) made = ops::clone(t);
    return wrap_or_self(self, std::move(made));
  });
}

template <DType D>
PyObject* as_type(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  return guarded([&] {
    Tensor made = converted(tensor_of(self), D, std::nullopt);
    if (count || names) [[unlikely]] {
      static const std::string dtype(name(D));
      static Names known{dtype.c_str(), 0, {"memory_format"}};
      const Given given(known, args, count, names);
      if (given.has(0)) made = ops::contiguous(made, given.text(0, "preserve_format"));
    }
    return wrap_or_self(self, std::move(made));
  });
}
PyObject* cpu(PyObject* self, PyObject*) {
  return guarded([&] { return wrap_or_self(self, converted(tensor_of(self), std::nullopt, Device{})); });
}

// --- subclasses and storage ---

/// cls, data, requires_grad: a wrapper of class `cls` over the elements of `data`, without history.
PyObject* make_subclass(PyObject*, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  return guarded([&]() -> PyObject* {
    static Names known{"_make_subclass", 3, {"cls", "data", "require_grad"}};
    const Given given(known, args, count, names);
    PyObject* type = given.need(0);
    if (!PyType_Check(type) || !PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(type), TensorType))
      fail(ErrorKind::Type, "_make_subclass: argument 'cls' must be a subclass of Tensor, found ", type_name(type));
    if (!is_tensor(given.need(1))) given.wrong(1, "a Tensor");
    Tensor made = bare_alias(tensor_of(given[1]));
    if (given.truth(2, false)) set_requires_grad(made, true);
    return wrap_fresh(std::move(made), reinterpret_cast<PyTypeObject*>(type));
  });
}

PyObject* storage_facts(PyObject* self, PyObject*) {
  return guarded([&] {
    check_has_memory(tensor_of(self), "untyped_storage");
    const Storage* storage = tensor_of(self).impl()->storage.get();
    return Py_BuildValue("(NKkONN)", PyLong_FromVoidPtr(storage ? storage->data : nullptr),
                         static_cast<unsigned long long>(storage ? shown_bytes(*storage) : 0),
                         static_cast<unsigned long>(storage ? storage->use_count() : 0),
                         storage && is_fixed(*storage) ? Py_True : Py_False,
                         PyLong_FromVoidPtr(tensor_of(self).bytes()),
                         PyLong_FromVoidPtr(const_cast<Storage*>(storage)));
  });
}

/// nbytes: False where there are fewer bytes than that.
PyObject* resize_storage(PyObject* self, PyObject* size) {
  return guarded([&]() -> PyObject* {
    const Tensor& tensor = tensor_of(self);
    check_has_memory(tensor, "resize_");
    const Py_ssize_t nbytes = PyNumber_AsSsize_t(size, PyExc_OverflowError);
    ensure(nbytes != -1 || !PyErr_Occurred());
    check(nbytes >= 0, ErrorKind::Runtime, "resize_: argument 'size' is ", nbytes, ", expected at least 0");
    Storage* storage = tensor.impl()->storage.get();
    if (!storage || size_t(nbytes) > storage->nbytes) return Py_NewRef(nbytes ? Py_False : Py_True);
    check(storage->growable, ErrorKind::Runtime,
          "resize_: Trying to resize storage that is not resizable: it shows memory of another library");
    const uint32_t exports = exports_of(*storage);
    check(exports == 0 || size_t(nbytes) == shown_bytes(*storage), ErrorKind::Runtime,
          "resize_: Trying to resize storage that is not resizable: others hold its memory (", exports,
          " NumPy arrays, buffers or DLPack capsules); let go of them or use a clone()");
    show_bytes(*storage, size_t(nbytes));
    return Py_NewRef(Py_True);
  });
}

PyObject* is_set_to(PyObject* self, PyObject* other) {
  return guarded([&] {
    if (!is_tensor(other))
      fail(ErrorKind::Type, "is_set_to: argument 'tensor' must be a Tensor, found ", type_name(other));
    return PyBool_FromLong(same_place(tensor_of(self), tensor_of(other)));
  });
}

PyObject* resize_to(PyObject* self, PyObject* size) {
  return guarded([&] {
    const Object items = own(PySequence_Tuple(size));
    Shape sizes;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(items.get()); ++i) {
      sizes.push_back(PyNumber_AsSsize_t(PyTuple_GET_ITEM(items.get(), i), PyExc_OverflowError));
      ensure(sizes.back() != -1 || !PyErr_Occurred());
    }
    resize(tensor_of(self), sizes);
    tensor_of(self).bump_version(op::set_::entry.id);  // what it shows has changed
    return Py_NewRef(self);
  });
}

}  // namespace

#define TAEDA_FAST(FUNCTION) reinterpret_cast<PyCFunction>(method_fast<FUNCTION>), METH_FASTCALL | METH_KEYWORDS
#define TAEDA_CAST(NAME, DTYPE)             \
  {NAME, TAEDA_FAST(as_type<DType::DTYPE>), \
   NAME "(*, memory_format=preserve_format) -> Tensor\n\nThe tensor in dtype " #DTYPE "; itself when it has it."}
PyMethodDef tensor_methods[] = {
    {"item", method0<item>, METH_NOARGS,
     "item() -> bool | int | float | complex\n\nThe one element as a Python number.\n\nRaises:\n    RuntimeError: "
     "There is not exactly one element."},
    {"tolist", method0<tolist>, METH_NOARGS, "tolist() -> list\n\nElements as nested lists; a number for 0-d tensors."},
    {"__complex__", method0<as_complex>, METH_NOARGS, nullptr},
    {"dim", method0<dim>, METH_NOARGS, "dim() -> int\n\nNumber of dimensions."},
    {"ndimension", method0<ndimension>, METH_NOARGS, "ndimension() -> int\n\nNumber of dimensions."},
    {"numel", method0<numel>, METH_NOARGS, "numel() -> int\n\nNumber of elements."},
    {"nelement", method0<nelement>, METH_NOARGS, "nelement() -> int\n\nNumber of elements."},
    {"element_size", method0<element_size>, METH_NOARGS, "element_size() -> int\n\nBytes per element."},
    {"storage_offset", method0<storage_offset>, METH_NOARGS,
     "storage_offset() -> int\n\nPlace of the first element in the storage, in elements."},
    {"data_ptr", method0<data_ptr>, METH_NOARGS, "data_ptr() -> int\n\nAddress of the first element."},
    {"is_floating_point", method0<is_floating_point>, METH_NOARGS,
     "is_floating_point() -> bool\n\nWhether the dtype is real floating."},
    {"is_complex", method0<is_complex_method>, METH_NOARGS, "is_complex() -> bool\n\nWhether the dtype is complex."},
    {"is_signed", method0<is_signed_method>, METH_NOARGS, "is_signed() -> bool\n\nWhether elements can be negative."},
    {"is_inference", method0<is_inference>, METH_NOARGS,
     "is_inference() -> bool\n\nWhether the tensor was made under inference_mode."},
    {"_is_view", method0<is_view>, METH_NOARGS, nullptr},
    {"is_pinned", method0<is_pinned>, METH_NOARGS, "is_pinned() -> bool\n\nWhether the memory is page-locked."},
    {"get_device", method0<get_device>, METH_NOARGS, "get_device() -> int\n\nIndex of the device, -1 for cpu."},
    {"size", TAEDA_FAST(size), "size(dim=None) -> Size | int\n\nAll sizes, or the one of dimension `dim`."},
    {"stride", TAEDA_FAST(stride),
     "stride(dim=None) -> tuple | int\n\nAll strides in elements, or the one of dimension `dim`."},
    {"is_contiguous", TAEDA_FAST(is_contiguous),
     "is_contiguous(*, memory_format=contiguous_format) -> bool\n\nWhether elements lie in that order without gaps."},
    {"requires_grad_", TAEDA_FAST(requires_grad_),
     "requires_grad_(requires_grad=True) -> Tensor\n\nTurns recording of operations on or off; returns self."},
    {"to", TAEDA_FAST(to),
     "to(dtype | device | other, *, dtype=None, device=None, copy=False, memory_format=None) -> Tensor\n\nThe tensor "
     "in another dtype, device or layout; itself when nothing changes and copy is False."},
    {"cpu", method0<cpu>, METH_NOARGS, "cpu() -> Tensor\n\nThe tensor on the cpu; itself when it is there."},
    TAEDA_CAST("bool", Bool),
    TAEDA_CAST("char", Int8),
    TAEDA_CAST("short", Int16),
    TAEDA_CAST("int", Int32),
    TAEDA_CAST("long", Int64),
    TAEDA_CAST("byte", UInt8),
    TAEDA_CAST("half", Float16),
    TAEDA_CAST("bfloat16", BFloat16),
    TAEDA_CAST("float", Float32),
    TAEDA_CAST("double", Float64),
    TAEDA_CAST("cfloat", Complex64),
    TAEDA_CAST("cdouble", Complex128),
    {"_make_subclass", reinterpret_cast<PyCFunction>(make_subclass), METH_FASTCALL | METH_KEYWORDS | METH_STATIC,
     "_make_subclass(cls, data, require_grad=False) -> Tensor\n\nInstance of a subclass over the elements of `data`."},
    {"_storage_facts", storage_facts, METH_NOARGS, nullptr},
    {"_resize_storage", resize_storage, METH_O, nullptr},
    {"is_set_to", method1<is_set_to>, METH_O,
     "is_set_to(tensor) -> bool\n\nWhether both show the same elements of the same storage."},
    {"_resize_to", method1<resize_to>, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace taeda::py
