// The extension module: backward, hooks, switches, and the functions that tensor-core calls.
#include <algorithm>
#include <unordered_set>

#include "python/objects.h"
#include "taeda/autograd/directions.h"
#include "taeda/autograd/accumulate.h"
#include "taeda/autograd/anomaly.h"
#include "taeda/autograd/cycles.h"
#include "taeda/autograd_api.h"

namespace taeda::autograd::py {
namespace {

/// Tensors and GradientEdges.
std::vector<Place> places_of(PyObject* sequence, const char* what) {
  const Object items = own(PySequence_Fast(sequence, "expected a sequence of tensors"));
  std::vector<Place> places;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.get()); ++i) {
    const Object item = share(PySequence_Fast_GET_ITEM(items.get(), i));
    if (PyTuple_Check(item.get()) && PyTuple_GET_SIZE(item.get()) == 2) {
      const Ref<Node> node = node_of(PyTuple_GET_ITEM(item.get(), 0));
      const unsigned long output = PyLong_AsUnsignedLong(PyTuple_GET_ITEM(item.get(), 1));
      ensure(!PyErr_Occurred());
      if (output >= node->output_count)
        fail(ErrorKind::Index, what, ": item ", i, " names output ", output, " of ", node->name(), ", which has ",
             node->output_count);
      places.push_back({Tensor(), {node, uint32_t(output)}});
      continue;
    }
    if (item.get() == Py_None) fail(ErrorKind::Type, what, ": item ", i, " is None, expected a Tensor");
    places.push_back({tensor_or_none(item.get(), what), {}});
  }
  return places;
}

/// run_backward(tensors, grads, retain_graph, create_graph, inputs, collect, allow_unused)
PyObject* backward(PyObject*, PyObject* const* args, Py_ssize_t count) {
  return guarded([&]() -> PyObject* {
    check(count == 7, ErrorKind::Type, "run_backward: expected 7 arguments, got ", count);
    const std::vector<Place> roots = places_of(args[0], "backward: argument 'tensors'");
    const std::vector<Tensor> grads = tensors_of(args[1], "backward: argument 'grad_tensors'", true);
    const std::vector<Place> inputs = places_of(args[4], "backward: argument 'inputs'");
    check(grads.empty() || grads.size() == roots.size(), ErrorKind::Runtime, "backward: got ", roots.size(),
          " tensors and ", grads.size(), " gradients, expected as many");
    RunOptions options;
    options.retain_graph = args[2] == Py_True;
    options.create_graph = args[3] == Py_True;
    options.inputs = inputs;
    options.collect = args[5] == Py_True;
    options.allow_unused = args[6] == Py_True;
    const std::vector<Tensor> results = run_backward(roots, grads, options);
    if (!options.collect) Py_RETURN_NONE;
    Object tuple = own(PyTuple_New(Py_ssize_t(results.size())));
    for (size_t i = 0; i < results.size(); ++i)
      PyTuple_SET_ITEM(tuple.get(), Py_ssize_t(i), own(wrap(results[i])).release());
    return tuple.release();
  });
}

const Tensor& tensor_argument(PyObject* o, const char* op) {
  check(is_tensor(o), ErrorKind::Type, op, ": expected a Tensor, found ", Py_TYPE(o)->tp_name);
  return tensor_of(o);
}

/// A hook may name its tensor: from now on the garbage collector has to look at the wrapper.
void show_to_collector(PyObject* tensor) noexcept {
  if (!PyObject_GC_IsTracked(tensor)) PyObject_GC_Track(tensor);
}

