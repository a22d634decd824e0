// `__torch_function__`: what classes answer for themselves, modes of the thread, and the protocol between both.
#include "python/override.h"

#include <array>
#include <cstring>
#include <optional>

#include "python/arguments.h"
#include "taeda/host_exit.h"
#include "taeda/ops.h"
#include "taeda/wrappers.h"

namespace taeda::py {

constinit thread_local PyTypeObject* plain_type __attribute__((tls_model("initial-exec"))) = nullptr;
QuietClass quiet_class{};

namespace {

/// The thread's modes, the innermost last, and what is switched off.
struct ThreadModes {
  std::vector<PyObject*> stack;
  int all_off = 0;
  int classes_off = 0;
  bool in_force() const { return !all_off && !stack.empty(); }
};
thread_local ThreadModes modes;

void refresh() { plain_type = modes.in_force() ? nullptr : TensorType; }

PyObject* module_ = nullptr;         // taeda_tensor_core._C
PyObject* answers_not = nullptr;     // what a class without an answer has for one
PyObject* dispatches_not = nullptr;  // the same for operators
PyObject* arm = nullptr;             // called once, when somebody answers for the first time
bool armed = false;

PyObject* spelling(int which) {
  static PyObject* const names[] = {PyUnicode_InternFromString("__torch_function__"),
                                    PyUnicode_InternFromString("__taeda_function__")};
  return names[which];
}

// --- classes ---

enum Answers : uint8_t { kNone, kTorch, kTaeda };

/// The spelling that stands first in the order of base classes; none where that says so.
Answers find_answers(PyTypeObject* type) {
  PyObject* order = type->tp_mro;
  for (Py_ssize_t i = 0; order && i < PyTuple_GET_SIZE(order); ++i) {
    PyObject* dict = reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(order, i))->tp_dict;
    for (int which : {0, 1})
      if (PyObject* found = dict ? PyDict_GetItemWithError(dict, spelling(which)) : nullptr)
        return found == answers_not || found == Py_None ? kNone : which ? kTaeda : kTorch;
  }
  return kNone;
}

/// Remembered by the version of the type, which changes with its attributes and its bases'.
Answers answers_of(PyTypeObject* type) {
  struct Known {
    PyTypeObject* type;
    unsigned version;
    Answers answers;
  };
  static std::array<Known, 256> known{};
  Known& entry = known[(reinterpret_cast<uintptr_t>(type) >> 5) % known.size()];
  const bool versioned = type->tp_flags & Py_TPFLAGS_VALID_VERSION_TAG;
  if (versioned && entry.type == type && entry.version == type->tp_version_tag) [[likely]]
    return entry.answers;
  const Answers found = find_answers(type);
  // A look-up gives the type a version.
  if (!versioned) _PyType_Lookup(type, spelling(0));
  if (type->tp_flags & Py_TPFLAGS_VALID_VERSION_TAG) entry = {type, type->tp_version_tag, found};
  return found;
}

bool class_answers(PyObject* o) {
  PyTypeObject* type = Py_TYPE(o);
  return type != TensorType && answers_of(type) != kNone;
}

// --- the protocol ---

/// Arguments whose classes answer: one of each class, subclasses before their bases, else in the order of the call.
class Answering {
 public:
  void look_at(PyObject* o) {
    add(o);
    if (!PyTuple_Check(o) && !PyList_Check(o)) return;
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(o); ++i) add(PySequence_Fast_GET_ITEM(o, i));
  }
  bool empty() const { return found_.empty(); }
  auto begin() const { return found_.begin(); }
  auto end() const { return found_.end(); }
  Object types() const {
    Object out = own(PyTuple_New(Py_ssize_t(found_.size())));
    for (size_t i = 0; i < found_.size(); ++i)
      PyTuple_SET_ITEM(out.get(), Py_ssize_t(i), Py_NewRef(reinterpret_cast<PyObject*>(Py_TYPE(found_[i].get()))));
    return out;
  }

