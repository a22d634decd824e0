// Errors across the border, and small conversions of Python values.
#include <new>

#include "python/errors.h"
#include "python/library.h"
#include "taeda/autograd_api.h"
#include "taeda/linalg_error.h"

namespace taeda::py {

PyObject* linalg_error() noexcept {
  static PyObject* const made = PyErr_NewExceptionWithDoc(
      "taeda_tensor_core.linalg.LinAlgError",
      "A matrix that is singular or not positive definite where it must be, or an iteration that did not converge.",
      PyExc_RuntimeError, nullptr);
  return made;
}

PyObject* data_error() noexcept {
  static PyObject* const made = [] {
    const Object bases(PyTuple_Pack(3, PyExc_TypeError, PyExc_ValueError, PyExc_RuntimeError));
    return bases ? PyErr_NewExceptionWithDoc("taeda_tensor_core.errors.DataError",
                                             "What was given cannot become a tensor.", bases.get(), nullptr)
                 : nullptr;
  }();
  return made;
}

namespace {

PyObject* class_of(ErrorKind kind) {
  if (kind == kLinAlgError) return linalg_error();
  switch (kind) {
    case ErrorKind::Type: return PyExc_TypeError;
    case ErrorKind::Value: return PyExc_ValueError;
    case ErrorKind::Index: return PyExc_IndexError;
    case ErrorKind::NotImplemented: return PyExc_NotImplementedError;
    case ErrorKind::Memory: return PyExc_MemoryError;
    case ErrorKind::ZeroDivision: return PyExc_ZeroDivisionError;
    case ErrorKind::Overflow: return PyExc_OverflowError;
    case ErrorKind::Buffer: return PyExc_BufferError;
    default: return PyExc_RuntimeError;
  }
}

/// A class that is a RuntimeError too: PyTorch raises that one where Python has a closer class, and programs catch it.
PyObject* runtime_error_too(const char* name, PyObject* closer, PyObject* further = nullptr) noexcept {
  const Object bases(PyTuple_Pack(further ? 3 : 2, closer, PyExc_RuntimeError, further));
  return bases ? PyErr_NewExceptionWithDoc(name, "One of Python's errors that is a RuntimeError too.", bases.get(),
                                           nullptr)
               : nullptr;
}
/// What an error of a kind is raised as; `class_of` is what such errors are told by.
PyObject* raised_as(ErrorKind kind) noexcept {
  static PyObject* const index = runtime_error_too("taeda_tensor_core.errors.IndexError", PyExc_IndexError);
  static PyObject* const memory = runtime_error_too("taeda_tensor_core.errors.MemoryError", PyExc_MemoryError);
  // Sizes, indices and seeds of more than 64 bits are a ValueError there.
  static PyObject* const overflow =
      runtime_error_too("taeda_tensor_core.errors.OverflowError", PyExc_OverflowError, PyExc_ValueError);
  static PyObject* const zero =
      runtime_error_too("taeda_tensor_core.errors.ZeroDivisionError", PyExc_ZeroDivisionError);
  switch (kind) {
    case ErrorKind::Index: return index;
    case ErrorKind::Memory: return memory;
    case ErrorKind::Overflow: return overflow;
    case ErrorKind::ZeroDivision: return zero;
    default: return class_of(kind);
  }
}

bool has_number_slot(PyObject* o) {
  const PyNumberMethods* number = Py_TYPE(o)->tp_as_number;
  return number && (number->nb_index || number->nb_float);
}

/// NumPy scalars that are no subclass of a Python number (int64, float32, bool_ ...): told by their type's module.
std::optional<Scalar> foreign_number(PyObject* o) {
  if (PyUnicode_Check(o) || PySequence_Check(o) || !has_number_slot(o) || is_tensor(o)) return std::nullopt;
  if (Object item = optional_attribute(o, "item"); item) {
    const Object plain = own(PyObject_CallNoArgs(item.get()));
    if (PyLong_Check(plain.get()) || PyFloat_Check(plain.get()) || PyComplex_Check(plain.get()))
      return as_number(plain.get());
    // NumPy's longdouble has no counterpart and gives itself.
    if (Py_TYPE(plain.get()) == Py_TYPE(o) && optional_attribute(o, "is_integer"))
      return as_number(own(PyNumber_Float(o)).get());
    return std::nullopt;
  }
  if (Py_TYPE(o)->tp_as_number->nb_index) return as_number(own(PyNumber_Index(o)).get());
  return std::nullopt;  // fractions, decimals and symbols can become a float, and are none
}

}  // namespace

namespace {

/// The error that is set, as a new reference, taken away; null without one.
PyObject* fetch() noexcept {
#if PY_VERSION_HEX >= 0x030C0000
  return PyErr_GetRaisedException();
#else
  PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
  PyErr_Fetch(&type, &value, &trace);
  if (!type) return nullptr;
  PyErr_NormalizeException(&type, &value, &trace);
  if (trace) PyException_SetTraceback(value, trace);
  Py_XDECREF(type);
  Py_XDECREF(trace);
  return value;
#endif
}
void restore(PyObject* exception) noexcept {
#if PY_VERSION_HEX >= 0x030C0000
  PyErr_SetRaisedException(Py_NewRef(exception));
#else
  PyErr_Restore(Py_NewRef(Py_TYPE(exception)), Py_NewRef(exception), PyException_GetTraceback(exception));
#endif
}

ErrorKind kind_of(PyObject* exception) {
  // Subclasses before the classes that they belong to.
  for (const ErrorKind kind :
       {ErrorKind::NotImplemented, ErrorKind::Type, ErrorKind::Value, ErrorKind::Index, ErrorKind::Memory,
        ErrorKind::ZeroDivision, ErrorKind::Overflow, ErrorKind::Buffer, kLinAlgError})
    if (PyErr_GivenExceptionMatches(exception, class_of(kind))) return kind;
  return ErrorKind::Runtime;
}
/// "KeyError: 'name'"
std::string text_of_error(PyObject* exception) {
  std::string text = type_name(exception);
  const Object shown(PyObject_Str(exception));
  const char* utf8 = shown ? PyUnicode_AsUTF8(shown.get()) : nullptr;
  if (!utf8) PyErr_Clear();
  return utf8 && *utf8 ? text + ": " + utf8 : text;
}

}  // namespace

PyObject* call_error() noexcept {
  static PyObject* const made = runtime_error_too("taeda_tensor_core.errors.CallError", PyExc_TypeError);
  return made;
}

bool add_errors(PyObject* module) {
  if (!data_error() || PyModule_AddObjectRef(module, "_DataError", data_error()) < 0) return false;
  if (!call_error() || PyModule_AddObjectRef(module, "_CallError", call_error()) < 0) return false;
  for (const ErrorKind kind : {ErrorKind::Index, ErrorKind::Memory, ErrorKind::Overflow, ErrorKind::ZeroDivision}) {
    PyObject* const type = raised_as(kind);
    const std::string name = std::string("_") + PyExceptionClass_Name(class_of(kind));
    if (!type || PyModule_AddObjectRef(module, name.c_str(), type) < 0) return false;
  }
  return true;
}

CarriedError take_error() {
  PyObject* exception = fetch();
  if (!exception) {
    PyErr_SetString(PyExc_SystemError, "an error was announced but none is set");
    exception = fetch();
  }
  CarriedError carried;
  carried.exception = std::shared_ptr<PyObject>(exception, [](PyObject* o) {
    if (!Py_IsInitialized()) return;
    const Gil gil;
    Py_DECREF(o);
  });
  return carried;
}

std::exception_ptr carry_error(ErrorKind& kind, std::string& text) noexcept {
  try {
    throw;
  } catch (const PythonError& error) {
    const Gil gil;
    const auto* already = dynamic_cast<const CarriedError*>(&error);
    const CarriedError carried = already ? *already : take_error();
    kind = kind_of(carried.exception.get());
    text = text_of_error(carried.exception.get());
    return std::make_exception_ptr(carried);
  } catch (...) {
    return nullptr;
  }
}

PyObject* shown_text(std::string_view text) noexcept {
  return PyUnicode_DecodeUTF8(text.data(), Py_ssize_t(text.size()), "replace");
}

namespace {
void set_error(PyObject* type, const char* text) noexcept {
  if (PyErr_Occurred()) return;
  const Object shown(shown_text(text));
  if (shown) PyErr_SetObject(type, shown.get());
}

/// Whether a text begins with the operator's name, an overload of it ("max.dim: ") or what variants share ("conv2d: ").
bool speaks_of(std::string_view text, std::string_view called) noexcept {
  const std::string_view subject = text.substr(0, text.find(": "));
  const std::string_view name = subject.substr(0, subject.find('.'));
  return subject.size() < text.size() && !name.empty() && called.find(name) != called.npos;
}
}  // namespace

void set_python_error(const char* called) noexcept {
  try {
    throw;
  } catch (const CarriedError& e) {
    restore(e.exception.get());
  } catch (const PythonError&) {
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_SystemError, "an error was announced but none is set");
  } catch (const Error& e) {
    if (!called || speaks_of(e.what(), called) || PyErr_Occurred()) return set_error(raised_as(e.kind()), e.what());
    const Object shown(shown_text(e.what()));
    if (shown) PyErr_Format(raised_as(e.kind()), "%s: %U", called, shown.get());
  } catch (const std::bad_alloc&) {
    PyErr_Format(raised_as(ErrorKind::Memory), "%s%snot enough memory for the result", called ? called : "",
                 called ? ": " : "");
  } catch (const std::exception& e) {
    set_error(PyExc_RuntimeError, e.what());
  } catch (...) {
    PyErr_SetString(PyExc_RuntimeError, "unknown C++ exception");
  }
}