PyObject* register_hook(PyObject*, PyObject* const* args, Py_ssize_t count) {
  return guarded([&] {
    check(count == 2, ErrorKind::Type, "register_hook: expected a tensor and a hook");
    const uint64_t id = add_tensor_hook(tensor_argument(args[0], "register_hook"), tensor_hook(args[1]), args[1]);
    show_to_collector(args[0]);
    return PyLong_FromUnsignedLongLong(id);
  });
}
PyObject* register_leaf_hook(PyObject*, PyObject* const* args, Py_ssize_t count) {
  return guarded([&] {
    check(count == 2, ErrorKind::Type, "register_post_accumulate_grad_hook: expected a tensor and a hook");
    const uint64_t id = add_leaf_hook(
        tensor_argument(args[0], "register_post_accumulate_grad_hook"),
        [call = shared(args[1])](const Tensor& leaf) {
          Gil gil;
          const Object given = own(wrap(leaf));
          const Object result = own(called_out([&] { return PyObject_CallOneArg(call.get(), given.get()); }));
          // Methods in place give the tensor itself.
          check(result.get() == Py_None || result.get() == given.get(), ErrorKind::Runtime,
                "register_post_accumulate_grad_hook: hooks should return None, found ", Py_TYPE(result.get())->tp_name);
        },
        args[1]);
    show_to_collector(args[0]);
    return PyLong_FromUnsignedLongLong(id);
  });
}
PyObject* drop_hook(PyObject*, PyObject* const* args, Py_ssize_t count) {
  return guarded([&]() -> PyObject* {
    check(count == 2, ErrorKind::Type, "remove_hook: expected a tensor and a number");
    const uint64_t id = PyLong_AsUnsignedLongLong(args[1]);
    ensure(!PyErr_Occurred());
    remove_hook(tensor_argument(args[0], "remove_hook"), id);
    Py_RETURN_NONE;
  });
}
PyObject* tensor_hooks(PyObject*, PyObject* self) {
  return guarded([&]() -> PyObject* {
    std::vector<std::pair<uint64_t, Object>> hooks;
    for (const auto& [id, hook] : python_hooks(tensor_argument(self, "_backward_hooks")))
      hooks.emplace_back(id, share(static_cast<PyObject*>(hook)));
    Object list = own(PyList_New(0));
    for (const auto& [id, hook] : hooks) {
      const Object item = own(Py_BuildValue("KO", static_cast<unsigned long long>(id), hook.get()));
      ensure(PyList_Append(list.get(), item.get()) == 0);
    }
    return list.release();
  });
}
PyObject* keep_grad(PyObject*, PyObject* self) {
  return guarded([&]() -> PyObject* {
    retain_grad(tensor_argument(self, "retain_grad"));
    Py_RETURN_NONE;
  });
}
PyObject* keeps_grad(PyObject*, PyObject* self) {
  return guarded([&] { return PyBool_FromLong(retains_grad(tensor_argument(self, "retains_grad"))); });
}
PyObject* grad_edge(PyObject*, PyObject* self) {
  return guarded([&] {
    const Edge edge = collect_edge(tensor_argument(self, "get_gradient_edge"));
    if (!edge.node) [[unlikely]]
      fail(ErrorKind::Runtime, "get_gradient_edge: the tensor (", describe(tensor_of(self)),
           ") does not require gradients");
    return Py_BuildValue("NI", wrap(edge.node), edge.output);
  });
}
/// Cuts the tensor off its history.
PyObject* detach_inplace(PyObject*, PyObject* self) {
  return guarded([&]() -> PyObject* {
    const Tensor& t = tensor_argument(self, "detach_");
    if (t.is_view()) [[unlikely]]
      fail(ErrorKind::Runtime, "detach_: the tensor (", describe(t),
           ") is a view; use detach() to get a tensor without history");
    if (AutogradMeta* meta = meta_of(t)) {
      forget_retained(*meta);
      meta->grad_fn.reset();
      meta->output = 0;
      if (meta->watch) path_cut(*meta);
    }
    t.impl()->flags &= uint8_t(~kRequiresGrad);
    t.impl()->keys = t.impl()->keys.without(Layer::Autograd);
    return Py_NewRef(self);
  });
}