 private:
  void add(PyObject* o) {
    if (modes.all_off || modes.classes_off || !class_answers(o)) return;
    size_t at = found_.size();
    for (size_t i = found_.size(); i-- > 0;) {
      if (Py_TYPE(found_[i].get()) == Py_TYPE(o)) return;
      if (PyType_IsSubtype(Py_TYPE(o), Py_TYPE(found_[i].get()))) at = i;
    }
    found_.insert(found_.begin() + std::ptrdiff_t(at), share(o));
  }
  std::vector<Object> found_;
};

/// Takes the innermost mode off for as long as it answers.
class ModeAnswers {
 public:
  ModeAnswers() : mode_(modes.stack.back()) {
    modes.stack.pop_back();
    refresh();
  }
  ~ModeAnswers() {
    modes.stack.push_back(mode_);
    refresh();
  }
  PyObject* mode() const { return mode_; }

 private:
  PyObject* mode_;
};

/// "taeda.add", "Tensor.add" for messages.
std::string name_of(PyObject* function) {
  for (const char* attribute : {"__qualname__", "__name__"}) {
    const Object found = optional_attribute(function, attribute);
    if (found && PyUnicode_Check(found.get())) return std::string(text_of(found.get(), attribute));
  }
  return type_name(function);
}

std::string listed(const Answering& all) {
  std::string text;
  for (const Object& o : all) text += (text.empty() ? "" : ", ") + std::string(type_name(o.get()));
  return text;
}

void arm_once() {
  if (armed) return;
  armed = true;
  if (arm) own(PyObject_CallNoArgs(arm));
}

/// Calls what may be a Python function: a thread that the end of the interpreter finds in it is not unwound from here.
PyObject* call_function(PyObject* function, PyObject* args, PyObject* kwargs) {
  return called_out([&] { return PyObject_Call(function, args, kwargs); });
}

/// What the first one answers that does not return NotImplemented. `partner`: where all of them do, the operand on the
/// other side of a Python operator may know more, so that this is returned instead of an error.
PyObject* answered(PyObject* function, const Answering& all, PyObject* args, PyObject* kwargs, bool partner = false) {
  arm_once();
  const Object types = all.types();
  PyObject* given[] = {nullptr, function, types.get(), args, kwargs};
  std::string asked;
  if (modes.in_force()) {
    const ModeAnswers taken;
    given[0] = taken.mode();
    Object result = own(called_out([&] { return PyObject_VectorcallMethod(spelling(0), given, 5, nullptr); }));
    if (result.get() != Py_NotImplemented) return result.release();
    asked = "mode " + std::string(type_name(taken.mode())) + (all.empty() ? "" : ", ");
  }
  for (const Object& o : all) {
    const Object method = own(PyObject_GetAttr(o.get(), spelling(answers_of(Py_TYPE(o.get())) == kTaeda)));
    Object result = own(called_out([&] { return PyObject_Vectorcall(method.get(), given + 1, 4, nullptr); }));
    if (result.get() != Py_NotImplemented) return result.release();
  }
  if (partner) Py_RETURN_NOTIMPLEMENTED;
  fail(ErrorKind::Type, name_of(function),
       ": no implementation for these types: __torch_function__ of all of them returned NotImplemented: ", asked,
       listed(all));
}

/// All arguments as Python calls them, and who answers among them.
struct Call {
  Object args, kwargs;
  Answering answering;
  Call(PyObject* self, PyObject* const* given, Py_ssize_t count, PyObject* keywords) {
    const Py_ssize_t lead = self != nullptr;
    args = own(PyTuple_New(lead + count));
    kwargs = own(PyDict_New());
    if (self) put(0, self);
    for (Py_ssize_t i = 0; i < count; ++i) put(lead + i, given[i]);
    for (Py_ssize_t k = 0; keywords && k < PyTuple_GET_SIZE(keywords); ++k) {
      ensure(PyDict_SetItem(kwargs.get(), PyTuple_GET_ITEM(keywords, k), given[count + k]) == 0);
      answering.look_at(given[count + k]);
    }
  }

 private:
  void put(Py_ssize_t i, PyObject* o) {
    PyTuple_SET_ITEM(args.get(), i, Py_NewRef(o));
    answering.look_at(o);
  }
};