Object optional_attribute(PyObject* o, const char* name) {
  PyObject* found = PyObject_GetAttrString(o, name);
  if (!found) {
    ensure(PyErr_ExceptionMatches(PyExc_AttributeError));
    PyErr_Clear();
  }
  return Object(found);
}

std::string_view text_of(PyObject* o, const char* what) {
  if (!PyUnicode_Check(o)) fail(ErrorKind::Type, what, " must be a str, found ", type_name(o));
  Py_ssize_t size;
  const char* text = PyUnicode_AsUTF8AndSize(o, &size);
  ensure(text != nullptr);
  return {text, size_t(size)};
}

std::optional<Scalar> as_number(PyObject* o) {
  if (PyFloat_Check(o)) return Scalar(PyFloat_AS_DOUBLE(o));
  if (PyBool_Check(o)) return Scalar(o == Py_True);
  if (PyLong_Check(o)) {
    int overflow;
    const long long v = PyLong_AsLongLongAndOverflow(o, &overflow);
    if (!overflow) return Scalar(int64_t(v));
    if (overflow > 0) {
      const unsigned long long u = PyLong_AsUnsignedLongLong(o);
      if (!PyErr_Occurred()) return Scalar(uint64_t(u));
      PyErr_Clear();
    }
    fail(ErrorKind::Overflow, "the integer does not fit into 64 bits");
  }
  if (PyComplex_Check(o)) return Scalar(std::complex<double>(PyComplex_RealAsDouble(o), PyComplex_ImagAsDouble(o)));
  return foreign_number(o);
}

std::optional<Scalar> number_for(PyObject* o, const char* op, const char* argument) {
  if (PyLong_CheckExact(o)) [[likely]] {
    int overflow;
    const long long v = PyLong_AsLongLongAndOverflow(o, &overflow);
    if (!overflow) return Scalar(int64_t(v));
  }
  try {
    return as_number(o);
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::Overflow) throw;
    const std::string place = argument ? std::string("argument '") + argument + "': " : "";
    const Object shown(PyObject_Str(o));
    const char* text = shown ? PyUnicode_AsUTF8(shown.get()) : nullptr;
    if (!text) PyErr_Clear();
    fail(ErrorKind::Overflow, op, ": ", place,
         "the integer does not fit into 64 bits: ", std::string(text ? text : type_name(o)).substr(0, 60));
  }
}

void needs_autograd(const char* what) {
  fail(ErrorKind::Runtime, what,
       " needs automatic differentiation, which is not installed or not imported: pip install taeda-autograd");
}

void set_requires_grad(const Tensor& tensor, bool value) {
  if (!value && !tensor.requires_grad()) return;
  if (!autograd_api.set_requires_grad) needs_autograd("requires_grad=True");
  autograd_api.set_requires_grad(tensor, value);
}

}  // namespace taeda::py