PyObject* add_callback(PyObject*, PyObject* function) {
  return guarded([&]() -> PyObject* {
    check(PyCallable_Check(function), ErrorKind::Type, "queue_callback: argument 'callback' must be callable, found ",
          Py_TYPE(function)->tp_name);
    queue_callback([call = shared(function)] {
      Gil gil;
      own(PyObject_CallNoArgs(call.get()));
    });
    Py_RETURN_NONE;
  });
}
PyObject* run_number(PyObject*, PyObject*) { return PyLong_FromUnsignedLongLong(current_run()); }

PyObject* bump_version(PyObject*, PyObject* self) {
  return guarded([&]() -> PyObject* {
    const Tensor& t = tensor_argument(self, "increment_version");
    if (t.impl()->flags & kInference) [[unlikely]]
      fail(ErrorKind::Runtime, "increment_version: the tensor (", describe(t),
           ") was made under inference_mode, which counts no versions");
    t.bump_version(0);
    Py_RETURN_NONE;
  });
}

const Tensor& leaf_argument(PyObject* self) {
  const Tensor& t = tensor_argument(self, "grad_dtype");
  check(!grad_fn_of(t), ErrorKind::Runtime, "grad_dtype: grad_dtype can only be accessed on leaf tensors");
  return t;
}
/// An empty tensor of the dtype that gradients of a leaf have; None for any.
PyObject* grad_dtype(PyObject*, PyObject* self) {
  return guarded([&]() -> PyObject* {
    const Tensor& t = leaf_argument(self);
    const AutogradMeta* meta = meta_of(t);
    if (meta && meta->any_grad_dtype) Py_RETURN_NONE;
    return wrap(empty(Shape{0}, meta && meta->grad_dtype ? *meta->grad_dtype : t.dtype(), Device{}));
  });
}
/// set_grad_dtype(leaf, an empty tensor of the dtype or None for any)
PyObject* set_grad_dtype(PyObject*, PyObject* args) {
  PyObject *self, *like;
  if (!PyArg_ParseTuple(args, "OO", &self, &like)) return nullptr;
  return guarded([&]() -> PyObject* {
    const Tensor& t = leaf_argument(self);
    const Tensor held = grad_of(t);
    if (like != Py_None && held.defined()) {
      const DType wanted = tensor_argument(like, "grad_dtype").dtype();
      check(held.dtype() == wanted, ErrorKind::Runtime, "grad_dtype: 'grad' has dtype ", name(held.dtype()),
            " already, expected ", name(wanted), "; set it to None first");
    }
    AutogradMeta& meta = ensure_meta(t.impl());
    meta.any_grad_dtype = like == Py_None;
    meta.grad_dtype.reset();
    if (like != Py_None) meta.grad_dtype = tensor_argument(like, "grad_dtype").dtype();
    Py_RETURN_NONE;
  });
}

/// set_anomaly(enabled, check_nan) -> the two values before
PyObject* set_anomaly(PyObject*, PyObject* args) {
  int enabled, check_nan;
  if (!PyArg_ParseTuple(args, "pp", &enabled, &check_nan)) return nullptr;
  PyObject* before = Py_BuildValue("NN", PyBool_FromLong(anomaly_enabled), PyBool_FromLong(anomaly_checks_nan));
  anomaly_enabled = enabled;
  anomaly_checks_nan = check_nan;
  return before;
}
PyObject* is_anomaly_enabled(PyObject*, PyObject*) { return PyBool_FromLong(anomaly_enabled); }

// --- what tensor-core asks ---

