// What taeda.library stands on: operators, kernels, layers and devices whose functions are Python callables.
#include "python/library.h"

#include <algorithm>
#include <map>

#include "core/composite_kernels.h"
#include "core/contract.h"
#include "core/decompose.h"
#include "python/numpy_bridge.h"
#include "taeda/backend.h"
#include "taeda/decompose.h"

namespace taeda::py {
namespace {

OpEntry& entry_of(PyObject* name) {
  const std::string_view text = text_of(name, "operator name");
  OpEntry* found = find_op(text);
  if (!found) fail(ErrorKind::Value, "library: there is no operator named '", text, "'");
  return *found;
}
RuntimeOp& runtime_of(PyObject* name) {
  RuntimeOp* found = as_runtime(&entry_of(name));
  if (!found) fail(ErrorKind::Value, "library: operator '", text_of(name, "operator name"), "' is built in");
  return *found;
}
BackendId backend_of(PyObject* device) {
  const std::optional<Device> found = as_device(device);
  if (!found)
    fail(ErrorKind::Type, "library: argument 'device' must be a device or its name, found ", type_name(device));
  return found->backend;
}
Layer layer_of(PyObject* position) {
  const long at = PyLong_AsLong(position);
  ensure(at != -1 || !PyErr_Occurred());
  check(at >= int(Layer::BelowAutograd) && at < kMaxLayers, ErrorKind::Value,
        "library: argument 'position' must be from 0 to ", kMaxLayers - 1, ", found ", at);
  return Layer(at);
}

Spec spec_from(PyObject* o, const char* op) {
  if (is_tensor(o)) {
    const Tensor& like = tensor_of(o);
    Spec out = spec(like.sizes(), like.dtype());
    if (like.dense() && !like.contiguous()) out.strides = Shape(like.strides());
    return out;
  }
  const bool pair = PyTuple_Check(o) && PyTuple_GET_SIZE(o) == 2;
  const std::optional<DType> dtype = pair ? as_dtype(PyTuple_GET_ITEM(o, 1)) : std::nullopt;
  if (!dtype)
    fail(ErrorKind::Type, op, ": inference must give (shape, dtype) or a Tensor for each result, found ", type_name(o));
  const SchemaArgument shape{.name = "shape", .type = ArgumentType::Int, .list = true, .missing = {}};
  const Value sizes = from_python(PyTuple_GET_ITEM(o, 0), shape, op);
  for (int64_t size : std::get<Shape>(sizes))
    check(size >= 0, ErrorKind::Value, op, ": inference gave a negative size ", size);
  return spec(std::get<Shape>(sizes), *dtype);
}

Object pack(std::initializer_list<PyObject*> owned) {
  Object out = own(PyTuple_New(Py_ssize_t(owned.size())));
  Py_ssize_t i = 0;
  for (PyObject* o : owned) PyTuple_SET_ITEM(out.get(), i++, o);
  return out;
}

auto infer_with(Callback callback, size_t count, std::string op) {
  return [callback, count, op](const Values& arguments) {
    const Gil gil;
    const Object found = callback(to_tuple(arguments));
    std::vector<Spec> out;
    if (count == 1) {
      out.push_back(spec_from(found.get(), op.c_str()));
    } else {
      if (!PySequence_Check(found.get()) || PySequence_Size(found.get()) != Py_ssize_t(count))
        fail(ErrorKind::Type, op, ": inference must give ", count, " results, found ", type_name(found.get()));
      for (size_t i = 0; i < count; ++i)
        out.push_back(spec_from(own(PySequence_GetItem(found.get(), Py_ssize_t(i))).get(), op.c_str()));
    }
    return out;
  };
}

auto composite_with(Callback callback, const Schema& schema, const std::string& owner) {
  return [callback, schema, who = "the composite form of " + owner](const Values& arguments) {
    const Gil gil;
    return results_from_python(callback(to_tuple(arguments)).get(), schema, who);
  };
}

auto derivative_with(Callback callback, size_t count, std::string op) {
  return [callback, count, op](const Values& arguments, const Values& results, const Values& gradients) {
    const Gil gil;
    const Object found =
        callback(pack({to_tuple(gradients).release(), to_tuple(arguments).release(), to_tuple(results).release()}));
    if (!PyTuple_Check(found.get()) || PyTuple_GET_SIZE(found.get()) != Py_ssize_t(count))
      fail(ErrorKind::Type, op, ": the derivative must give a tuple of ", count,
           " gradients, one for each argument, found ", type_name(found.get()));
    Values out;
    for (size_t i = 0; i < count; ++i) {
      PyObject* item = PyTuple_GET_ITEM(found.get(), Py_ssize_t(i));
      const SchemaArgument as{.name = "(gradient " + std::to_string(i) + ")",
                              .list = bool(PyList_Check(item)),
                              .optional_items = true,
                              .optional = true,
                              .missing = {}};
      out.push_back(from_python(item, as, op.c_str()));
    }
    return out;
  };
}

auto batching_with(Callback callback, const Schema& schema, const std::string& owner) {
  return [callback, schema, op = schema.name, who = "the batching rule of " + owner](const Values& arguments,
                                                                                     const std::vector<int64_t>& dims) {
    const Gil gil;
    Object places = own(PyTuple_New(Py_ssize_t(dims.size())));
    for (size_t i = 0; i < dims.size(); ++i)
      PyTuple_SET_ITEM(places.get(), Py_ssize_t(i),
                       dims[i] < 0 ? Py_NewRef(Py_None) : own(PyLong_FromLongLong(dims[i])).release());
    const Object found = callback(pack({to_tuple(arguments).release(), places.release()}));
    if (!PyTuple_Check(found.get()) || PyTuple_GET_SIZE(found.get()) != 2)
      fail(ErrorKind::Type, op, ": the batching rule must give (results, dims), found ", type_name(found.get()));
    std::pair<Values, std::vector<int64_t>> out{results_from_python(PyTuple_GET_ITEM(found.get(), 0), schema, who), {}};
    PyObject* given = PyTuple_GET_ITEM(found.get(), 1);
    const SchemaArgument as{
        .name = "(dims of the batching rule)", .type = ArgumentType::Int, .list = true, .missing = {}};
    const Value given_dims = from_python(given, as, op.c_str());
    for (int64_t d : std::get<Shape>(given_dims)) out.second.push_back(d);
    return out;
  };
}

RuntimeFunctions functions_from(const RuntimeOp& op, PyObject* infer, PyObject* composite, PyObject* derivative,
                                PyObject* batching) {
  const Schema& schema = op.parsed;
  RuntimeFunctions out;
  if (infer != Py_None) out.infer = infer_with(Callback(infer), schema.results.size(), schema.name);
  if (composite != Py_None) out.composite = composite_with(Callback(composite), schema, op.who);
  if (derivative != Py_None)
    out.derivative = derivative_with(Callback(derivative), schema.arguments.size(), schema.name);
  if (batching != Py_None) out.batching = batching_with(Callback(batching), schema, op.who);
  return out;
}

PyObject* define(PyObject*, PyObject* args) {
  const char *schema, *who;
  if (!PyArg_ParseTuple(args, "ss", &schema, &who)) return nullptr;
  return guarded([&] { return PyUnicode_FromString(define_operator(schema, {}, who)->name); });
}
PyObject* set_functions(PyObject*, PyObject* args) {
  PyObject *name, *infer, *composite, *derivative, *batching;
  if (!PyArg_ParseTuple(args, "OOOOO", &name, &infer, &composite, &derivative, &batching)) return nullptr;
  return guarded([&] {
    RuntimeOp& op = runtime_of(name);
    op.set_functions(functions_from(op, infer, composite, derivative, batching));
    return Py_NewRef(Py_None);
  });
}
PyObject* remove(PyObject*, PyObject* name) {
  return guarded([&] {
    remove_operator(&runtime_of(name));
    return Py_NewRef(Py_None);
  });
}

/// A kernel gets (outputs, inputs) where the core made the outputs; a direct one gets the inputs alone and returns
/// results.
BoxedFn direct_kernel(Callback callback, const OpEntry& op, std::string who) {
  return [callback, schema = boxed_schema(op), who](const OpEntry& entry, KeySet, Values arguments) {
    Values results;
    {
      const Gil gil;
      const Object found = callback(pack({own(PyTuple_New(0)).release(), to_tuple(arguments).release()}));
      if (found.get() == Py_NotImplemented)
        throw KernelDeclined(who + " of " + entry.name + " has no way for these arguments");
      if (schema.results.empty()) settle_outputs(entry, schema, found.get(), arguments, {}, who);
      results = results_from_python(found.get(), schema, who, mask_of(schema, arguments));
    }
    if (results.empty()) return results;
    const std::vector<Tensor> given = tensor_arguments(arguments);
    check_kernel_results({entry, schema, who, given}, device_of_call(arguments).value_or(Device()),
                         tensor_arguments(results));
    return results;
  };
}
/// Calls a kernel with (outputs, inputs), of which the first `outputs` arguments are the former. What it gives are the
/// results themselves where it `returns` them, else they stand in the outputs.
Values run_kernel(const Callback& callback, const OpEntry& op, const Schema& schema, const std::string& who,
                  size_t outputs, bool returns, const Values& arguments) {
  const Values made(arguments.begin(), arguments.begin() + Py_ssize_t(outputs));
  std::vector<Tensor> before;
  for (const Value& output : made) before.push_back(detached_alias(std::get<Tensor>(output)));
  const Object found = callback(pack({to_tuple(made).release(), to_tuple(arguments, outputs).release()}));
  if (found.get() == Py_NotImplemented)
    throw KernelDeclined(who + " of " + op.name + " has no way for these arguments");
  if (returns) return results_from_python(found.get(), schema, who);
  settle_outputs(op, schema, found.get(), arguments, before, who);
  return Values();
}
BoxedFn kernel_with(Callback callback, const OpEntry& op, const char* owner) {
  const std::string who = std::string("the kernel of ") + owner;
  if (op.kind == Kind::Direct || !op.kernels) return direct_kernel(std::move(callback), op, who);
  return [callback, schema = boxed_schema(op), own_op = as_runtime(&op), who](const OpEntry& op, KeySet,
                                                                              Values arguments) {
    const Gil gil;
    const bool returns = own_op && !own_op->functions()->infer;
    return run_kernel(callback, op, schema, who, returns ? 0 : schema.results.size(), returns, arguments);
  };
}

/// A kernel that knows its operator in another state than it is in here.
WrittenKernel written_kernel(Callback callback, std::string who) {
  return [callback, who](const OpEntry& op, KeySet, size_t outputs, Values arguments) {
    const Gil gil;
    const Schema& schema = schema_of(op);
    return run_kernel(callback, op, schema, who, outputs, !outputs && !schema.results.empty(), arguments);
  };
}

PyObject* add_kernel_function(PyObject*, PyObject* args) {
  PyObject *name, *device, *callable;
  const char *who, *schema = nullptr;
  int replace, recorded = 0;
  if (!PyArg_ParseTuple(args, "OOOsp|zp", &name, &device, &callable, &who, &replace, &schema, &recorded))
    return nullptr;
  return guarded([&] {
    OpEntry& op = entry_of(name);
    const WrittenFor author{schema ? schema : "", convention_of(op)};
    const std::string owner = std::string("the kernel of ") + who;
    BoxedFn kernel = serves_as_it_is(op, author)
                         ? kernel_with(Callback(callable), op, who)
                         : adapted(op, author, written_kernel(Callback(callable), owner), owner);
    const BackendId id = backend_of(device);
    return PyLong_FromUnsignedLongLong(op.kernels
                                           ? add_kernel(&op, id, std::move(kernel), who, replace)
                                           : add_composite_kernel(&op, id, std::move(kernel), who, replace, recorded));
  });
}
/// The writes of a class into one of its instances count, as those of a kernel do.
void count_writes(const OpEntry& op, const Schema& schema, const Values& arguments) {
  for (size_t i = 0; i < schema.arguments.size() && i < arguments.size(); ++i) {
    if (!schema.arguments[i].written) continue;
    const auto count = [&](const Tensor& t) {
      if (t.defined() && is_wrapper(t)) t.bump_version(op.id);
    };
    if (auto* t = std::get_if<Tensor>(&arguments[i])) count(*t);
    if (auto* list = std::get_if<std::vector<Tensor>>(&arguments[i])) std::ranges::for_each(*list, count);
  }
}

/// A result below autograd gets a place in the graph: where it has one already, another tensor over its memory does.
void take_places(const Values& arguments, Values& results) {
  const std::vector<Tensor> given = tensor_arguments(arguments);
  const auto taken = [&](const Tensor& t) {
    return t.requires_grad() || std::ranges::any_of(given, [&](const Tensor& g) { return g.defined() && g.same(t); });
  };
  const auto settle = [&](Tensor& t) {
    if (t.defined() && taken(t)) t = detached_alias(t);
  };
  for (Value& value : results) {
    if (auto* t = std::get_if<Tensor>(&value)) settle(*t);
    if (auto* list = std::get_if<std::vector<Tensor>>(&value)) std::ranges::for_each(*list, settle);
  }
}
/// A layer's entry of one operator. It is kept for ever, since another thread may be on its way into it, and serves
/// other Python layers of the position once its own is gone.
struct LayerEntry {
  Schema schema;
  Layer layer;
  BoxedFn function;
  std::optional<Callback> callback;  // read and written with the interpreter's lock held
  std::string who;
  uint64_t number = 0;