/// `Tensor.name.__get__`, `__set__` or `__delete__`.
Object accessor(const char* name, const char* which) {
  const Object descriptor = own(PyObject_GetAttrString(reinterpret_cast<PyObject*>(TensorType), name));
  return own(PyObject_GetAttrString(descriptor.get(), which));
}

// --- the default answer ---

class ClassesOff {
 public:
  ClassesOff() { ++modes.classes_off; }
  ~ClassesOff() { --modes.classes_off; }
};

/// The same elements and history as an instance of `type`. A tensor that nobody else holds changes its class.
Object as_class(Object given, PyTypeObject* type) {
  auto* wrapper = reinterpret_cast<PyTensor*>(given.get());
  const bool alone =
      Py_REFCNT(given.get()) == 1 && Py_TYPE(given.get()) == TensorType && !wrapper->dict && !wrapper->weakrefs;
  Tensor tensor = wrapper->tensor;
  if (alone) {
    wrapper->tensor = Tensor();
    tensor.impl()->python = nullptr;
    given.reset();
  } else {
    Shape order;
    for (int64_t d = 0; d < tensor.dim(); ++d) order.push_back(d);
    std::optional<Below> classes, own_modes;  // modes see no operator: what they kept would have two wrappers
    if (!is_wrapper(tensor)) classes.emplace(Layer::BelowAutograd), own_modes.emplace(Layer::PreDispatch);
    tensor = ops::permute(tensor, order);
  }
  return own(wrap_fresh(std::move(tensor), type));
}

Object converted_result(Object result, PyTypeObject* type);

Object converted_items(const Object& items, PyTypeObject* type) {
  const Object list = own(PySequence_List(items.get()));
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list.get()); ++i) {
    Object item = share(PyList_GET_ITEM(list.get(), i));
    ensure(PyList_SetItem(list.get(), i, converted_result(std::move(item), type).release()) == 0);
  }
  return own(PyObject_CallOneArg(reinterpret_cast<PyObject*>(Py_TYPE(items.get())), list.get()));
}

Object converted_result(Object result, PyTypeObject* type) {
  if (type == TensorType) return result;
  if (is_tensor(result.get()))
    return PyType_IsSubtype(Py_TYPE(result.get()), type) ? std::move(result) : as_class(std::move(result), type);
  const bool items = PyTuple_Check(result.get()) || PyList_Check(result.get());
  if (!items || Py_TYPE(result.get()) == SizeType) return result;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(result.get()); ++i) {
    PyObject* item = PySequence_Fast_GET_ITEM(result.get(), i);
    if (is_tensor(item) || PyTuple_Check(item) || PyList_Check(item)) return converted_items(result, type);
  }
  return result;
}

/// Functions whose results keep their class.
bool keeps_class(PyObject* function) {
  static PyObject* const kept = [] {
    PyObject* set = PySet_New(nullptr);
    for (const char* name : {"grad", "_grad", "_base"})
      if (set) ensure(PySet_Add(set, accessor(name, "__get__").get()) == 0);
    return set;
  }();
  const int found = PySet_Contains(kept, function);
  if (found < 0) PyErr_Clear();  // an object that has no hash is none of them
  return found > 0;
}

/// Tensor.__torch_function__: calls the function as if there were no subclasses and gives results of the class.
PyObject* torch_function(PyObject* cls, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  return guarded([&]() -> PyObject* {
    static Names known{"__torch_function__", 4, {"func", "types", "args", "kwargs"}};
    const Given given(known, args, count, names);
    auto* type = reinterpret_cast<PyTypeObject*>(cls);
    const Object types = own(PySequence_Tuple(given.need(1)));
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(types.get()); ++i) {
      PyObject* other = PyTuple_GET_ITEM(types.get(), i);
      if (!PyType_Check(other)) given.wrong(1, "types");
      if (!PyType_IsSubtype(type, reinterpret_cast<PyTypeObject*>(other))) Py_RETURN_NOTIMPLEMENTED;
    }
    const Object arguments = own(given.has(2) ? PySequence_Tuple(given[2]) : PyTuple_New(0));
    if (given.has(3) && !PyDict_Check(given[3])) given.wrong(3, "a dict or None");
    Object result;
    {
      const ClassesOff off;
      result = own(call_function(given.need(0), arguments.get(), given.has(3) ? given[3] : nullptr));
    }
    if (keeps_class(given[0])) return result.release();
    return converted_result(std::move(result), type).release();
  });
}

