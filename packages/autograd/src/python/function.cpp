// Calls of user-defined Functions: forward without recording, outputs attached to a PyNode, backward through Python.
#include "python/function.h"

#include <algorithm>
#include <structmember.h>

#include "taeda/autograd/directions.h"
#include "taeda/autograd/layer.h"

namespace taeda::autograd::py {
namespace {

/// Base of ctx objects; `node` is null before forward has ended and after the graph is gone.
struct Context {
  PyObject_HEAD PyNode* node;
  PyObject* dict;
  PyObject* weakrefs;
};
PyTypeObject* ContextType;
Context* context_of(PyObject* o) { return reinterpret_cast<Context*>(o); }

void context_dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  if (context_of(self)->weakrefs) PyObject_ClearWeakRefs(self);
  Py_CLEAR(context_of(self)->dict);
  type->tp_free(self);
  Py_DECREF(type);
}
int context_traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(context_of(self)->dict);
  return 0;
}
int context_clear(PyObject* self) {
  Py_CLEAR(context_of(self)->dict);
  return 0;
}

PyNode* live_node(PyObject* self) {
  PyNode* node = context_of(self)->node;
  check(node != nullptr, ErrorKind::Runtime, Py_TYPE(self)->tp_name,
        ": the graph that this context belongs to has been freed");
  return node;
}

/// Saved tensors in order; before forward has ended those given to save_for_backward.
PyObject* saved_tensors(PyObject* self, void*) {
  return guarded([&]() -> PyObject* {
    if (!context_of(self)->node) {
      Object waiting(PyObject_GetAttrString(self, "_to_save"));
      if (waiting) return PySequence_Tuple(waiting.get());
      ensure(PyErr_ExceptionMatches(PyExc_AttributeError));
      PyErr_Clear();
    }
    PyNode* node = live_node(self);
    std::vector<Object> items;
    for (const auto& item : node->kept)
      if (!item.name) items.push_back(own(wrap(node->hand_out(item))));
    Object tuple = own(PyTuple_New(Py_ssize_t(items.size())));
    for (size_t i = 0; i < items.size(); ++i) PyTuple_SET_ITEM(tuple.get(), Py_ssize_t(i), items[i].release());
    return tuple.release();
  });
}

/// Attributes that hold tensors of the graph were moved to the node (see attach_attributes).
PyObject* context_getattro(PyObject* self, PyObject* key) {
  PyObject* found = PyObject_GenericGetAttr(self, key);
  if (found || !PyErr_ExceptionMatches(PyExc_AttributeError) || !context_of(self)->node) return found;
  PyNode* node = context_of(self)->node;
  for (const auto& item : node->kept) {
    if (!item.name || PyUnicode_Compare(item.name.get(), key) != 0) continue;
    PyErr_Clear();
    return guarded([&] { return wrap(node->hand_out(item)); });
  }
  return nullptr;
}

/// Deleting one of those attributes takes it from the node.
int context_setattro(PyObject* self, PyObject* key, PyObject* value) {
  PyNode* node = context_of(self)->node;
  if (value || !node) return PyObject_GenericSetAttr(self, key, value);
  const Turn turn;
  // What it held may run any code when it goes: the list is in order by then.
  std::vector<PyNode::Kept> moved;
  const auto named = [&](const auto& item) { return item.name && PyUnicode_Compare(item.name.get(), key) == 0; };
  for (auto at = node->kept.begin(); at != node->kept.end();) {
    if (named(*at)) moved.push_back(std::move(*at)), at = node->kept.erase(at);
    else ++at;
  }
  if (PyObject_GenericSetAttr(self, key, nullptr) == 0) return 0;
  if (moved.empty() || !PyErr_ExceptionMatches(PyExc_AttributeError)) return -1;
  PyErr_Clear();
  return 0;
}

PyObject* next_functions(PyObject* self, void*) {
  return guarded([&] {
    const Object node = own(wrap(Ref<Node>::share(live_node(self))));
    return PyObject_GetAttrString(node.get(), "next_functions");
  });
}
PyObject* name(PyObject* self, PyObject*) {
  return guarded([&] { return PyUnicode_FromString(live_node(self)->name()); });
}