void set_grad(const Tensor& self, const Tensor& grad) {
  if (!grad.defined()) return replace_grad(self, Tensor());
  check(!grad.same(self), ErrorKind::Runtime, "grad: a tensor cannot be its own gradient");
  check(std::equal(grad.sizes().begin(), grad.sizes().end(), self.sizes().begin(), self.sizes().end()),
        ErrorKind::Runtime, "grad: expected a tensor of shape ", shape_text(self.sizes()), ", found ",
        shape_text(grad.sizes()));
  const AutogradMeta* meta = meta_of(self);
  const DType wanted = meta && meta->grad_dtype ? *meta->grad_dtype : self.dtype();
  check(grad.dtype() == wanted || (meta && meta->any_grad_dtype), ErrorKind::Runtime,
        "grad: expected a tensor of dtype ", name(wanted), ", found ", name(grad.dtype()));
  // The instance of a dispatching class, as a sparse gradient is, says itself where it is; its memory is nowhere.
  if (grad.device() != stated_device(self) && !is_wrapper(grad)) [[unlikely]]
    fail(ErrorKind::Runtime, "grad: expected a tensor on ", to_string(stated_device(self)), ", found ",
         to_string(grad.device()));
  replace_grad(self, grad);
}

void fill_api() {
  autograd_api.set_requires_grad = [](const Tensor& self, bool value) { set_requires_grad(self, value); };
  autograd_api.grad = grad_of;
  autograd_api.set_grad = set_grad;
  autograd_api.is_leaf = [](const Tensor& self) { return !shown_grad_fn(self); };
  autograd_api.grad_fn = [](const Tensor& self) -> void* { return wrap(shown_grad_fn(self)); };
  autograd_api.refresh = [](const Tensor& view) { grad_fn_of(view); };
  autograd_api.visit_hooks = visit_hooks;
  autograd_api.drop_hooks = drop_hooks;
  autograd_api.orphaned = collect_cycle;
  autograd_api.moved_home = moved_home;
  autograd_api.tracked = [](const Tensor& self) { return tracked(self); };
  autograd_api.retains_grad = [](const Tensor& self) { return retains_grad(self); };
  autograd_api.of_directions = of_directions;
  autograd_api.data_set = [](const Tensor& self, uint32_t before) {
    if (self.version() == before) return;
    AutogradMeta& meta = ensure_meta(self.impl());
    meta.data_before = before;
    meta.data_after = self.version();
  };
  release_python_object = [](void* object) noexcept {
    if (!Py_IsInitialized()) return;
    Gil gil;
    Py_DECREF(static_cast<PyObject*>(object));
  };
}

/// reaches_beyond(tensors, leaves): whether the graph of the tensors ends at any other leaf than these.
PyObject* reaches_beyond(PyObject*, PyObject* const* args, Py_ssize_t count) {
  return guarded([&]() -> PyObject* {
    check(count == 2, ErrorKind::Type, "reaches_beyond: expected 2 arguments, got ", count);
    const std::vector<Tensor> own = tensors_of(args[1], "reaches_beyond: argument 'leaves'", false);
    const auto is_own = [&](const Tensor& leaf) {
      return std::ranges::any_of(own, [&](const Tensor& t) { return t.impl() == leaf.impl(); });
    };
    std::vector<Ref<Node>> waiting;
    for (const Tensor& t : tensors_of(args[0], "reaches_beyond: argument 'tensors'", false)) {
      if (Ref<Node> node = grad_fn_of(t)) waiting.push_back(std::move(node));
      else if (t.requires_grad() && !is_own(t)) Py_RETURN_TRUE;
    }
    std::unordered_set<Node*> seen;  // kept by the first ones
    const std::vector<Ref<Node>> kept = waiting;
    while (!waiting.empty()) {
      const Ref<Node> node = std::move(waiting.back());
      waiting.pop_back();
      if ((node->flags & kAccumulates) && !is_own(static_cast<AccumulateGrad*>(node.get())->leaf)) Py_RETURN_TRUE;
      for (uint32_t i = 0; i < node->edge_count; ++i)
        if (Node* const next = node->edges[i].node.get(); next && seen.insert(next).second)
          waiting.push_back(node->edges[i].node);
    }
    Py_RETURN_FALSE;
  });
}