void start_dispatching(PyTypeObject* type) {
  const Object module = own(PyImport_ImportModule("taeda_tensor_core.python_dispatch"));
  own(PyObject_CallMethod(module.get(), "start_for", "O", type));
}

bool inherits_answer(PyTypeObject* type, int which) {
  return _PyType_Lookup(type, spelling(which)) == _PyType_Lookup(TensorType, spelling(which));
}

/// A subclass is born: if it answers for itself, Python functions begin to ask; if it dispatches, operators do.
PyObject* init_subclass(PyObject* cls, PyObject*, PyObject* kwargs) {
  return guarded([&]() -> PyObject* {
    static PyObject* const name = PyUnicode_InternFromString("__init_subclass__");
    PyObject* parts[] = {reinterpret_cast<PyObject*>(TensorType), cls};
    const Object above = own(PyObject_Vectorcall(reinterpret_cast<PyObject*>(&PySuper_Type), parts, 2, nullptr));
    const Object next = own(PyObject_GetAttr(above.get(), name)), none = own(PyTuple_New(0));
    own(PyObject_Call(next.get(), none.get(), kwargs));
    auto* const type = reinterpret_cast<PyTypeObject*>(cls);
    // Who answers for operators alone gets what it answers, not that in its own class.
    if (dispatches(type) && inherits_answer(type, 0) && inherits_answer(type, 1))
      ensure(PyObject_SetAttr(cls, spelling(0), answers_not) == 0);
    if (answers_of(type) != kNone) arm_once();
    if (dispatches(type)) start_dispatching(type);
    Py_RETURN_NONE;
  });
}

PyObject* as_subclass(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  return guarded([&] {
    static Names known{"as_subclass", 1, {"cls"}};
    const Given given(known, args, count, names);
    PyObject* type = given.need(0);
    if (!PyType_Check(type) || !PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(type), TensorType))
      fail(ErrorKind::Type, "as_subclass: argument 'cls' must be a subclass of Tensor, found ", type_name(type));
    return as_class(share(self), reinterpret_cast<PyTypeObject*>(type)).release();
  });
}

// --- what Python uses ---

PyObject* disabled_impl(PyObject*, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  return guarded([&] {
    static Names known{"_disabled_torch_function_impl", 4, {"func", "types", "args", "kwargs"}};
    const Given given(known, args, count, names);
    const Object arguments = own(given.has(2) ? PySequence_Tuple(given[2]) : PyTuple_New(0));
    if (given.has(3) && !PyDict_Check(given[3])) given.wrong(3, "a dict or None");
    const ClassesOff off;
    return call_function(given.need(0), arguments.get(), given.has(3) ? given[3] : nullptr);
  });
}

/// func, types, args, kwargs: calls `func` as if neither modes nor classes answered for operators.
PyObject* disabled_dispatch(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  const Below classes(Layer::BelowAutograd), own(Layer::PreDispatch);
  return disabled_impl(self, args, count, names);
}

/// Whether a mode is in force or one of the arguments answers.
PyObject* has_override(PyObject*, PyObject* const* args, Py_ssize_t count) {
  for (Py_ssize_t i = 0; i < count; ++i)
    if (may_override(args[i])) Py_RETURN_TRUE;
  return PyBool_FromLong(mode_in_force());
}
/// The same of the items of one sequence.
PyObject* has_override_in(PyObject*, PyObject* sequence) {
  return guarded([&] {
    const Object items = own(PySequence_Tuple(sequence));
    return has_override(nullptr, &PyTuple_GET_ITEM(items.get(), 0), PyTuple_GET_SIZE(items.get()));
  });
}