PyGetSetDef attributes[] = {
    {"saved_tensors", saved_tensors, nullptr, "The tensors given to save_for_backward.", nullptr},
    {"next_functions", next_functions, nullptr, "Nodes that the gradients go to.", nullptr},
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
    {nullptr},
};
PyMethodDef methods[] = {{"name", name, METH_NOARGS, "Name of the operation."}, {nullptr}};
PyMemberDef members[] = {
    {"__dictoffset__", T_PYSSIZET, offsetof(Context, dict), READONLY, nullptr},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(Context, weakrefs), READONLY, nullptr},
    {nullptr},
};
PyType_Slot slots[] = {
    {Py_tp_dealloc, reinterpret_cast<void*>(context_dealloc)},
    {Py_tp_traverse, reinterpret_cast<void*>(context_traverse)},
    {Py_tp_clear, reinterpret_cast<void*>(context_clear)},
    {Py_tp_getattro, reinterpret_cast<void*>(context_getattro)},
    {Py_tp_setattro, reinterpret_cast<void*>(context_setattro)},
    {Py_tp_getset, attributes},
    {Py_tp_methods, methods},
    {Py_tp_members, members},
    {Py_tp_new, reinterpret_cast<void*>(PyType_GenericNew)},
    {Py_tp_doc, const_cast<char*>("What forward leaves for backward.")},
    {0, nullptr},
};
PyType_Spec spec = {"taeda_autograd._C.Context", sizeof(Context), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, slots};

// --- calling ---

Object attribute(PyObject* o, const char* key) { return own(PyObject_GetAttrString(o, key)); }

/// The items of a tuple that an attribute of ctx holds; held, as code that runs meanwhile may give ctx another one.
std::vector<Object> marked(PyObject* ctx, const char* key) {
  const Object list = attribute(ctx, key);
  std::vector<Object> items;
  if (list.get() == Py_None) return items;
  check(PyTuple_Check(list.get()), ErrorKind::Type, "Function: ctx.", key, " must be a tuple, found ",
        Py_TYPE(list.get())->tp_name);
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(list.get()); ++i) items.push_back(share(PyTuple_GET_ITEM(list.get(), i)));
  return items;
}
bool among(const std::vector<PyObject*>& items, PyObject* o) {
  return std::find(items.begin(), items.end(), o) != items.end();
}
bool among(const std::vector<Object>& items, PyObject* o) {
  return std::any_of(items.begin(), items.end(), [&](const Object& item) { return item.get() == o; });
}

/// One call of apply.
struct Call {
  PyObject* function;  // the Function subclass
  PyObject* const* arguments;
  Py_ssize_t count;
  Object ctx;
  Ref<PyNode> node;
  std::vector<PyObject*> outputs;  // borrowed items of `result`
  Object result;
  bool single = false;

  bool is_input(const TensorImpl* impl) const {
    for (Py_ssize_t i = 0; i < count; ++i)
      if (is_tensor(arguments[i]) && tensor_of(arguments[i]).impl() == impl) return true;
    return false;
  }
  bool shows_input(const Tensor& t) const {
    for (Py_ssize_t i = 0; i < count; ++i)
      if (is_tensor(arguments[i]) && tensor_of(arguments[i]).impl()->storage.get() == t.impl()->storage.get())
        return true;
    return false;
  }
  void prepare();
  void forward();
  void attach_outputs();
  void attach_saved();
  void attach_attributes();
  void keep(PyObject* value, Shared name);
};

