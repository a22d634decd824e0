// Results of several tensors: tuples, and tuples whose parts have names.
#include "python/args.h"

#include <structseq.h>

#include <string>
#include <utility>

#include "python/internal.h"

namespace taeda::py {

PyObject* wrap(std::vector<Tensor> tensors) {
  PyObject* out = PyTuple_New(Py_ssize_t(tensors.size()));
  if (!out) return nullptr;
  for (size_t i = 0; i < tensors.size(); ++i) PyTuple_SET_ITEM(out, Py_ssize_t(i), wrap(std::move(tensors[i])));
  return out;
}

namespace {

/// The class's name and, a line each, the parts with theirs.
PyObject* shown_results(PyObject* results) noexcept {
  const Object names = own(PyObject_GetAttrString(reinterpret_cast<PyObject*>(Py_TYPE(results)), "__match_args__"));
  if (!names) return nullptr;
  std::string text = std::string(Py_TYPE(results)->tp_name) + "(";
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names.get()); ++i) {
    const Object part = own(PyObject_Repr(PyTuple_GET_ITEM(results, i)));
    const char* const shown = part ? PyUnicode_AsUTF8(part.get()) : nullptr;
    if (!shown) return nullptr;
    text += i ? ",\n" : "\n";
    text += std::string(PyUnicode_AsUTF8(PyTuple_GET_ITEM(names.get(), i))) + "=" + shown;
  }
  return PyUnicode_FromString((text + ")").c_str());
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
  return type;
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
