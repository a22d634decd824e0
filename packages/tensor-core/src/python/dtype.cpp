// dtype objects: one per element type, and what is understood as one.
#include <array>
#include <string>

#include "python/internal.h"
#include "taeda/custom_dtype.h"

namespace taeda::py {

PyTypeObject* DTypeType = nullptr;

namespace {

bool called_torch = false;

std::array<PyObject*, kDTypeCount> objects;

DType value_of(PyObject* self) { return reinterpret_cast<PyDType*>(self)->value; }

PyObject* repr(PyObject* self) { return PyUnicode_FromFormat("%s.%s", public_name(), name(value_of(self)).data()); }
// A name is how pickle finds a singleton again.
PyObject* reduce(PyObject* self, PyObject*) { return PyUnicode_FromString(name(value_of(self)).data()); }
PyObject* same(PyObject* self, PyObject*) { return Py_NewRef(self); }

PyObject* is_floating_point(PyObject* self, void*) { return PyBool_FromLong(is_floating(value_of(self))); }
PyObject* is_complex_dtype(PyObject* self, void*) { return PyBool_FromLong(is_complex(value_of(self))); }
PyObject* is_signed_dtype(PyObject* self, void*) { return PyBool_FromLong(is_signed(value_of(self))); }
PyObject* itemsize(PyObject* self, void*) { return PyLong_FromLong(long(item_size(value_of(self)))); }
PyObject* to_real(PyObject* self, PyObject*) { return wrap(real_of(value_of(self))); }
PyObject* to_complex(PyObject* self, PyObject*) {
  return guarded([&] {
    const DType dtype = value_of(self);
    check((is_floating(dtype) && !is_float8(dtype)) || is_complex(dtype), ErrorKind::Runtime,
          "to_complex: there is no complex dtype for ", name(dtype));
    return wrap(complex_of(dtype));
  });
}
PyObject* get_name(PyObject* self, void*) { return PyUnicode_FromString(name(value_of(self)).data()); }

PyObject* abbreviation(PyObject* self, void*) {
  static constexpr std::pair<std::string_view, const char*> kKinds[] = {
      {"bool", "b8"}, {"bfloat", "bf"}, {"float", "f"}, {"complex", "c"}, {"uint", "u"}, {"int", "i"}};
  return guarded([&] {
    std::string text(name(value_of(self)));
    for (const auto& [whole, part] : kKinds) {
      if (!text.starts_with(whole)) continue;
      text.replace(0, whole.size(), part);
      std::erase(text, '_');
      break;
    }
    return PyUnicode_FromString(text.c_str());
  });
}

PyMethodDef methods[] = {
    {"__reduce__", reduce, METH_NOARGS, nullptr},
    {"__copy__", same, METH_NOARGS, nullptr},
    {"__deepcopy__", same, METH_O, nullptr},
    {"to_real", to_real, METH_NOARGS, "The real dtype of the same precision."},
    {"to_complex", to_complex, METH_NOARGS, "The complex dtype of the same precision. RuntimeError: there is none."},
    {nullptr, nullptr, 0, nullptr}};
PyGetSetDef attributes[] = {
    {"is_floating_point", is_floating_point, nullptr, "Whether elements are real floating-point numbers.", nullptr},
    {"is_complex", is_complex_dtype, nullptr, "Whether elements are complex numbers.", nullptr},
    {"is_signed", is_signed_dtype, nullptr, "Whether elements can be negative.", nullptr},
    {"itemsize", itemsize, nullptr, "Bytes per element.", nullptr},
    {"abbr", abbreviation, nullptr, "Short name, such as 'f32'.", nullptr},
    {"name", get_name, nullptr, "Name without the package, such as 'float32'.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyType_Slot slots[] = {{Py_tp_repr, reinterpret_cast<void*>(repr)},
                       {Py_tp_methods, methods},
                       {Py_tp_getset, attributes},
                       {Py_tp_doc, const_cast<char*>("Element type of a tensor.")},
                       {0, nullptr}};
PyType_Spec spec{"taeda_tensor_core.dtype", sizeof(PyDType), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                 slots};

constexpr std::pair<const char*, DType> kAliases[] = {
    {"half", DType::Float16}, {"float", DType::Float32}, {"double", DType::Float64},   {"short", DType::Int16},
    {"int", DType::Int32},    {"long", DType::Int64},    {"cfloat", DType::Complex64}, {"cdouble", DType::Complex128}};

}  // namespace

namespace {
bool make(DType dtype) {
  PyDType* object = PyObject_New(PyDType, DTypeType);
  if (!object) return false;
  object->value = dtype;
  objects[size_t(dtype)] = reinterpret_cast<PyObject*>(object);
  return true;
}
}  // namespace

PyObject* wrap(DType dtype) {
  if (!objects[size_t(dtype)] && !make(dtype)) return nullptr;  // the first time of one that a plug-in has defined
  return Py_NewRef(objects[size_t(dtype)]);
}

namespace {
PyObject* define_dtype(PyObject*, PyObject* args) {
  const char *name, *who;
  int bits;
  PyObject* numbers;
  if (!PyArg_ParseTuple(args, "siO!s", &name, &bits, &PyTuple_Type, &numbers, &who)) return nullptr;
  return guarded([&] {
    std::vector<float> table;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(numbers); ++i)
      table.push_back(float(PyFloat_AsDouble(PyTuple_GET_ITEM(numbers, i))));
    ensure(!PyErr_Occurred());
    return wrap(taeda::define_dtype(format_of_table(name, bits, std::move(table), who)));
  });
}
PyObject* withdraw_dtype(PyObject*, PyObject* dtype) {
  return guarded([&] {
    check(is_dtype(dtype) && is_custom(value_of(dtype)), ErrorKind::Type, "expected a dtype that a plug-in defined");
    taeda::withdraw_dtype(value_of(dtype));
    return Py_NewRef(Py_None);
  });
}
PyObject* find_dtype(PyObject*, PyObject* name) {
  return guarded([&] {
    DType found;
    return taeda::find_dtype(text_of(name, "dtype"), found) ? wrap(found) : Py_NewRef(Py_None);
  });
}
PyObject* dtype_bits(PyObject*, PyObject* dtype) {
  return guarded([&] {
    check(is_dtype(dtype), ErrorKind::Type, "expected a dtype, found ", type_name(dtype));
    const DType d = value_of(dtype);
    return PyLong_FromLong(is_custom(d) ? custom_dtype(d).bits : long(item_size(d)) * 8);
  });
}
}  // namespace

PyMethodDef dtype_functions[] = {{"_define_dtype", define_dtype, METH_VARARGS, nullptr},
                                 {"_withdraw_dtype", withdraw_dtype, METH_O, nullptr},
                                 {"_find_dtype", find_dtype, METH_O, nullptr},
                                 {"_dtype_bits", dtype_bits, METH_O, nullptr},
                                 {nullptr, nullptr, 0, nullptr}};

std::optional<DType> as_dtype(PyObject* o) {
  if (is_dtype(o)) return value_of(o);
  if (o == reinterpret_cast<PyObject*>(&PyFloat_Type)) return DType::Float64;
  if (o == reinterpret_cast<PyObject*>(&PyLong_Type)) return DType::Int64;
  if (o == reinterpret_cast<PyObject*>(&PyBool_Type)) return DType::Bool;
  if (o == reinterpret_cast<PyObject*>(&PyComplex_Type)) return DType::Complex128;
  if (Object text = optional_attribute(o, "str"); text && PyUnicode_Check(text.get()))
    return dtype_from_typestr(text_of(text.get(), "dtype"));
  return std::nullopt;
}

bool init_dtype(PyObject* module) {
  DTypeType = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  if (!DTypeType || PyModule_AddObjectRef(module, "dtype", reinterpret_cast<PyObject*>(DTypeType)) < 0) return false;
  for (int i = 0; i < kBuiltInDTypes; ++i) {
    if (!make(DType(i))) return false;
    if (PyModule_AddObjectRef(module, name(DType(i)).data(), objects[size_t(i)]) < 0) return false;
  }
  for (const auto& [alias, dtype] : kAliases)
    if (PyModule_AddObjectRef(module, alias, objects[size_t(dtype)]) < 0) return false;
  return true;
}

const char* public_name() { return called_torch ? "torch" : "taeda"; }
const char* size_name() { return called_torch ? "torch.Size" : "Size"; }

PyObject* set_public_name(PyObject*, PyObject* name) {
  const char* text = PyUnicode_AsUTF8(name);
  if (!text) return nullptr;
  return guarded([&] {
    called_torch = std::string_view(text) == "torch";
    tell_homes_of_results();
    return Py_NewRef(Py_None);
  });
}

}  // namespace taeda::py
