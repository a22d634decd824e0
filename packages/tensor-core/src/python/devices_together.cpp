// Groups of devices and graphs of calls for Python: handles in capsules, which backends/_groups.py and _graphs.py
// dress.
#include "python/library.h"
#include "taeda/collectives.h"
#include "taeda/graphs.h"

namespace taeda::py {
namespace {

constexpr const char* kGroup = "taeda.group";
constexpr const char* kWork = "taeda.work";
constexpr const char* kExecutable = "taeda.executable";

template <class T>
PyObject* capsule(T held, const char* name) {
  auto* kept = new T(std::move(held));
  PyObject* made = PyCapsule_New(
      kept, name, [](PyObject* self) { delete static_cast<T*>(PyCapsule_GetPointer(self, PyCapsule_GetName(self))); });
  if (!made) delete kept;
  return own(made).release();
}
template <class T>
T& held(PyObject* o, const char* name) {
  void* found = PyCapsule_GetPointer(o, name);
  ensure(found != nullptr);
  return *static_cast<T*>(found);
}
using Group = std::shared_ptr<DeviceGroup>;
using Work = DeviceGroup::Work;
using Runs = std::unique_ptr<Executable>;

const Tensor& tensor_argument(PyObject* o, const char* what) {
  if (!is_tensor(o)) fail(ErrorKind::Type, what, ": expected a Tensor, found ", type_name(o));
  return tensor_of(o);
}

/// (device, name, rank, count)
PyObject* group_join(PyObject*, PyObject* args) {
  PyObject* place;
  const char* name;
  int rank, count;
  if (!PyArg_ParseTuple(args, "Osii", &place, &name, &rank, &count)) return nullptr;
  return guarded([&] {
    const std::optional<Device> device = as_device(place);
    check(device.has_value(), ErrorKind::Type, "Group: argument 'device' must be a device or its name, found ",
          type_name(place));
    return capsule(join_group(*device, name, rank, count), kGroup);
  });
}
/// (group, what, tensor, second tensor or None, number)
PyObject* group_begin(PyObject*, PyObject* args) {
  PyObject *group, *first, *second;
  const char* text;
  int number;
  if (!PyArg_ParseTuple(args, "OsOOi", &group, &text, &first, &second, &number)) return nullptr;
  return guarded([&] {
    DeviceGroup& members = *held<Group>(group, kGroup);
    const std::string_view what = text;
    const Tensor& t = tensor_argument(first, text);
    const auto other = [&]() -> const Tensor& { return tensor_argument(second, text); };
    const auto begun = [&]() -> Work {
      if (what == "all_reduce") return members.all_reduce(t, other(), Reduction(number));
      if (what == "reduce_scatter") return members.reduce_scatter(t, other(), Reduction(number));
      if (what == "all_gather") return members.all_gather(t, other());
      if (what == "broadcast") return members.broadcast(t, number);
      if (what == "send") return members.send(t, number);
      return members.recv(t, number);
    };
    return capsule(begun(), kWork);
  });
}
PyObject* work_wait(PyObject*, PyObject* work) {
  return guarded([&] {
    held<Work>(work, kWork)->wait();
    return Py_NewRef(Py_None);
  });
}
PyObject* work_done(PyObject*, PyObject* work) {
  return guarded([&] { return PyBool_FromLong(held<Work>(work, kWork)->done()); });
}

std::vector<Tensor> tensors_of(PyObject* list, const char* what) {
  const Object fast = own(PySequence_Fast(list, what));
  std::vector<Tensor> out;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(fast.get()); ++i) {
    PyObject* item = PySequence_Fast_GET_ITEM(fast.get(), i);
    out.push_back(item == Py_None ? Tensor() : tensor_argument(item, what));
  }
  return out;
}
GraphCall call_of(PyObject* item) {
  const char* name;
  PyObject *arguments, *results;
  ensure(PyArg_ParseTuple(item, "sO!O", &name, &PyTuple_Type, &arguments, &results));
  const OpEntry* op = find_op(name);
  check(op != nullptr, ErrorKind::Value, "graph: there is no operator named '", name, "'");
  const Schema& schema = schema_of(*op);
  check(size_t(PyTuple_GET_SIZE(arguments)) == schema.arguments.size(), ErrorKind::Type, name, ": expected ",
        schema.arguments.size(), " arguments");
  GraphCall call{op, {}, tensors_of(results, "graph: results")};
  for (size_t i = 0; i < schema.arguments.size(); ++i)
    call.arguments.push_back(from_python(PyTuple_GET_ITEM(arguments, Py_ssize_t(i)), schema.arguments[i], name));
  return call;
}
/// (device, [(operator, arguments, results)], inputs, outputs); where the backend declines what it says of that.
PyObject* graph_compile(PyObject*, PyObject* args) {
  PyObject *place, *calls, *inputs, *outputs;
  if (!PyArg_ParseTuple(args, "OO!OO", &place, &PyList_Type, &calls, &inputs, &outputs)) return nullptr;
  return guarded([&]() -> PyObject* {
    const std::optional<Device> device = as_device(place);
    check(device.has_value(), ErrorKind::Type, "graph: argument 'device' must be a device or its name, found ",
          type_name(place));
    Graph graph{{}, tensors_of(inputs, "graph: inputs"), tensors_of(outputs, "graph: outputs")};
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(calls); ++i) graph.calls.push_back(call_of(PyList_GET_ITEM(calls, i)));
    std::string why;
    Runs made = compile_graph(*device, graph, why);
    if (!made) return PyUnicode_FromStringAndSize(why.data(), Py_ssize_t(why.size()));
    return capsule(std::move(made), kExecutable);
  });
}
PyObject* graph_run(PyObject*, PyObject* args) {
  PyObject *executable, *inputs;
  if (!PyArg_ParseTuple(args, "OO", &executable, &inputs)) return nullptr;
  return guarded([&] {
    const std::vector<Tensor> found = held<Runs>(executable, kExecutable)->run(tensors_of(inputs, "graph: inputs"));
    Object out = own(PyTuple_New(Py_ssize_t(found.size())));
    for (size_t i = 0; i < found.size(); ++i) PyTuple_SET_ITEM(out.get(), Py_ssize_t(i), own(wrap(found[i])).release());
    return out.release();
  });
}

}  // namespace

PyMethodDef devices_together_functions[] = {{"_group_join", group_join, METH_VARARGS, nullptr},
                                            {"_group_begin", group_begin, METH_VARARGS, nullptr},
                                            {"_work_wait", work_wait, METH_O, nullptr},
                                            {"_work_done", work_done, METH_O, nullptr},
                                            {"_graph_compile", graph_compile, METH_VARARGS, nullptr},
                                            {"_graph_run", graph_run, METH_VARARGS, nullptr},
                                            {nullptr, nullptr, 0, nullptr}};

}  // namespace taeda::py
