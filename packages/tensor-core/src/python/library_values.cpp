// Conversions between boxed values and Python objects.
#include <string_view>

#include "python/args.h"
#include "python/library.h"

namespace taeda::py {
namespace {

template <class List, class Make>
PyObject* to_list(const List& items, const Make& make) {
  Object out = own(PyList_New(0));
  for (const auto& item : items) ensure(PyList_Append(out.get(), own(make(item)).get()) == 0);
  return out.release();
}

struct ToPython {
  PyObject* operator()(std::monostate) const { Py_RETURN_NONE; }
  PyObject* operator()(const Tensor& v) const { return wrap(v); }
  PyObject* operator()(const Scalar& v) const { return number_of(v); }
  PyObject* operator()(int64_t v) const { return PyLong_FromLongLong(v); }
  PyObject* operator()(bool v) const { return PyBool_FromLong(v); }
  PyObject* operator()(double v) const { return PyFloat_FromDouble(v); }
  PyObject* operator()(const std::string& v) const {
    return PyUnicode_FromStringAndSize(v.data(), Py_ssize_t(v.size()));
  }
  PyObject* operator()(DType v) const { return wrap(v); }
  PyObject* operator()(Device v) const { return wrap(v); }
  PyObject* operator()(const Shape& v) const {
    return to_list(v, [](int64_t i) { return PyLong_FromLongLong(i); });
  }
  PyObject* operator()(const std::vector<Tensor>& v) const {
    return to_list(v, [](const Tensor& t) { return wrap(t); });
  }
  PyObject* operator()(const std::vector<std::optional<Tensor>>& v) const {
    return to_list(v, [](const std::optional<Tensor>& t) { return wrap(t.value_or(Tensor())); });
  }
  PyObject* operator()(const std::vector<double>& v) const {
    return to_list(v, [](double d) { return PyFloat_FromDouble(d); });
  }
  PyObject* operator()(const Generator& v) const {
    if (!v) Py_RETURN_NONE;
    return wrap(v);
  }
};

const char* expected(const SchemaArgument& argument) {
  switch (argument.type) {
    case ArgumentType::Tensor: return argument.list ? "a sequence of Tensors" : "a Tensor";
    case ArgumentType::Operand: return "a Tensor or a number";
    case ArgumentType::Scalar: return "a number";
    case ArgumentType::Int: return argument.list ? "a sequence of ints" : "an int";
    case ArgumentType::Float: return argument.list ? "a sequence of floats" : "a float";
    case ArgumentType::Bool: return argument.list ? "a sequence of bools" : "a bool";
    case ArgumentType::Str: return "a str";
    case ArgumentType::DType: return "a dtype";
    case ArgumentType::Device: return "a device or its name";
    case ArgumentType::Generator: return "a Generator";
  }
  return "something else";
}

/// What is no argument has a name in parentheses: "(result 'up' of the layer mine)".
std::string shown_name(const SchemaArgument& argument) {
  const std::string& name = argument.name;
  return name.starts_with('(') ? name.substr(1, name.size() - 2) : "argument '" + name + "'";
}
[[noreturn]] void wrong(PyObject* o, const SchemaArgument& argument, const char* op) {
  fail(ErrorKind::Type, op, ": ", shown_name(argument), " must be ", expected(argument),
       argument.optional ? " or None" : "", ", found ", type_name(o));
}

std::vector<Object> items_of(PyObject* o, const SchemaArgument& argument, const char* op) {
  if (!PySequence_Check(o) || PyUnicode_Check(o) || is_tensor(o)) wrong(o, argument, op);
  std::vector<Object> out;
  const Py_ssize_t n = PySequence_Size(o);
  ensure(n >= 0);
  for (Py_ssize_t i = 0; i < n; ++i) out.push_back(own(PySequence_GetItem(o, i)));
  return out;
}

/// Operators of libraries have one form each, so no other form is hidden by what else may stand for a number: a tensor
/// of one element, and whatever is true or false.
bool of_library(const char* op) { return std::string_view(op).find("::") != std::string_view::npos; }
Scalar element_of(PyObject* o, const SchemaArgument& argument, const char* op) {
  if (!of_library(op) || tensor_of(o).numel() != 1 || is_complex(tensor_of(o).dtype())) wrong(o, argument, op);
  return scalar_of(tensor_of(o), op);
}

int64_t whole(PyObject* o, const SchemaArgument& argument, const char* op) {
  if (is_tensor(o) && !is_integer(o)) return element_of(o, argument, op).to<int64_t>();
  if (is_bool(o) && of_library(op)) return is_true(o);
  if (!PyIndex_Check(o) || PyBool_Check(o)) wrong(o, argument, op);
  const Py_ssize_t v = PyNumber_AsSsize_t(o, PyExc_OverflowError);
  ensure(v != -1 || !PyErr_Occurred());
  return v;
}
double real(PyObject* o, const SchemaArgument& argument, const char* op) {
  const std::optional<Scalar> number = is_tensor(o) ? element_of(o, argument, op) : as_number(o);
  if (!number || number->is_complex()) wrong(o, argument, op);
  return number->to_double();
}
bool truth(PyObject* o, const SchemaArgument& argument, const char* op) {
  if (PyBool_Check(o)) return o == Py_True;
  const PyNumberMethods* numeric = Py_TYPE(o)->tp_as_number;
  if (!of_library(op) || !numeric || !numeric->nb_bool) wrong(o, argument, op);
  const int found = PyObject_IsTrue(o);
  ensure(found >= 0);
  return found;
}

Value list_from(PyObject* o, const SchemaArgument& argument, const char* op) {
  if (argument.type == ArgumentType::Int) {
    if (is_integer(o)) return Shape{whole(o, argument, op)};
    Shape out;
    for (const Object& item : items_of(o, argument, op)) out.push_back(whole(item.get(), argument, op));
    return out;
  }
  if (argument.type == ArgumentType::Bool) {  // kept as ints, which are as true and as false
    Shape out;
    for (const Object& item : items_of(o, argument, op)) out.push_back(truth(item.get(), argument, op));
    return out;
  }
  if (argument.type == ArgumentType::Float) {
    std::vector<double> out;
    for (const Object& item : items_of(o, argument, op)) out.push_back(real(item.get(), argument, op));
    return out;
  }
  if (argument.optional_items) {
    std::vector<std::optional<Tensor>> out;
    for (const Object& item : items_of(o, argument, op)) {
      if (item.get() != Py_None && !is_tensor(item.get())) wrong(item.get(), argument, op);
      out.push_back(item.get() == Py_None ? std::nullopt : std::optional<Tensor>(tensor_of(item.get())));
    }
    return out;
  }
  std::vector<Tensor> out;
  for (const Object& item : items_of(o, argument, op)) {
    if (!is_tensor(item.get())) wrong(item.get(), argument, op);
    out.push_back(tensor_of(item.get()));
  }
  return out;
}

Value tensor_from(PyObject* o, const SchemaArgument& argument, const char* op) {
  if (is_tensor(o)) return tensor_of(o);
  if (argument.type != ArgumentType::Operand) wrong(o, argument, op);
  const std::optional<Scalar> number = as_number(o);
  if (!number) wrong(o, argument, op);
  return Tensor(*number);
}

}  // namespace

PyObject* to_python(const Value& value) { return std::visit(ToPython(), value); }

Object to_tuple(const Values& values, size_t from) {
  Object out = own(PyTuple_New(Py_ssize_t(values.size() - from)));
  for (size_t i = from; i < values.size(); ++i)
    PyTuple_SET_ITEM(out.get(), Py_ssize_t(i - from), own(to_python(values[i])).release());
  return out;
}

Value from_python(PyObject* o, const SchemaArgument& argument, const char* op) {
  if (o == Py_None) {
    if (!argument.optional && argument.type != ArgumentType::Generator) wrong(o, argument, op);
    return Value();
  }
  if (argument.list) return list_from(o, argument, op);
  switch (argument.type) {
    case ArgumentType::Tensor:
    case ArgumentType::Operand: return tensor_from(o, argument, op);
    case ArgumentType::Scalar: {
      if (is_tensor(o)) return scalar_of(tensor_of(o), op);
      const std::optional<Scalar> number = as_number(o);
      if (!number) wrong(o, argument, op);
      return *number;
    }
    case ArgumentType::Int: return whole(o, argument, op);
    case ArgumentType::Float: return real(o, argument, op);
    case ArgumentType::Bool: return truth(o, argument, op);
    case ArgumentType::Str:
      if (!PyUnicode_Check(o)) wrong(o, argument, op);
      return std::string(text_of(o, argument.name.c_str()));
    case ArgumentType::DType:
      if (const std::optional<DType> found = as_dtype(o)) return *found;
      wrong(o, argument, op);
    case ArgumentType::Device:
      if (const std::optional<Device> found = as_device(o)) return *found;
      wrong(o, argument, op);
    case ArgumentType::Generator:
      if (!is_generator(o)) wrong(o, argument, op);
      return reinterpret_cast<PyGenerator*>(o)->value;
  }
  wrong(o, argument, op);
}

Values results_from_python(PyObject* o, const Schema& schema, std::string_view who, int64_t mask) {
  const std::vector<SchemaResult>& results = schema.results;
  const char* op = schema.name.c_str();
  Values out;
  const auto one = [&](PyObject* item, size_t i) {
    const SchemaResult& r = results[i];
    const SchemaArgument as{.name = "(result '" + r.name + "' of " + std::string(who) + ")",
                            .type = r.type,
                            .list = r.list,
                            .optional = may_be_absent(schema, i, mask),
                            .missing = {}};
    out.push_back(from_python(item, as, op));
  };
  if (results.size() == 1) {
    one(o, 0);
  } else if (!results.empty()) {
    const bool tuple = PyTuple_Check(o);
    if (!tuple || PyTuple_GET_SIZE(o) != Py_ssize_t(results.size()))
      fail(ErrorKind::Type, op, ": expected a tuple of ", results.size(), " results from ", who, ", found ",
           tuple ? "one of " + std::to_string(PyTuple_GET_SIZE(o)) : std::string(type_name(o)));
    for (size_t i = 0; i < results.size(); ++i) one(PyTuple_GET_ITEM(o, Py_ssize_t(i)), i);
  }
  return out;
}

PyObject* results_to_python(const Values& results) {
  if (results.empty()) Py_RETURN_NONE;
  if (results.size() == 1) return to_python(results[0]);
  return to_tuple(results).release();
}

Callback::Callback(PyObject* callable)
    : callable_(Py_NewRef(callable), [](PyObject* o) {
        if (!Py_IsInitialized()) return;
        const Gil gil;
        Py_DECREF(o);
      }) {}

Object Callback::operator()(const Object& arguments) const {
  PyObject* found = called_out([&] { return PyObject_CallObject(callable_.get(), arguments.get()); });
  // The caller may give the lock up, and with it the interpreter's memory of the error, before anybody catches it.
  if (!found) throw take_error();
  return Object(found);
}

}  // namespace taeda::py