/// function, relevant arguments, args, kwargs: the protocol for a function written in Python.
PyObject* handle_override(PyObject*, PyObject* const* args, Py_ssize_t count) {
  return guarded([&] {
    check(count == 4 && PyTuple_Check(args[2]) && PyDict_Check(args[3]), ErrorKind::Type,
          "handle_torch_function: expected a function, a sequence of arguments, a tuple and a dict");
    const Object relevant = own(PySequence_Tuple(args[1]));
    Answering all;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(relevant.get()); ++i) all.look_at(PyTuple_GET_ITEM(relevant.get(), i));
    return answered(args[0], all, args[2], args[3]);
  });
}

/// public function, implementation, args, kwargs: asks where somebody answers, else calls the implementation.
PyObject* call_overridable(PyObject*, PyObject* const* args, Py_ssize_t count) {
  return guarded([&]() -> PyObject* {
    check(count == 4 && PyTuple_Check(args[2]) && PyDict_Check(args[3]), ErrorKind::Type,
          "_call_overridable: expected 4 arguments");
    if (Object answer = overridden(args[0], args[2], args[3]); answer.get()) return answer.release();
    return call_function(args[1], args[2], args[3]);
  });
}

PyObject* push_mode(PyObject*, PyObject* mode) {
  return guarded([&] {
    check(answers_of(Py_TYPE(mode)) != kNone, ErrorKind::Type,
          "_push_function_mode: expected a mode, with a method __torch_function__, found ", type_name(mode));
    arm_once();
    modes.stack.push_back(Py_NewRef(mode));
    refresh();
    return Py_NewRef(Py_None);
  });
}
PyObject* pop_mode(PyObject*, PyObject*) {
  return guarded([&]() -> PyObject* {
    check(!modes.stack.empty(), ErrorKind::Runtime, "_pop_function_mode: this thread has no function mode");
    PyObject* mode = modes.stack.back();
    modes.stack.pop_back();
    refresh();
    return mode;
  });
}
/// `__exit__` of modes: no Python function, in which the handler of a signal could raise before the mode is off.
PyObject* leave_mode(PyObject* module, PyObject*) {
  const Object mode(pop_mode(module, nullptr));
  return mode.get() ? Py_NewRef(Py_None) : nullptr;
}
/// `old`, `mode`: takes `old` out from wherever it stands and puts `mode` below all others; None for neither.
PyObject* set_lowest_mode(PyObject*, PyObject* const* args, Py_ssize_t count) {
  return guarded([&] {
    check(count == 2, ErrorKind::Type, "_set_lowest_function_mode: expected 2 arguments");
    check(args[1] == Py_None || answers_of(Py_TYPE(args[1])) != kNone, ErrorKind::Type,
          "_set_lowest_function_mode: expected a mode, with a method __torch_function__, found ", type_name(args[1]));
    arm_once();
    auto& stack = modes.stack;
    const auto found = std::ranges::find(stack, args[0]);
    Object gone;
    if (found != stack.end()) {
      gone = own(*found);
      stack.erase(found);
    }
    if (args[1] != Py_None) stack.insert(stack.begin(), Py_NewRef(args[1]));
    refresh();
    return Py_NewRef(Py_None);
  });
}
PyObject* mode_stack(PyObject*, PyObject*) {
  PyObject* out = PyList_New(0);
  for (PyObject* mode : modes.stack)
    if (out && PyList_Append(out, mode) < 0) Py_CLEAR(out);
  return out;
}
/// `all`, `step`: switches classes (and modes, when `all`) off by one level more or less.
PyObject* switch_overrides(PyObject*, PyObject* const* args, Py_ssize_t count) {
  return guarded([&] {
    check(count == 2, ErrorKind::Type, "_switch_overrides: expected 2 arguments");
    const long step = PyLong_AsLong(args[1]);
    ensure(step != -1 || !PyErr_Occurred());
    (args[0] == Py_True ? modes.all_off : modes.classes_off) += int(step);
    refresh();
    return Py_NewRef(Py_None);
  });
}
PyObject* overrides_enabled(PyObject*, PyObject*) { return PyBool_FromLong(!modes.all_off && !modes.classes_off); }
/// What is called when somebody answers for the first time; at once when that was before.
PyObject* when_armed(PyObject*, PyObject* function) {
  return guarded([&] {
    PyObject* before = std::exchange(arm, Py_NewRef(function));
    Py_XDECREF(before);
    return armed ? PyObject_CallNoArgs(function) : Py_NewRef(Py_None);
  });
}
PyObject* arm_now(PyObject*, PyObject*) {
  return guarded([&] {
    arm_once();
    return Py_NewRef(Py_None);
  });
}

}  // namespace

