// What the hand-written files of the extension share among themselves.
#pragma once
#include <memory>
#include <vector>

#include "python/pytensor.h"
#include "taeda/generator_state.h"
#include "taeda/wrappers.h"

namespace taeda::py {

/// Owned PyObject reference.
struct Decref {
  void operator()(PyObject* o) const noexcept { Py_DECREF(o); }
};
using Object = std::unique_ptr<PyObject, Decref>;
/// Adopts a new reference; a null one means that a Python error is set.
inline Object own(PyObject* o) {
  if (!o) throw PythonError();
  return Object(o);
}
inline Object share(PyObject* o) { return Object(Py_NewRef(o)); }
inline void ensure(bool ok) {
  if (!ok) throw PythonError();
}
/// Whether an object counts as true, which its class may refuse to say.
inline bool is_true(PyObject* o) {
  const int answer = PyObject_IsTrue(o);
  ensure(answer >= 0);
  return answer;
}
/// The items of a sequence. A class with nothing but `__getitem__` is read as far as its `__len__` says: it may never
/// raise IndexError.
Object items_of(PyObject* sequence);
/// "list", "Tensor", "ndarray"...
inline const char* type_name(PyObject* o) { return Py_TYPE(o)->tp_name; }
/// UTF-8 text of a str; TypeError otherwise.
std::string_view text_of(PyObject* o, const char* what);
/// as_number() whose complaint about integers beyond 64 bits names the operator and, unless null, the argument.
std::optional<Scalar> number_for(PyObject* o, const char* op, const char* argument);
/// A seed: 64 bits, signed or not, so that -1 is one too.
uint64_t seed_of(PyObject* o);
/// The engine that an argument named 'engine' stands for: "philox" or "mt19937".
Engine engine_of_name(const char* op, PyObject* o);
const char* name_of(Engine engine);
/// An attribute, or null without an error when it is missing.
Object optional_attribute(PyObject* o, const char* name);

/// The object itself where it is a dtype whose tensors are made of others' (int4): its `_pack(tensor)` makes them; else
/// null.
inline PyObject* packing(PyObject* o) {
  if (!o || o == Py_None || as_dtype(o)) return nullptr;
  return optional_attribute(o, "_pack") ? o : nullptr;
}
inline PyObject* packed(PyObject* dtype, const Tensor& numbers) {
  const Object given = own(wrap(numbers));
  return own(PyObject_CallMethod(dtype, "_pack", "O", given.get())).release();
}

// Types, made once when the module is. Each returns false with the Python error set.
bool init_dtype(PyObject* module);
extern PyMethodDef dtype_functions[];
bool init_device(PyObject* module);
bool init_generator(PyObject* module);
bool init_size(PyObject* module);
bool init_tensor(PyObject* module);
bool init_mode(PyObject* module);
/// Warnings of the library become Python's.
void show_warnings();

/// Tracks the wrapper for the collector once it has a __dict__.
void track_state(PyObject* self) noexcept;

// Pieces of the Tensor type.
std::vector<PyType_Slot> number_slots();
extern PyGetSetDef tensor_attributes[];
extern PyMethodDef tensor_methods[];
extern PyMethodDef data_functions[];
extern PyMethodDef buffer_functions[];
extern PyMethodDef buffer_methods[];
extern PyMethodDef dlpack_functions[];
extern PyMethodDef dlpack_methods[];
extern PyMethodDef runtime_functions[];
extern PyMethodDef text_functions[];
extern PyMethodDef stream_functions[];
extern PyMethodDef plugin_functions[];
extern PyMethodDef devices_together_functions[];
extern PyMethodDef ending_functions[];
extern PyMethodDef storage_watch_functions[];
extern PyMethodDef step_functions[];
PyObject* tensor_getitem(PyObject* self, PyObject* key) noexcept;
int tensor_setitem(PyObject* self, PyObject* key, PyObject* value) noexcept;
PyObject* tensor_sequence_item(PyObject* self, Py_ssize_t i) noexcept;
PyObject* tensor_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) noexcept;
int tensor_get_buffer(PyObject* self, Py_buffer* view, int flags) noexcept;
void tensor_release_buffer(PyObject* self, Py_buffer* view) noexcept;

// --- data.cpp: tensors from Python data ---
/// Like `tensor(data, dtype=..., device=...)`: always a copy.
Tensor tensor_from_data(PyObject* data, std::optional<DType> dtype, std::optional<Device> device);
/// Shares memory when the object allows it and nothing must change.
Tensor tensor_sharing(PyObject* data, std::optional<DType> dtype, std::optional<Device> device, const char* op);
PyObject* to_nested_list(const Tensor& tensor);
/// Converts and moves; `self` itself when nothing changes.
Tensor converted(const Tensor& self, std::optional<DType> dtype, std::optional<Device> device);

// --- buffer.cpp: arrays of others ---
/// A tensor over the memory of an object with __array_interface__ (NumPy arrays); nothing when it has none. Elements
/// that lie as no tensor's may, misaligned or between, are copied, or refused where memory is to be `shared`.
std::optional<Tensor> from_array_interface(PyObject* o, const char* op, bool shared = false);
/// An array of NumPy's whose bytes are in foreign order, copied into that of this machine; anything else itself.
Object in_own_order(PyObject* o);
/// A tensor over the bytes of an object with the buffer protocol; `count` < 0: all that follow `offset`.
Tensor over_buffer(PyObject* buffer, DType dtype, int64_t count, int64_t offset, const char* op);
/// NumPy's typestr ("<f4") to a dtype; nothing when there is no counterpart.
std::optional<DType> dtype_from_typestr(std::string_view text);
/// PEP 3118 format of a dtype.
const char* buffer_format(DType dtype);

/// Whether an object may stand for a bool: Python's or NumPy's, or a bool tensor of no dimension.
bool is_bool(PyObject* o);

// --- requires_grad ---
/// RuntimeError that names what is missing and the pip command.
[[noreturn]] void needs_autograd(const char* what);
void set_requires_grad(const Tensor& tensor, bool value);

/// What programs call the library: "taeda", or "torch" while it stands under that name. It begins the texts of dtypes.
const char* public_name();
/// "Size", or with the other name "torch.Size".
const char* size_name();
PyObject* set_public_name(PyObject* module, PyObject* name);
/// Lets the classes of results with named parts say the public name.
void tell_homes_of_results();

}  // namespace taeda::py

#include "python/override.h"
