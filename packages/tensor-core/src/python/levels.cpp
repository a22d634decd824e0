// What taeda.library.Level stands on: levels whose rule is a Python callable, and Python objects as payloads.
#include "python/levels.h"

#include "taeda/tracking.h"

namespace taeda::py {

bool PythonLevel::takes(const OpEntry& op) const {
  return Level::takes(op) || composites.contains(std::string_view(op.name));
}

Values PythonLevel::call(const OpEntry& op, Values arguments) {
  if (element_wise && op.id < element_wise->size() && (*element_wise)[op.id]) {
    const Gil gil;
    if (std::optional<Values> found = call_element_wise(*this, op, arguments)) return std::move(*found);
  }
  const Schema& schema = schema_of(op);
  const std::string who = "level '" + name() + "'";
  Values results;
  {
    const Gil gil;
    const Object called = own(PyTuple_New(2));
    PyTuple_SET_ITEM(called.get(), 0, own(PyUnicode_FromString(op.name)).release());
    PyTuple_SET_ITEM(called.get(), 1, to_tuple(arguments).release());
    const Callback now = *rule;
    results = results_from_python(now(called).get(), schema, who, mask_of(schema, arguments));
  }
  check_layer_results({op, schema, who}, arguments, results);
  return results;
}

void PythonPayload::let_go() noexcept {
  if (!object || !Py_IsInitialized()) return;
  const Gil gil;
  Py_CLEAR(object);
}

namespace {

constexpr char kCapsule[] = "taeda.level";
PythonLevel& level_in(PyObject* capsule) {
  auto* level = static_cast<PythonLevel*>(PyCapsule_GetPointer(capsule, kCapsule));
  ensure(level != nullptr);
  return *level;
}
Ref<Level> shared(PythonLevel& level) { return Ref<Level>::share(&level); }
void release(PyObject* capsule) {
  Ref<Level>::adopt(static_cast<PythonLevel*>(PyCapsule_GetPointer(capsule, kCapsule))).reset();
}
const Tensor& tensor_in(PyObject* o, const char* function) {
  if (!is_tensor(o)) fail(ErrorKind::Type, function, ": argument 'tensor' must be a Tensor, found ", type_name(o));
  return tensor_of(o);
}

/// A wrapper that carries a Python object is seen by the collector, and stays with its tensor.
void keep_wrapper(PyObject* tensor) {
  PyTensor* wrapper = reinterpret_cast<PyTensor*>(tensor);
  if (!wrapper->dict) wrapper->dict = own(PyDict_New()).release();
  track_state(tensor);
}

using OpSet = std::shared_ptr<const std::vector<bool>>;
constexpr char kOpSet[] = "taeda.operators";
/// _op_set(names) -> the operators of these names; those that there are not are left out.
PyObject* make_op_set(PyObject*, PyObject* names) {
  return guarded([&] {
    auto set = std::make_shared<std::vector<bool>>(all_ops().size());
    const Object listed = own(PySequence_Tuple(names));
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(listed.get()); ++i)
      if (const OpEntry* op = find_op(text_of(PyTuple_GET_ITEM(listed.get(), i), "operator name")))
        (*set)[op->id] = true;
    auto kept = std::make_unique<OpSet>(std::move(set));
    const auto forget = [](PyObject* o) { delete static_cast<OpSet*>(PyCapsule_GetPointer(o, kOpSet)); };
    Object made = own(PyCapsule_New(kept.get(), kOpSet, forget));
    kept.release();
    return made.release();
  });
}

/// _make_level(name, sees_all, names of composites, set of element-wise operators or None) -> level
PyObject* make_level(PyObject*, PyObject* args) {
  const char* name;
  int sees_all;
  PyObject *composites, *element_wise;
  if (!PyArg_ParseTuple(args, "spO!O", &name, &sees_all, &PyTuple_Type, &composites, &element_wise)) return nullptr;
  return guarded([&] {
    auto level = Ref<PythonLevel>::adopt(new PythonLevel(name, sees_all));
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(composites); ++i)
      level->composites.emplace(text_of(PyTuple_GET_ITEM(composites, i), "operator name"));
    if (element_wise != Py_None) {
      const auto* set = static_cast<const OpSet*>(PyCapsule_GetPointer(element_wise, kOpSet));
      ensure(set != nullptr);
      level->element_wise = *set;
    }
    const Object made = own(PyCapsule_New(level.get(), kCapsule, release));
    level.release();
    return Py_NewRef(made.get());
  });
}
/// _push_level(level, rule, requires_grad)
PyObject* push(PyObject*, PyObject* args) {
  PyObject *capsule, *rule, *shown;
  if (!PyArg_ParseTuple(args, "OOO", &capsule, &rule, &shown)) return nullptr;
  return guarded([&] {
    PythonLevel& level = level_in(capsule);
    std::optional<Callback> made(std::in_place, rule);  // a level in force has its rule
    std::optional<Callback> of_tensors(std::in_place, shown);
    push_level(shared(level));
    level.rule.swap(made);
    level.requires_grad.swap(of_tensors);
    return Py_NewRef(Py_None);
  });
}
PyObject* pop(PyObject*, PyObject* capsule) {
  return guarded([&] {
    PythonLevel& level = level_in(capsule);
    pop_level(level);
    const std::optional<Callback> gone = std::exchange(level.rule, std::nullopt);
    const std::optional<Callback> shown = std::exchange(level.requires_grad, std::nullopt);
    return Py_NewRef(Py_None);
  });
}
PyObject* depth(PyObject*, PyObject* capsule) {
  return guarded([&] { return PyLong_FromLong(level_in(capsule).depth()); });
}