bool mode_in_force() { return modes.in_force(); }

Object overridden(PyObject* function, PyObject* args, PyObject* kwargs) {
  if (!armed) return {};
  Answering all;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); ++i) all.look_at(PyTuple_GET_ITEM(args, i));
  PyObject *key, *value;
  for (Py_ssize_t at = 0; kwargs && PyDict_Next(kwargs, &at, &key, &value);) all.look_at(value);
  if (all.empty() && !modes.in_force()) return {};
  const Object none = kwargs ? share(kwargs) : own(PyDict_New());
  return own(answered(function, all, args, none.get()));
}

bool dispatches(PyTypeObject* type) {
  static PyObject* const name = PyUnicode_InternFromString("__torch_dispatch__");
  PyObject* found = _PyType_Lookup(type, name);
  return found && found != Py_None && found != dispatches_not;
}

Layer dispatch_layer(PyTypeObject* type) {
  static PyObject* const name = PyUnicode_InternFromString("_asks_for_own_form");
  return _PyType_Lookup(type, name) ? Layer::PreDispatch : Layer::BelowAutograd;
}

bool answered_elsewhere(PyObject* o) {
  if (modes.in_force()) return true;
  plain_type = TensorType;  // also on the thread's first call
  if (modes.classes_off || modes.all_off) return false;
  if (class_answers(o)) return true;
  PyTypeObject* type = Py_TYPE(o);
  if (is_tensor(o) && (type->tp_flags & Py_TPFLAGS_VALID_VERSION_TAG)) quiet_class = {type, type->tp_version_tag};
  return false;
}

bool may_override_in(PyObject* o) {
  if (!PyTuple_Check(o) && !PyList_Check(o)) return may_override(o);
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(o); ++i)
    if (may_override(PySequence_Fast_GET_ITEM(o, i))) return true;
  return false;
}

void meet_mode() {
  if (modes.in_force()) throw Overridden();
  plain_type = TensorType;
}

PyObject* call_override(PyObject* function, PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* keywords,
                        bool partner) {
  return guarded([&] {
    const Call call(self, args, count, keywords);
    return answered(function, call.answering, call.args.get(), call.kwargs.get(), partner);
  });
}

PyObject* override_named(const char* name, PyObject* self, PyObject* const* args, Py_ssize_t count,
                         PyObject* keywords) {
  return guarded([&] {
    PyObject* home = self ? reinterpret_cast<PyObject*>(TensorType) : module_;
    Object function = optional_attribute(home, name);
    if (!function) {  // building blocks of layers stand in `ops` alone
      const Object ops = own(PyObject_GetAttrString(module_, "ops"));
      function = own(PyObject_GetAttrString(ops.get(), name));
    }
    return call_override(function.get(), self, args, count, keywords);
  });
}

PyObject* override_operator(const char* name, std::initializer_list<PyObject*> operands) {
  return guarded([&] {
    const Object method = own(PyObject_GetAttrString(reinterpret_cast<PyObject*>(TensorType), name));
    const Py_ssize_t others = Py_ssize_t(operands.size()) - 1;
    return call_override(method.get(), *operands.begin(), operands.begin() + 1, others, nullptr, others == 1);
  });
}

PyObject* override_get(const char* name, PyObject* self) {
  return guarded([&] { return call_override(accessor(name, "__get__").get(), self, nullptr, 0, nullptr); });
}
int override_set(const char* name, PyObject* self, PyObject* value) {
  const Object done(guarded([&] {
    return call_override(accessor(name, value ? "__set__" : "__delete__").get(), self, &value, value != nullptr,
                         nullptr);
  }));
  return done ? 0 : -1;
}

