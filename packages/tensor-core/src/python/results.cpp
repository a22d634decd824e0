// Results of several tensors: tuples, and tuples whose parts have names.
#include "python/args.h"

#include <structseq.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "python/internal.h"

namespace taeda::py {

PyObject* wrap(std::vector<Tensor> tensors) {
  PyObject* out = PyTuple_New(Py_ssize_t(tensors.size()));
  if (!out) return nullptr;
  for (size_t i = 0; i < tensors.size(); ++i) PyTuple_SET_ITEM(out, Py_ssize_t(i), wrap(std::move(tensors[i])));
  return out;
}

namespace {

/// The classes that were made: they say the library's public name.
std::vector<PyTypeObject*>& result_types() {
  static auto* const types = new std::vector<PyTypeObject*>();  // never destroyed, as the classes are not
  return *types;
}

/// The module in which programs find the class.
Object home_of_results() { return own(PyUnicode_FromFormat("%s.return_types", public_name())); }

void tell_home(PyTypeObject* type) {
  if (PyObject_SetAttrString(reinterpret_cast<PyObject*>(type), "__module__", home_of_results().get()) < 0)
    throw PythonError();
}

/// The class's name and, a line each, the parts with theirs.
PyObject* shown_results(PyObject* results) noexcept {
  return guarded([&] {
    const auto type = reinterpret_cast<PyObject*>(Py_TYPE(results));
    const Object names = own(PySequence_Tuple(own(PyObject_GetAttrString(type, "__match_args__")).get()));
    const char* const name = std::strrchr(Py_TYPE(results)->tp_name, '.') + 1;
    Object shown = own(PyUnicode_FromFormat("%U.%s(", home_of_results().get(), name));
    // A program may have written other names there.
    for (Py_ssize_t i = 0; i < std::min(PyTuple_GET_SIZE(names.get()), PyTuple_GET_SIZE(results)); ++i)
      shown = own(PyUnicode_FromFormat("%U%s\n%S=%R", shown.get(), i ? "," : "", PyTuple_GET_ITEM(names.get(), i),
                                       PyTuple_GET_ITEM(results, i)));
    return PyUnicode_FromFormat("%U)", shown.get());
  });
}

}  // namespace

PyTypeObject* result_type(const char* name, const char* const* fields, int count) {
  auto* described = new PyStructSequence_Field[size_t(count) + 1];  // lives as long as the type, that is forever
  for (int i = 0; i < count; ++i) described[i] = {fields[i], nullptr};
  described[count] = {nullptr, nullptr};
  auto* full_name = new std::string(std::string("taeda.return_types.") + name);
  PyStructSequence_Desc desc{full_name->c_str(), nullptr, described, count};
  PyTypeObject* type = PyStructSequence_NewType(&desc);
  if (!type) throw PythonError();
  type->tp_repr = shown_results;
  tell_home(type);
  result_types().push_back(type);
  return type;
}

void tell_homes_of_results() {
  for (PyTypeObject* type : result_types()) tell_home(type);
}

PyObject* pack_results(PyTypeObject* type, PyObject** items, int count) {
  PyObject* out = PyStructSequence_New(type);
  for (int i = 0; i < count; ++i) {
    if (out) PyStructSequence_SetItem(out, i, items[i]);
    else Py_XDECREF(items[i]);
  }
  return out;
}

}  // namespace taeda::py