/// _carrier(level, payload, shape, dtype, device) -> Tensor
PyObject* make_carrier(PyObject*, PyObject* args) {
  PyObject *capsule, *object, *shape, *dtype, *device;
  if (!PyArg_ParseTuple(args, "OOOOO", &capsule, &object, &shape, &dtype, &device)) return nullptr;
  return guarded([&] {
    PythonLevel& level = level_in(capsule);
    const SchemaArgument ints{.name = "shape", .type = ArgumentType::Int, .list = true, .missing = {}};
    const Value sizes = from_python(shape, ints, "Level.wrap");
    for (const int64_t size : std::get<Shape>(sizes))
      check(size >= 0, ErrorKind::Value, "Level.wrap: argument 'shape' must not be negative, found ",
            shape_text(std::get<Shape>(sizes)));
    const std::optional<DType> type = as_dtype(dtype);
    if (!type) fail(ErrorKind::Type, "Level.wrap: argument 'dtype' must be a dtype, found ", type_name(dtype));
    const std::optional<Device> place = as_device(device);
    if (!place)
      fail(ErrorKind::Type, "Level.wrap: argument 'device' must be a device or its name, found ", type_name(device));
    return carrier_of(level, object, std::get<Shape>(sizes), *type, *place).release();
  });
}
/// _batch(level, whole) -> Tensor: one of the level's, that carries `whole` and has its shape but for the first
/// dimension.
PyObject* make_example(PyObject*, PyObject* args) {
  PyObject *capsule, *tensor;
  if (!PyArg_ParseTuple(args, "OO", &capsule, &tensor)) return nullptr;
  return guarded([&] {
    const Tensor& whole = tensor_in(tensor, "Level.wrap");
    check(whole.dim() > 0, ErrorKind::Value, "Level.wrap: expected a tensor of at least one dimension, the batch's");
    return carrier_of(level_in(capsule), tensor, whole.sizes().subspan(1), whole.dtype(), whole.device()).release();
  });
}
/// _attach_payload(level, tensor, payload)
PyObject* attach(PyObject*, PyObject* args) {
  PyObject *capsule, *tensor, *object;
  if (!PyArg_ParseTuple(args, "OOO", &capsule, &tensor, &object)) return nullptr;
  return guarded([&] {
    const Tensor& to = tensor_in(tensor, "Level.attach");
    set_payload(to, Ref<Payload>::adopt(new PythonPayload(shared(level_in(capsule)), object)));
    keep_wrapper(tensor);
    return Py_NewRef(Py_None);
  });
}
/// _turn(level, tensor, whole): a tensor of the level shows another batch, of whatever shape.
PyObject* turn(PyObject*, PyObject* args) {
  PyObject *capsule, *tensor, *object;
  if (!PyArg_ParseTuple(args, "OOO", &capsule, &tensor, &object)) return nullptr;
  return guarded([&] {
    const Tensor &to = tensor_in(tensor, "Level.turn"), &whole = tensor_in(object, "Level.turn");
    check(is_carrier(to) && whole.dim() > 0, ErrorKind::Value,
          "Level.turn: expected a tensor of the level and a batch");
    PythonLevel& level = level_in(capsule);
    const Object made = carrier_of(level, object, whole.sizes().subspan(1), whole.dtype(), whole.device());
    assign_storage(to, tensor_of(made.get()));
    refresh_layout(to.impl());
    set_payload(to, Ref<Payload>::adopt(new PythonPayload(shared(level), object)));
    return Py_NewRef(Py_None);
  });
}
/// _drop_payload(level, tensor)
PyObject* drop(PyObject*, PyObject* args) {
  PyObject *capsule, *tensor;
  if (!PyArg_ParseTuple(args, "OO", &capsule, &tensor)) return nullptr;
  return guarded([&] {
    drop_payload(tensor_in(tensor, "Level.detach"), level_in(capsule));
    return Py_NewRef(Py_None);
  });
}
/// _payload(level, tensor, missing)
PyObject* payload(PyObject*, PyObject* args) {
  PyObject *capsule, *tensor, *missing;
  if (!PyArg_ParseTuple(args, "OOO", &capsule, &tensor, &missing)) return nullptr;
  return guarded([&] {
    const PythonLevel& level = level_in(capsule);
    const auto* found = is_tensor(tensor) ? payload_of<PythonPayload>(tensor_of(tensor), level) : nullptr;
    return Py_NewRef(found && found->object ? found->object : missing);
  });
}
/// _carrier_of(tensor): the name of the level to which a tensor without memory belongs, or None.
PyObject* level_name_of(PyObject*, PyObject* tensor) {
  return guarded([&]() -> PyObject* {
    if (!is_tensor(tensor) || !is_carrier(tensor_of(tensor))) Py_RETURN_NONE;
    const Level& level = *tensor_of(tensor).impl()->payload->payload->level;
    return PyUnicode_FromString(level.name().c_str());
  });
}
}  // namespace