const char* method_name(void* function) {
  for (const PyMethodDef* row : {tensor_methods, buffer_methods, dlpack_methods})
    for (; row->ml_name; ++row)
      if (reinterpret_cast<void*>(row->ml_meth) == function) return row->ml_name;
  return "?";
}
const char* attribute_name(void* accessor, void* closure) {
  const auto is = [&](const PyGetSetDef& row) {
    return row.closure == closure &&
           (reinterpret_cast<void*>(row.get) == accessor || reinterpret_cast<void*>(row.set) == accessor);
  };
  const PyGetSetDef* row = tensor_attributes;
  while (row->name && !is(*row)) ++row;
  return row->name;
}

#define TAEDA_FAST(FUNCTION, FLAGS) reinterpret_cast<PyCFunction>(FUNCTION), METH_FASTCALL | FLAGS
PyMethodDef override_methods[] = {
    {"__torch_function__", TAEDA_FAST(torch_function, METH_KEYWORDS | METH_CLASS),
     "__torch_function__(func, types, args=(), kwargs=None)\n\nAnswers for functions that were given instances of the "
     "class: "
     "calls `func` as if they were plain tensors and gives results of the class. Override it to do something else."},
    {"__taeda_function__", TAEDA_FAST(torch_function, METH_KEYWORDS | METH_CLASS), "The same as __torch_function__."},
    {"__init_subclass__", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(init_subclass)),
     METH_VARARGS | METH_KEYWORDS | METH_CLASS, nullptr},
    {"as_subclass", TAEDA_FAST(as_subclass, METH_KEYWORDS),
     "as_subclass(cls) -> Tensor\n\nThe same elements as an instance of a subclass of Tensor; gradients flow "
     "through.\n\n"
     "Raises:\n    TypeError: `cls` is no subclass of Tensor.\n\nExample:\n    >>> class Named(taeda.Tensor): pass\n   "
     " "
     ">>> type(taeda.ones(2).as_subclass(Named) + 1).__name__\n    'Named'"},
    {nullptr, nullptr, 0, nullptr}};
PyMethodDef override_functions[] = {
    {"_disabled_torch_function_impl", TAEDA_FAST(disabled_impl, METH_KEYWORDS),
     "As a class's __torch_function__: its instances are treated as plain tensors."},
    {"_disabled_torch_dispatch_impl", TAEDA_FAST(disabled_dispatch, METH_KEYWORDS),
     "As a class's __torch_dispatch__: operators treat its instances as plain tensors. Tensor's own, which a class's "
     "calls by super(): computes with its instances as with plain tensors, and gives such."},
    {"_has_torch_function", has_override_in, METH_O, nullptr},
    {"_has_torch_function_unary", TAEDA_FAST(has_override, 0), nullptr},
    {"_has_torch_function_variadic", TAEDA_FAST(has_override, 0), nullptr},
    {"_handle_override", TAEDA_FAST(handle_override, 0), nullptr},
    {"_call_overridable", TAEDA_FAST(call_overridable, 0), nullptr},
    {"_push_function_mode", push_mode, METH_O, nullptr},
    {"_pop_function_mode", pop_mode, METH_NOARGS, nullptr},
    {"_leave_function_mode", leave_mode, METH_VARARGS, nullptr},
    {"_set_lowest_function_mode", reinterpret_cast<PyCFunction>(set_lowest_mode), METH_FASTCALL, nullptr},
    {"_function_mode_stack", mode_stack, METH_NOARGS, nullptr},
    {"_switch_overrides", TAEDA_FAST(switch_overrides, 0), nullptr},
    {"_is_torch_function_enabled", overrides_enabled, METH_NOARGS, nullptr},
    {"_when_overridden", when_armed, METH_O, nullptr},
    {"_arm_overrides", arm_now, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr}};

bool init_override(PyObject* module) {
  module_ = module;
  answers_not = PyObject_GetAttrString(module, "_disabled_torch_function_impl");
  dispatches_not = PyObject_GetAttrString(module, "_disabled_torch_dispatch_impl");
  return answers_not && dispatches_not &&
         PyObject_SetAttrString(reinterpret_cast<PyObject*>(TensorType), "__torch_dispatch__", dispatches_not) == 0;
}

}  // namespace taeda::py