/// Whether calls with a tensor are recorded, for gradients or for tangents.
PyObject* is_recorded(PyObject*, PyObject* self) {
  return guarded([&] { return PyBool_FromLong(tracked(tensor_argument(self, "is_recorded"))); });
}
/// Whether a tensor is the result of a recorded call.
PyObject* has_history(PyObject*, PyObject* self) {
  return guarded([&] { return PyBool_FromLong(grad_fn_of(tensor_argument(self, "has_history")) != nullptr); });
}
PyObject* begin(PyObject*, PyObject* self) {
  return guarded([&]() -> PyObject* {
    begin_directions(tensor_argument(self, "begin_directions"));
    Py_RETURN_NONE;
  });
}

PyObject* count_searched(PyObject*, PyObject*) { return PyLong_FromUnsignedLongLong(searched_objects()); }

PyCFunction fast(PyObject* (*f)(PyObject*, PyObject* const*, Py_ssize_t)) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(f));
}

PyMethodDef methods[] = {
    {"run_backward", fast(backward), METH_FASTCALL, "Runs the graph backwards."},
    {"register_hook", fast(register_hook), METH_FASTCALL, "Adds a hook on a tensor's gradient; returns its number."},
    {"register_leaf_hook", fast(register_leaf_hook), METH_FASTCALL,
     "Adds a hook run after a leaf's gradient was accumulated; returns its number."},
    {"remove_hook", fast(drop_hook), METH_FASTCALL, "Removes a hook by its number."},
    {"tensor_hooks", tensor_hooks, METH_O, "The hooks on a tensor's gradient with their numbers, in order."},
    {"retain_grad", keep_grad, METH_O, "Keeps the gradient of a tensor that is no leaf."},
    {"retains_grad", keeps_grad, METH_O, "Whether retain_grad was called."},
    {"gradient_edge", grad_edge, METH_O, "The node and output number that a tensor's gradient goes to."},
    {"detach_", detach_inplace, METH_O, "Cuts the tensor off its history."},
    {"grad_dtype", grad_dtype, METH_O, "An empty tensor of the dtype that gradients of a leaf have, or None."},
    {"set_grad_dtype", set_grad_dtype, METH_VARARGS, "Gives gradients of a leaf a dtype."},
    {"queue_callback", add_callback, METH_O, "Calls a function at the end of the backward that is running."},
    {"current_run", run_number, METH_NOARGS, "Number of the backward that this thread is in; 0 for none."},
    {"reaches_beyond", fast(reaches_beyond), METH_FASTCALL,
     "Whether the graph of tensors ends at any other leaf than these."},
    {"is_recorded", is_recorded, METH_O, "Whether calls with a tensor are recorded, for gradients or tangents."},
    {"has_history", has_history, METH_O, "Whether a tensor is the result of a recorded call."},
    {"begin_directions", begin, METH_O, "Says that a tensor's history begins with its tangent."},
    {"increment_version", bump_version, METH_O, "Counts a write in place."},
    {"set_anomaly", set_anomaly, METH_VARARGS, "Switches anomaly mode; returns the switches before."},
    {"is_anomaly_enabled", is_anomaly_enabled, METH_NOARGS, "Whether anomaly mode is on."},
    {"searched_objects", count_searched, METH_NOARGS, "How many objects the searches for rings have looked at."},
    {nullptr},
};
PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_C", "The graph engine and the derivative layer.", -1, methods};

}  // namespace
}  // namespace taeda::autograd::py

PyMODINIT_FUNC PyInit__C() {
  using namespace taeda::autograd::py;
  if (!taeda::python_api.wrap) {
    PyErr_SetString(PyExc_ImportError, "taeda_autograd needs taeda_tensor_core to be imported before its extension");
    return nullptr;
  }
  PyObject* module = PyModule_Create(&definition);
  if (!module) return nullptr;
  if (!init_node(module) || !init_function(module) || !init_saved_hooks(module)) {
    Py_DECREF(module);
    return nullptr;
  }
  init_anomaly();
  fill_api();
  taeda::needs_no_lock(module);
  return module;
}