  Values call(const OpEntry& op, Values arguments) {
    const BelowLayer below(layer);
    const bool recorded = layer == Layer::BelowAutograd;
    std::optional<Below> autograd;
    if (recorded) autograd.emplace(Layer::Autograd);
    Values results;
    std::string giver;
    {
      const Gil gil;
      const std::optional<Callback> now = callback;
      if (now) {
        giver = who;
        const Object found = (*now)(to_tuple(arguments));
        results = results_from_python(found.get(), schema, giver, mask_of(schema, arguments));
      }
    }
    if (giver.empty()) return call_operator(op, std::move(arguments));  // it was removed a moment ago
    check_layer_results({op, schema, giver}, arguments, results);
    if (recorded) {
      count_writes(op, schema, arguments);
      if (op.kind != Kind::Composite) take_places(arguments, results);  // else its parts take theirs
    }
    return results;
  }
};

LayerEntry& layer_entry(const OpEntry& op, Layer layer) {
  static auto* known = new std::map<std::pair<const OpEntry*, Layer>, std::vector<LayerEntry*>>;
  std::vector<LayerEntry*>& entries = (*known)[{&op, layer}];
  for (LayerEntry* entry : entries)
    if (!entry->callback) return *entry;
  auto* made = new LayerEntry{.schema = boxed_schema(op), .layer = layer, .function = {}, .callback = {}, .who = {}};
  made->function = [made](const OpEntry& called, KeySet, Values arguments) {
    return made->call(called, std::move(arguments));
  };
  entries.push_back(made);
  return *made;
}
std::map<uint64_t, LayerEntry*>& layers_by_number() {
  static auto* all = new std::map<uint64_t, LayerEntry*>;
  return *all;
}

PyObject* add_layer_function(PyObject*, PyObject* args) {
  PyObject *name, *position, *callable;
  const char* who;
  if (!PyArg_ParseTuple(args, "OOOs", &name, &position, &callable, &who)) return nullptr;
  return guarded([&] {
    OpEntry& op = entry_of(name);
    LayerEntry& entry = layer_entry(op, layer_of(position));
    const uint64_t number = add_kept_layer(&op, entry.layer, &entry.function, who);
    entry.callback.emplace(callable);
    entry.who = "layer '" + std::string(who) + "'";
    entry.number = number;
    layers_by_number()[number] = &entry;
    return PyLong_FromUnsignedLongLong(number);
  });
}
PyObject* remove_entry(PyObject*, PyObject* number) {
  const unsigned long long id = PyLong_AsUnsignedLongLong(number);
  if (PyErr_Occurred()) return nullptr;
  return guarded([&] {
    remove_registration(id);
    std::optional<Callback> gone;  // dropped when everything is in order: that may run Python code
    if (auto found = layers_by_number().extract(id); found && found.mapped()->number == id)
      gone = std::exchange(found.mapped()->callback, std::nullopt);
    return Py_NewRef(Py_None);
  });
}

/// ((name, type, list, optional, keyword_only, has_default, default, alias, written, when), ...), ((name, type, list,
/// alias), ...)
PyObject* schema_facts(PyObject*, PyObject* name) {
  return guarded([&]() -> PyObject* {
    const Schema& schema = schema_of(entry_of(name));
    Object arguments = own(PyList_New(0)), results = own(PyList_New(0));
    for (const SchemaArgument& a : schema.arguments) {
      const Object row =
          own(Py_BuildValue("(ssNNNNNsNs)", a.name.c_str(), schema_word(a.type), PyBool_FromLong(a.list),
                            PyBool_FromLong(a.optional || a.optional_items), PyBool_FromLong(a.keyword_only),
                            PyBool_FromLong(a.has_default), to_python(a.missing), a.alias.c_str(),
                            PyBool_FromLong(a.written), a.when.c_str()));
      ensure(PyList_Append(arguments.get(), row.get()) == 0);
    }
    for (const SchemaResult& r : schema.results) {
      const Object row =
          own(Py_BuildValue("(ssNs)", r.name.c_str(), schema_word(r.type), PyBool_FromLong(r.list), r.alias.c_str()));
      ensure(PyList_Append(results.get(), row.get()) == 0);
    }
    return Py_BuildValue("(NN)", arguments.release(), results.release());
  });
}

/// _host_backend(name, device_count, owner, {capability: reason}, properties, memory or None)
PyObject* make_host_backend(PyObject*, PyObject* args) {
  const char *name, *who, *properties;
  int count;
  PyObject *lacks, *memory;
  if (!PyArg_ParseTuple(args, "sisO!sO", &name, &count, &who, &PyDict_Type, &lacks, &properties, &memory))
    return nullptr;
  return guarded([&] {
    HostBackend given{name, count, who, {}, properties, memory == Py_None ? nullptr : memory_of_python(memory)};
    PyObject *key, *value;
    for (Py_ssize_t at = 0; PyDict_Next(lacks, &at, &key, &value);)
      given.lacks.emplace(text_of(key, "Backend: a capability"), text_of(value, "Backend: a capability's reason"));
    return PyLong_FromLong(host_backend(std::move(given)));
  });
}
PyObject* remove_host(PyObject*, PyObject* number) {
  const long id = PyLong_AsLong(number);
  if (PyErr_Occurred()) return nullptr;
  return guarded([&] {
    check(id >= 0 && id < backend_count(), ErrorKind::Value, "library: there is no backend number ", id);
    remove_host_backend(BackendId(id));
    return Py_NewRef(Py_None);
  });
}

/// name: whether the operator can be had in terms of others.
PyObject* is_in_parts(PyObject*, PyObject* name) {
  return guarded([&] { return PyBool_FromLong(taeda::is_in_parts(text_of(name, "operator name"))); });
}
/// name, (argument, ...): the operator in terms of others, as it meets them.
PyObject* decomposed(PyObject*, PyObject* args) {
  PyObject *name, *given;
  if (!PyArg_ParseTuple(args, "OO!", &name, &PyTuple_Type, &given)) return nullptr;
  return guarded([&]() -> PyObject* {
    const OpEntry& op = entry_of(name);
    const Schema& schema = schema_of(op);
    const Decomposition in_parts = decomposition_of(op.name);
    check(in_parts, ErrorKind::NotImplemented, op.name, ": there is no decomposition of this operator");
    check(size_t(PyTuple_GET_SIZE(given)) == schema.arguments.size(), ErrorKind::Type, op.name, ": expected ",
          schema.arguments.size(), " arguments, found ", PyTuple_GET_SIZE(given));
    Values inputs;
    for (size_t i = 0; i < schema.arguments.size(); ++i)
      inputs.push_back(from_python(PyTuple_GET_ITEM(given, Py_ssize_t(i)), schema.arguments[i], op.name));
    const Values results = in_parts(std::move(inputs));
    if (results.size() == 1) return to_python(results[0]);
    return results.empty() ? Py_NewRef(Py_None) : to_tuple(results).release();
  });
}

PyObject* has_operator(PyObject*, PyObject* name) {
  return guarded([&] { return PyBool_FromLong(find_op(text_of(name, "operator name")) != nullptr); });
}

/// The operator's own entry for a backend: (owner or None).
PyObject* kernel_owner(PyObject*, PyObject* args) {
  PyObject *name, *device;
  if (!PyArg_ParseTuple(args, "OO", &name, &device)) return nullptr;
  return guarded([&]() -> PyObject* {
    const OpEntry& op = entry_of(name);
    const BackendId id = backend_of(device);
    const detail::CompositeKernels* others = op.kernels ? nullptr : detail::find_composite_kernels(op);
    if (op.kernels ? !op.kernels->typed[id] : !others || !others->of[id].load()) Py_RETURN_NONE;
    const char* owner = op.kernels ? op.kernels->registered_by[id] : others->registered_by[id];
    return shown_text(owner ? owner : "taeda-tensor-core");
  });
}

/// NumPy's view of memory that the host can read, on whatever device it counts as.
PyObject* host_array(PyObject*, PyObject* o) {
  return guarded([&]() -> PyObject* {
    if (!is_tensor(o)) fail(ErrorKind::Type, "array: argument 'tensor' must be a Tensor, found ", type_name(o));
    const Device device = tensor_of(o).device();
    if (device.backend != kCPU && !is_host_backend(device.backend)) [[unlikely]]
      fail(ErrorKind::Runtime, "array: the memory of device '", to_string(device), "' cannot be read by the host");
    if (*buffer_format(tensor_of(o).dtype())) return array_over(tensor_of(o));
    // NumPy has no such type: the bits.
    Tensor bits = bare_alias(tensor_of(o));
    set_dtype(bits.impl(), bits.item_bytes() == 1 ? DType::UInt8 : DType::UInt16);
    return array_over(bits);
  });
}

PyObject* include_layer(PyObject*, PyObject* args) {
  PyObject* position;
  int on;
  if (!PyArg_ParseTuple(args, "Op", &position, &on)) return nullptr;
  return guarded([&] {
    const uint64_t bit = KeySet::of(layer_of(position)).bits();
    const bool before = thread_state.included & bit;
    thread_state.included = on ? thread_state.included | bit : thread_state.included & ~bit;
    return PyBool_FromLong(before);
  });
}
PyObject* exclude_layer(PyObject*, PyObject* args) {
  PyObject* position;
  int on;
  if (!PyArg_ParseTuple(args, "Op", &position, &on)) return nullptr;
  return guarded([&] {
    const uint64_t bit = KeySet::of(layer_of(position)).bits();
    const bool before = thread_state.excluded & bit;
    thread_state.excluded = on ? thread_state.excluded | bit : thread_state.excluded & ~bit;
    return PyBool_FromLong(before);
  });
}

PyObject* functions_present(PyObject*, PyObject* name) {
  return guarded([&] {
    const RuntimeOp& op = runtime_of(name);
    const auto fn = op.functions();
    return Py_BuildValue("(sNNNNN)", op.who.c_str(), PyBool_FromLong(op.live), PyBool_FromLong(bool(fn->infer)),
                         PyBool_FromLong(bool(fn->composite)), PyBool_FromLong(bool(fn->derivative)),
                         PyBool_FromLong(bool(fn->batching)));
  });
}

}  // namespace

PyMethodDef library_functions[] = {{"_define_operator", define, METH_VARARGS, nullptr},
                                   {"_set_operator_functions", set_functions, METH_VARARGS, nullptr},
                                   {"_remove_operator", remove, METH_O, nullptr},
                                   {"_operator_functions", functions_present, METH_O, nullptr},
                                   {"_add_kernel", add_kernel_function, METH_VARARGS, nullptr},
                                   {"_add_layer", add_layer_function, METH_VARARGS, nullptr},
                                   {"_remove_registration", remove_entry, METH_O, nullptr},
                                   {"_schema_facts", schema_facts, METH_O, nullptr},
                                   {"_host_backend", make_host_backend, METH_VARARGS, nullptr},
                                   {"_remove_host_backend", remove_host, METH_O, nullptr},
                                   {"_has_operator", has_operator, METH_O, nullptr},
                                   {"_is_in_parts", is_in_parts, METH_O, nullptr},
                                   {"_decomposed", decomposed, METH_VARARGS, nullptr},
                                   {"_kernel_owner", kernel_owner, METH_VARARGS, nullptr},
                                   {"_host_array", host_array, METH_O, nullptr},
                                   {"_include_layer", include_layer, METH_VARARGS, nullptr},
                                   {"_exclude_layer", exclude_layer, METH_VARARGS, nullptr},
                                   {nullptr, nullptr, 0, nullptr}};

}  // namespace taeda::py
