// Calls that `__torch_function__` may answer: which arguments ask for it, the function modes of the thread, the
// hand-over.
#pragma once
#include "python/internal.h"

namespace taeda::py {

/// Note [Plain tensors]
/// Every argument is compared with the type of plain tensors in any case. The thread keeps that type in a variable of
/// its own (pytensor.h): null while a function mode is in force, and before the thread's first call. So a mode costs
/// calls without modes nothing: while there is one, every argument takes the slow way, and only there modes and classes
/// that answer for themselves are looked for.

/// Thrown by a conversion that meets an argument whose class answers, or a mode: nothing has been computed yet.
struct Overridden {};

/// The class of tensors that was last found to answer nothing, such as a parameter's, as it was then.
struct QuietClass {
  PyTypeObject* type;
  unsigned version;
};
extern QuietClass quiet_class;
/// Whether no mode is in force and the class is `quiet_class`, unchanged.
inline bool keeps_quiet(PyObject* o) {
  const PyTypeObject* type = Py_TYPE(o);
  return type == quiet_class.type && plain_type && (type->tp_flags & Py_TPFLAGS_VALID_VERSION_TAG) &&
         type->tp_version_tag == quiet_class.version;
}
/// Asks the modes, then the class.
bool answered_elsewhere(PyObject* o);
/// Whether a call with this argument is answered elsewhere: by a mode, or by the class of the argument.
inline bool overrides(PyObject* o) { return !is_plain(o) && !keeps_quiet(o) && answered_elsewhere(o); }
/// The same, quickly for the usual partners of tensors.
inline bool may_override(PyObject* o) {
  if (plain_type && (PyFloat_CheckExact(o) || PyLong_CheckExact(o))) return false;
  return overrides(o);
}
/// The same of an argument that may be a tuple or a list: one of its items may be who answers.
bool may_override_in(PyObject* o);
/// For functions that take no tensor: throws while a mode is in force.
void meet_mode();
inline void watch_modes() {
  if (!plain_type) [[unlikely]]
    meet_mode();
}
bool mode_in_force();
/// What those who override operators answer to this call of a public function; nothing where nobody does. `kwargs` may
/// be null.
Object overridden(PyObject* function, PyObject* args, PyObject* kwargs);

/// Lets a mode or the arguments' classes answer for a public function. `self` may be null; keywords as in
/// METH_FASTCALL. `partner`: NotImplemented is a result, because the other operand of a Python operator may still know
/// what to do.
PyObject* call_override(PyObject* function, PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* keywords,
                        bool partner = false);
/// The same for the function or, when `self` is given, the method of this name.
PyObject* override_named(const char* name, PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* keywords);
/// An operator of Python: `operands[0]` is the tensor whose method it is. With two operands NotImplemented is a result.
PyObject* override_operator(const char* name, std::initializer_list<PyObject*> operands);
/// Reading, writing (`value` null: deleting) an attribute.
PyObject* override_get(const char* name, PyObject* self);
int override_set(const char* name, PyObject* self, PyObject* value);

bool dispatches(PyTypeObject* type);
/// Where a class with `__torch_dispatch__` is asked; its instances carry the bit of that layer (Note [Wrapping
/// tensors]).
Layer dispatch_layer(PyTypeObject* type);

extern PyMethodDef override_functions[];
extern PyMethodDef override_methods[];
bool init_override(PyObject* module);

// --- hand-written methods, attributes and functions that may be answered elsewhere ---

/// Names of what stands in the tables of methods and attributes.
const char* method_name(void* function);
const char* attribute_name(void* accessor, void* closure);

template <auto F>
PyObject* method0(PyObject* self, PyObject* unused) {
  if (Py_TYPE(self) != plain_type) [[unlikely]]
    if (overrides(self))
      return override_named(method_name(reinterpret_cast<void*>(&method0<F>)), self, nullptr, 0, nullptr);
  return F(self, unused);
}
template <auto F>
PyObject* method1(PyObject* self, PyObject* other) {
  if (Py_TYPE(self) != plain_type || Py_TYPE(other) != plain_type) [[unlikely]]
    if (overrides(self) || overrides(other))
      return override_named(method_name(reinterpret_cast<void*>(&method1<F>)), self, &other, 1, nullptr);
  return F(self, other);
}
template <auto F>
PyObject* method_fast(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  if (Py_TYPE(self) != plain_type) [[unlikely]]
    if (overrides(self))
      return override_named(method_name(reinterpret_cast<void*>(&method_fast<F>)), self, args, count, names);
  return F(self, args, count, names);
}
template <getter F>
PyObject* get(PyObject* self, void* closure);
template <getter F>
[[gnu::noinline]] PyObject* get_slow(PyObject* self, void* closure) {
  if (overrides(self)) return override_get(attribute_name(reinterpret_cast<void*>(&get<F>), closure), self);
  return F(self, closure);
}
template <getter F>
PyObject* get(PyObject* self, void* closure) {
  if (Py_TYPE(self) != plain_type) [[unlikely]]
    return get_slow<F>(self, closure);
  return F(self, closure);
}
template <setter F>
int set(PyObject* self, PyObject* value, void* closure) {
  if (Py_TYPE(self) != plain_type) [[unlikely]]
    if (overrides(self)) return override_set(attribute_name(reinterpret_cast<void*>(&set<F>), closure), self, value);
  return F(self, value, closure);
}

}  // namespace taeda::py