Object carrier_of(PythonLevel& level, PyObject* object, IntSpan sizes, DType dtype, Device device) {
  auto payload = Ref<Payload>::adopt(new PythonPayload(shared(level), object));
  Object made = own(wrap(carrier(std::move(payload), sizes, dtype, device)));
  keep_wrapper(made.get());
  return made;
}

History carrier_history(PyObject* tensor) {
  for (const PayloadLink* link = tensor_of(tensor).impl()->payload; link; link = link->next) {
    const auto* level = dynamic_cast<const PythonLevel*>(link->payload->level.get());
    if (!level || !level->requires_grad) continue;
    const Callback shown = *level->requires_grad;
    const Object found = shown(own(PyTuple_Pack(1, tensor)));
    if (!is_tensor(found.get())) return {is_true(found.get()), !is_true(found.get())};
    const Tensor& of = tensor_of(found.get());
    return {shows_grad(of), !autograd_api.is_leaf || autograd_api.is_leaf(of)};
  }
  return {};
}

PyMethodDef level_functions[] = {{"_op_set", make_op_set, METH_O, nullptr},
                                 {"_make_level", make_level, METH_VARARGS, nullptr},
                                 {"_push_level", push, METH_VARARGS, nullptr},
                                 {"_pop_level", pop, METH_O, nullptr},
                                 {"_level_depth", depth, METH_O, nullptr},
                                 {"_carrier", make_carrier, METH_VARARGS, nullptr},
                                 {"_batch", make_example, METH_VARARGS, nullptr},
                                 {"_attach_payload", attach, METH_VARARGS, nullptr},
                                 {"_turn", turn, METH_VARARGS, nullptr},
                                 {"_drop_payload", drop, METH_VARARGS, nullptr},
                                 {"_payload", payload, METH_VARARGS, nullptr},
                                 {"_carrier_of", level_name_of, METH_O, nullptr},
                                 {nullptr, nullptr, 0, nullptr}};

}  // namespace taeda::py