void Call::prepare() {
  const Object type = attribute(function, "_context_type");
  ctx = own(called_out([&] { return PyObject_CallNoArgs(type.get()); }));
  Object needs = own(PyTuple_New(count));
  bool recorded = false;
  for (Py_ssize_t i = 0; i < count; ++i) {
    const bool flows = is_tensor(arguments[i]) && tracked(tensor_of(arguments[i]));
    recorded |= flows;
    PyTuple_SET_ITEM(needs.get(), i, PyBool_FromLong(flows));
  }
  ensure(PyObject_SetAttrString(ctx.get(), "needs_input_grad", needs.get()) == 0);
  if (!recorded || !thread_state.grad_enabled || thread_state.inference_mode) return;
  node = make_node<PyNode>();
  node->flags |= kPython;
  node->title = Py_TYPE(ctx.get())->tp_name;
  if (const size_t dot = node->title.rfind('.'); dot != std::string::npos) node->title.erase(0, dot + 1);
  node->reserve(size_t(count), 1);
  for (Py_ssize_t i = 0; i < count; ++i) {
    node->tensor_argument.push_back(is_tensor(arguments[i]));
    if (is_tensor(arguments[i])) node->edges[i] = collect_edge(tensor_of(arguments[i]));
  }
}

void Call::forward() {
  const Object run = attribute(function, "_run_forward");
  std::vector<PyObject*> stack{ctx.get()};
  stack.insert(stack.end(), arguments, arguments + count);
  {
    const GradMode unrecorded(false);
    result = own(called_out([&] { return PyObject_Vectorcall(run.get(), stack.data(), stack.size(), nullptr); }));
  }
  single = !PyTuple_Check(result.get()) && !PyList_Check(result.get());
  if (single) {
    outputs.push_back(result.get());
    return;
  }
  if (PyList_Check(result.get())) result = own(PyList_AsTuple(result.get()));
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(result.get()); ++i) outputs.push_back(PyTuple_GET_ITEM(result.get(), i));
}

/// A leaf that requires grad, or a view of one: its value belongs to the user.
bool belongs_to_leaf(const Tensor& t) {
  const auto leaf = [](const Tensor& x) { return x.requires_grad() && !grad_fn_of(x); };
  return leaf(t) || (t.is_view() && leaf(Tensor(t.impl()->base)));
}

void Call::attach_outputs() {
  const auto dirty = marked(ctx.get(), "_dirty"), constant = marked(ctx.get(), "_constant");
  for (const Object& item : dirty) {
    PyObject* o = item.get();
    check(is_tensor(o) && !belongs_to_leaf(tensor_of(o)), ErrorKind::Runtime, node->name(),
          ": a tensor given to mark_dirty is a leaf that requires grad, or a view of one: it cannot be used in an "
          "in-place operation while gradients "
          "are recorded; use no_grad() or clone() it first");
    check(is_tensor(o) && among(outputs, o), ErrorKind::Runtime, node->name(),
          ": tensors given to mark_dirty must be inputs that are returned as outputs");
  }
  DynamicNode& room = *node;
  room.output_room = std::make_unique<OutputInfo[]>(outputs.size());
  room.incoming_room = std::make_unique<Tensor[]>(outputs.size());
  room.outputs = room.output_room.get();
  room.incoming = room.incoming_room.get();
  room.output_count = uint32_t(outputs.size());
  std::vector<Object> made;
  for (size_t i = 0; i < outputs.size(); ++i) {
    made.push_back(share(outputs[i]));
    if (!is_tensor(outputs[i])) continue;
    Tensor t = tensor_of(outputs[i]);
    OutputInfo& info = node->outputs[i];
    info = OutputInfo{Shape(t.sizes()), t.dtype(), stated_device(t), true};
    if (among(constant, outputs[i])) continue;
    if (among(dirty, outputs[i])) {
      check(!t.is_view() || outputs.size() == 1, ErrorKind::Runtime, node->name(),
            ": a view can be modified in place only by a Function of one output");
      rebase_history(t, node.get(), uint32_t(i));
      continue;
    }
    if (is_input(t.impl())) {
      t = detached_alias(t);
      made.back() = own(wrap(t));
    }
    // Made while nothing was recorded: a view into an input gets its history from this node, not from its base, which
    // would miss what is written through it.
    t.impl()->base.reset();
    t.impl()->flags = shows_input(t) ? t.impl()->flags | kUntrackedView : uint8_t(t.impl()->flags & ~kUntrackedView);
    set_history(t, node.get(), uint32_t(i));
  }
  if (!node->sequence) take_place(node.get());
  Object tuple = own(PyTuple_New(Py_ssize_t(made.size())));
  // `outputs` keep naming what forward returned: saved tensors are compared with these.
  for (size_t i = 0; i < made.size(); ++i) PyTuple_SET_ITEM(tuple.get(), Py_ssize_t(i), made[i].release());
  attach_saved();
  attach_attributes();
  result = single ? share(PyTuple_GET_ITEM(tuple.get(), 0)) : std::move(tuple);
}

