// _Operator: the base of `taeda.library`'s operators, which calls one by its schema.
#include <string_view>

#include "python/errors.h"
#include "python/library.h"
#include "python/override.h"

namespace taeda::py {
namespace {

struct PyOperator {
  PyObject_HEAD const OpEntry* entry;
};
PyTypeObject* OperatorType = nullptr;

Values bind(const OpEntry& op, const Schema& schema, PyObject* args, PyObject* kwargs) {
  const Py_ssize_t given = PyTuple_GET_SIZE(args);
  Py_ssize_t positional = 0, used = 0;
  Values out;
  out.reserve(schema.arguments.size());
  for (const SchemaArgument& a : schema.arguments) {
    PyObject* named = kwargs ? PyDict_GetItemString(kwargs, a.name.c_str()) : nullptr;
    PyObject* placed = !a.keyword_only && positional < given ? PyTuple_GET_ITEM(args, positional) : nullptr;
    positional += !a.keyword_only;
    used += named != nullptr;
    if (named && placed) fail(ErrorKind::Type, op.name, ": got several values for argument '", a.name, "'");
    if (PyObject* o = named ? named : placed) {
      // What a default says may also be said aloud.
      const bool none_as_default = o == Py_None && a.has_default && std::holds_alternative<std::monostate>(a.missing);
      out.push_back(none_as_default ? Value() : from_python(o, a, op.name));
    } else {
      if (!a.has_default && !a.optional)
        fail(ErrorKind::Type, op.name, ": missing argument '", a.name, "'; schema: ", schema.text);
      out.push_back(a.type == ArgumentType::Operand && a.has_default ? Value(Tensor(std::get<Scalar>(a.missing)))
                                                                     : a.missing);
    }
  }
  if (given > positional)
    fail(ErrorKind::Type, op.name, ": expected at most ", positional, " positional arguments, found ", given);
  if (kwargs && PyDict_Size(kwargs) > used) {
    PyObject *key, *value;
    for (Py_ssize_t at = 0; PyDict_Next(kwargs, &at, &key, &value);) {
      bool known = false;
      for (const SchemaArgument& a : schema.arguments)
        known = known || PyUnicode_CompareWithASCIIString(key, a.name.c_str()) == 0;
      if (!known)
        fail(ErrorKind::Type, op.name, ": unexpected keyword argument '", text_of(key, "keyword"),
             "'; schema: ", schema.text);
    }
  }
  return out;
}

/// `bind`, whose TypeErrors are RuntimeErrors too.
Values bound(const OpEntry& op, const Schema& schema, PyObject* args, PyObject* kwargs) {
  try {
    return bind(op, schema, args, kwargs);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::Type) throw;
    PyErr_SetString(call_error(), error.what());
    throw PythonError();
  }
}

PyObject* run(const OpEntry& op, PyObject* args, PyObject* kwargs) {
  const Schema& schema = schema_of(op);
  Values arguments = bound(op, schema, args, kwargs);
  if (op.form == Form::Function) {
    // Our own that write give back what they wrote to, others what their schema says.
    const bool writes = schema.results.empty() && !schema.arguments.empty() && schema.arguments.front().written &&
                        std::string_view(op.name).find("::") == std::string_view::npos;
    const Values first(arguments.begin(), arguments.begin() + writes);
    const Values results = call_operator(op, std::move(arguments));
    return results_to_python(writes ? first : results);
  }
  // Forms that write give back what they wrote to.
  const size_t outputs = op.form == Form::InPlace ? 1 : parse_schema(op.schema).results.size();
  const Values written(arguments.begin(), arguments.begin() + Py_ssize_t(outputs));
  call_operator(op, std::move(arguments));
  return results_to_python(written);
}

/// _call_operator(operator, args, kwargs): without asking who overrides it.
PyObject* call_operator_object(PyObject*, PyObject* const* args, Py_ssize_t count) {
  return guarded([&] {
    check(count == 3 && PyObject_TypeCheck(args[0], OperatorType) && PyTuple_Check(args[1]) && PyDict_Check(args[2]),
          ErrorKind::Type, "_call_operator: expected an operator, a tuple and a dict");
    return run(*reinterpret_cast<PyOperator*>(args[0])->entry, args[1], args[2]);
  });
}
PyObject* call(PyObject* self, PyObject* args, PyObject* kwargs) {
  return guarded([&] {
    if (Object answer = overridden(self, args, kwargs); answer.get()) return answer.release();
    if (kwargs && PyDict_GetItemString(kwargs, "out"))  // the form that writes is an operator of its own
      return PyObject_Call(own(PyObject_GetAttrString(self, "out")).get(), args, kwargs);
    return run(*reinterpret_cast<PyOperator*>(self)->entry, args, kwargs);
  });
}

/// The first argument is the operator's name; the others are the class's.
PyObject* construct(PyTypeObject* type, PyObject* args, PyObject*) {
  return guarded([&] {
    check(PyTuple_GET_SIZE(args) > 0, ErrorKind::Type, "Operator: missing argument 'name'");
    const std::string_view name = text_of(PyTuple_GET_ITEM(args, 0), "operator name");
    const OpEntry* entry = find_op(name);
    check(entry != nullptr, ErrorKind::Value, "library: there is no operator named '", name, "'");
    Object made = own(type->tp_alloc(type, 0));
    reinterpret_cast<PyOperator*>(made.get())->entry = entry;
    return made.release();
  });
}
void dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

/// The number that a tensor was made of for a call; any other tensor is given back.
PyObject* wrapped_number(PyObject*, PyObject* tensor) {
  return guarded([&]() -> PyObject* {
    if (!is_tensor(tensor) || !tensor_of(tensor).is_wrapped_number()) return Py_NewRef(tensor);
    return number_of(scalar_of(tensor_of(tensor), "item"));
  });
}

PyType_Slot slots[] = {{Py_tp_new, reinterpret_cast<void*>(construct)},
                       {Py_tp_call, reinterpret_cast<void*>(call)},
                       {Py_tp_dealloc, reinterpret_cast<void*>(dealloc)},
                       {0, nullptr}};
PyType_Spec spec{"taeda_tensor_core._C._Operator", sizeof(PyOperator), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
                 slots};

}  // namespace

PyMethodDef operator_functions[] = {
    {"_call_operator", reinterpret_cast<PyCFunction>(call_operator_object), METH_FASTCALL, nullptr},
    {"_wrapped_number", wrapped_number, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr}};

bool init_operator(PyObject* module) {
  OperatorType = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  return OperatorType && PyModule_AddObjectRef(module, "_Operator", reinterpret_cast<PyObject*>(OperatorType)) == 0;
}

}  // namespace taeda::py