void Call::keep(PyObject* value, Shared name) {
  PyNode::Kept item{std::move(name), {}, false};
  if (value != Py_None) {
    check(is_tensor(value), ErrorKind::Type, "save_for_backward: expected tensors or None, found ",
          Py_TYPE(value)->tp_name);
    const Tensor& t = tensor_of(value);
    const auto found = std::find(outputs.begin(), outputs.end(), value);
    if (is_input(t.impl())) {
      item.tensor.save(t, node.get(), "saved_tensors");
    } else if (found != outputs.end()) {
      item.tensor.save_output(t, uint32_t(found - outputs.begin()));
    } else {
      item.tensor.save(t, node.get(), "saved_tensors");
      item.intermediate = is_differentiable(t.dtype()) && !collect_edge(t).node;
    }
  }
  if (packing) item.tensor.pack();
  node->kept.push_back(std::move(item));
}

void Call::attach_saved() {
  Object saved(PyObject_GetAttrString(ctx.get(), "_to_save"));
  if (!saved) {
    ensure(PyErr_ExceptionMatches(PyExc_AttributeError));  // memory may have been refused
    return PyErr_Clear();
  }
  check(PyTuple_Check(saved.get()), ErrorKind::Type, "Function: ctx._to_save must be a tuple, found ",
        Py_TYPE(saved.get())->tp_name);
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(saved.get()); ++i) {
    PyObject* item = PyTuple_GET_ITEM(saved.get(), i);
    check(item == Py_None || is_tensor(item), ErrorKind::Type,
          "save_for_backward can only save tensors and None, but argument ", i, " is of type ", Py_TYPE(item)->tp_name);
    keep(item, nullptr);
  }
  ensure(PyObject_DelAttrString(ctx.get(), "_to_save") == 0);
}

// Outputs kept as plain attributes would close a cycle through Python, and intermediates would miss their history: both
// move to the node.
void Call::attach_attributes() {
  const Object owner(Py_XNewRef(context_of(ctx.get())->dict));
  PyObject* dict = owner.get();
  if (!dict) return;
  std::vector<std::pair<Object, Object>> found;
  PyObject *key, *value;
  Py_ssize_t at = 0;
  while (PyDict_Next(dict, &at, &key, &value)) {
    if (!is_tensor(value)) continue;
    const TensorImpl* impl = tensor_of(value).impl();
    if (!is_input(impl)) found.emplace_back(share(key), share(value));
  }
  for (auto& [name, tensor] : found) {
    keep(tensor.get(), shared(name.get()));
    ensure(PyDict_DelItem(dict, name.get()) == 0);
  }
}

PyObject* apply(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
  return guarded([&] {
    check(count > 0, ErrorKind::Type, "apply: missing argument 'function'");
    Call call{arguments[0], arguments + 1, count - 1, {}, {}, {}, {}};
    call.prepare();
    call.forward();
    if (!call.node) return call.result.release();
    call.node->ctx = Py_NewRef(call.ctx.get());
    context_of(call.ctx.get())->node = call.node.get();
    call.attach_outputs();
    return call.result.release();
  });
}

/// Zeros for a gradient that did not come, where the Function wants them.
Object gradient(const Tensor& grad, const OutputInfo& info, bool materialize) {
  if (grad.defined() || !materialize || !info.known) return own(wrap(grad));
  return own(wrap(ops::zeros(info.sizes, info.dtype, info.device)));
}

PyObject* poison(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *tensor, *inputs;
    const char* message;
    ensure(PyArg_ParseTuple(args, "OOs", &tensor, &inputs, &message));
    const std::vector<Tensor> ends = tensors_of(inputs, "poison", true);
    DynamicNode* like = new ErrorNode;
    const Ref<Node> holder = Ref<Node>::adopt(like);
    like->reserve(ends.size(), 1);
    collect_edges(like, 0, ends);
    return wrap(with_error(tensor_or_none(tensor, "poison"), like, message));
  });
}

}  // namespace

Tensor with_error(const Tensor& t, const Node* like, std::string message) {
  auto node = make_node<ErrorNode>();
  node->message = std::move(message);
  node->reserve(like->edge_count, 1);
  std::copy(like->edges, like->edges + like->edge_count, node->edges);
  const Tensor out = detached_alias(t);
  set_history(out, node.get());
  return out;
}

PyNode::~PyNode() {
  if (!ctx) return;
  if (!Py_IsInitialized()) {  // programs may still look at it while the interpreter ends
    context_of(ctx)->node = nullptr;
    return;
  }
  Gil gil;
  context_of(ctx)->node = nullptr;
  Py_DECREF(ctx);
}

Tensor PyNode::hand_out(const Kept& item) {
  Tensor t;
  {
    // Programs ask derivatives of what they find in enable_grad blocks of their backward.
    const GradMode recorded(true);
    t = item.tensor.unpack(this, "saved tensor");
  }
  if (!item.intermediate || !thread_state.grad_enabled) return t;
  return with_error(t, this,
                    title +
                        ": a second derivative was asked for through a tensor that forward computed and saved on ctx, "
                        "which is neither an input nor an "
                        "output and so has no history; save inputs or outputs only (return the tensor as one more "
                        "output), or detach() it in backward "
                        "if it does not depend on the inputs");
}

void PyNode::apply(Tensor* grads, Tensor* result) {
  Gil gil;
  UserCode scope;
  const Object function = attribute(ctx, "_function"), backward = attribute(function.get(), "_run_backward");
  const int materialize = PyObject_IsTrue(attribute(ctx, "_materialize").get());
  ensure(materialize >= 0);
  std::vector<Object> owned;
  std::vector<PyObject*> stack{ctx};
  for (size_t i = 0; i < output_count; ++i) {
    owned.push_back(gradient(grads[i], outputs[i], materialize));
    stack.push_back(owned.back().get());
  }
  Object returned =
      own(called_out([&] { return PyObject_Vectorcall(backward.get(), stack.data(), stack.size(), nullptr); }));
  if (!PyTuple_Check(returned.get()) && !PyList_Check(returned.get())) returned = own(PyTuple_Pack(1, returned.get()));
  const Object items = own(PySequence_Fast(returned.get(), "backward"));
  const size_t given = size_t(PySequence_Fast_GET_SIZE(items.get()));
  for (size_t i = 0; i < given; ++i) {
    PyObject* item = PySequence_Fast_GET_ITEM(items.get(), Py_ssize_t(i));
    if (item == Py_None) continue;
    check(i < edge_count, ErrorKind::Runtime, title, " returned an incorrect number of gradients (expected ",
          edge_count, ", as forward has arguments, got ", given, ")");
    check(tensor_argument[i], ErrorKind::Runtime, title, ": backward returned a gradient for argument ", i,
          " of forward, which is no tensor; expected None");
    check(is_tensor(item), ErrorKind::Type, title, ": backward returned ", Py_TYPE(item)->tp_name, " for argument ", i,
          " of forward, expected a Tensor or None");
    result[i] = tensor_of(item);
  }
  check(given >= edge_count, ErrorKind::Runtime, title, " returned an incorrect number of gradients (expected ",
        edge_count, ", as forward has arguments, got ", given, ")");
}

PyMethodDef function_methods[] = {
    {"apply", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(apply)), METH_FASTCALL,
     "apply(function, *arguments): runs forward and records it."},
    {"poison", poison, METH_VARARGS, "poison(tensor, inputs, message): the tensor with a history that raises."},
    {nullptr},
};

bool init_function(PyObject* module) {
  ContextType = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  return ContextType && PyModule_AddObjectRef(module, "Context", reinterpret_cast<PyObject*>(ContextType)) == 0 &&
         PyModule_AddFunctions(module, function_methods) == 0;
}

}  // namespace taeda::autograd::py
