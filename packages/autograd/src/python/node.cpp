// The Python type of graph nodes: name, edges, hooks, metadata, saved tensors.
#include <algorithm>
#include <string>
#include <unordered_map>

#include "python/function.h"
#include "python/objects.h"
#include "taeda/autograd/accumulate.h"
#include "taeda/autograd/saved.h"

namespace taeda::autograd::py {
namespace {

struct PyNodeObject {
  PyObject_HEAD Ref<Node> node;
};
PyTypeObject* NodeType;

/// The type of the nodes of one name, as programs read it that draw graphs: derived from Node, and kept.
PyTypeObject* type_of(const char* name);

Node* of(PyObject* self) { return reinterpret_cast<PyNodeObject*>(self)->node.get(); }

void dealloc(PyObject* self) {
  const Turn turn;
  auto* object = reinterpret_cast<PyNodeObject*>(self);
  if (object->node && object->node->extras && object->node->extras->python == self)
    object->node->extras->python = nullptr;
  object->node.~Ref();
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

PyObject* repr(PyObject* self) {
  return PyUnicode_FromFormat("<%s object at %p>", of(self)->name(), static_cast<void*>(of(self)));
}

PyObject* name(PyObject* self, PyObject*) { return PyUnicode_FromString(of(self)->name()); }

PyObject* sequence_nr(PyObject* self, PyObject*) { return PyLong_FromUnsignedLongLong(of(self)->sequence); }

PyObject* next_functions(PyObject* self, void*) {
  return guarded([&] {
    Node* node = of(self);
    Object edges = own(PyTuple_New(node->edge_count));
    for (size_t i = 0; i < node->edge_count; ++i)
      PyTuple_SET_ITEM(edges.get(), Py_ssize_t(i),
                       own(Py_BuildValue("NI", wrap(node->edges[i].node), node->edges[i].output)).release());
    return edges.release();
  });
}

PyObject* metadata(PyObject* self, void*) {
  return guarded([&] {
    NodeExtras& extras = ensure_extras(of(self));
    if (!extras.metadata) extras.metadata = own(PyDict_New()).release();
    return Py_NewRef(static_cast<PyObject*>(extras.metadata));
  });
}

PyObject* variable(PyObject* self, void*) {
  return guarded([&]() -> PyObject* {
    if (!(of(self)->flags & kAccumulates)) {  // programs ask which nodes have one
      PyErr_Format(PyExc_AttributeError, "variable: only AccumulateGrad nodes have a leaf, found %s", of(self)->name());
      return nullptr;
    }
    return wrap(static_cast<AccumulateGrad*>(of(self))->leaf);
  });
}

Object pack(const Tensor* tensors, size_t count) {
  Object tuple = own(PyTuple_New(Py_ssize_t(count)));
  for (size_t i = 0; i < count; ++i) PyTuple_SET_ITEM(tuple.get(), Py_ssize_t(i), own(wrap(tensors[i])).release());
  return tuple;
}

/// A hook's result in the place of the gradients it was shown: None keeps them.
void take_over(PyObject* result, Tensor* grads, size_t count, const char* who) {
  if (result == Py_None) return;
  if (is_tensor(result) && count == 1) {
    grads[0] = tensor_of(result);
    return;
  }
  const std::vector<Tensor> changed = tensors_of(result, who, true);
  check(changed.size() == count, ErrorKind::Runtime, who, ": the hook returned ", changed.size(),
        " gradients, expected ", count);
  std::copy(changed.begin(), changed.end(), grads);
}

/// The gradients that a call hands to a node, of the shape and dtype of its outputs.
std::vector<Tensor> gradients_for(Node* node, PyObject* args) {
  std::vector<Tensor> grads = tensors_of(args, node->name(), true);
  check(grads.size() == node->output_count, ErrorKind::Type, node->name(), ": got ", grads.size(),
        " gradients, expected ", node->output_count, ", one for each output");
  for (size_t i = 0; i < grads.size(); ++i) {
    const OutputInfo& info = node->outputs[i];
    if (!grads[i].defined()) continue;
    check(!info.known || std::ranges::equal(grads[i].sizes(), info.sizes), ErrorKind::Runtime, node->name(),
          ": gradient ", i, " has shape ", shape_text(grads[i].sizes()), ", expected ", shape_text(info.sizes));
    grads[i] = fit_gradient(std::move(grads[i]), info, node->name(), i);
  }
  return grads;
}

/// `node(*grads)`: the gradients of the inputs from those of the outputs. Hooks do not run, and nothing is freed.
PyObject* call(PyObject* self, PyObject* args, PyObject* keywords) {
  return guarded([&] {
    Node* node = of(self);
    check(!keywords || PyDict_GET_SIZE(keywords) == 0, ErrorKind::Type, node->name(), ": takes no keywords");
    std::vector<Tensor> grads = gradients_for(node, args), results(node->edge_count);
    const bool any = std::ranges::any_of(grads, [](const Tensor& grad) { return grad.defined(); });
    if (any || (node->flags & (kPython | kAccumulates))) node->apply(grads.data(), results.data());
    return results.size() == 1 ? wrap(results[0]) : pack(results.data(), results.size()).release();
  });
}

PyObject* register_prehook(PyObject* self, PyObject* hook) {
  return guarded([&] {
    const uint64_t id = add_node_hook(
        of(self),
        [call = shared(hook)](Node*, Tensor* grads, size_t count) {
          Gil gil;
          const Object given = pack(grads, count);
          take_over(own(called_out([&] { return PyObject_CallOneArg(call.get(), given.get()); })).get(), grads, count,
                    "register_prehook");
        },
        hook);
    return PyLong_FromUnsignedLongLong(id);
  });
}

PyObject* register_hook(PyObject* self, PyObject* hook) {
  return guarded([&] {
    const uint64_t id = add_post_hook(
        of(self),
        [call = shared(hook)](Node*, Tensor* results, size_t result_count, Tensor* grads, size_t grad_count) {
          Gil gil;
          const Object inputs = pack(results, result_count), outputs = pack(grads, grad_count);
          const Object answer = own(called_out(
              [&] { return PyObject_CallFunctionObjArgs(call.get(), inputs.get(), outputs.get(), nullptr); }));
          take_over(answer.get(), results, result_count, "register_hook");
        },
        hook);
    return PyLong_FromUnsignedLongLong(id);
  });
}

PyObject* drop_hook(PyObject* self, PyObject* id) {
  const uint64_t number = PyLong_AsUnsignedLongLong(id);
  if (PyErr_Occurred()) return nullptr;
  const Turn turn;
  remove_hook(of(self), number);
  Py_RETURN_NONE;
}

/// `_saved_<name>`: the saved tensor of that name, checked as in backward; a tuple where there are several.
PyObject* saved_attribute(Node* node, const char* wanted) {
  struct Finder final : SavedVisitor {
    const char* wanted;
    Node* node;
    std::vector<Tensor> found;
    void operator()(const char* name, SavedTensor& saved) override {
      if (std::string_view(name) == wanted) found.push_back(saved.unpack(node, name));
    }
  } finder;
  finder.wanted = wanted;
  finder.node = node;
  node->each_saved(finder);
  if (finder.found.size() == 1) return wrap(finder.found[0]);
  if (!finder.found.empty()) return pack(finder.found.data(), finder.found.size()).release();
  return PyErr_Format(PyExc_AttributeError, "%s has no saved tensor '%s'", node->name(), wanted);
}

/// The saved tensors of a name, none of them unpacked.
std::vector<SavedTensor*> saved_of(Node* node, std::string_view wanted) {
  struct Finder final : SavedVisitor {
    std::string_view wanted;
    std::vector<SavedTensor*> found;
    void operator()(const char* name, SavedTensor& saved) override {
      if (wanted == name) found.push_back(&saved);
    }
  } finder;
  finder.wanted = wanted;
  node->each_saved(finder);
  return std::move(finder.found);
}

/// `_raw_saved_<name>`: graph.SavedTensor; a tuple where there are several.
PyObject* raw_saved_attribute(PyObject* self, const char* wanted) {
  const size_t count = saved_of(of(self), wanted).size();
  if (!count) return PyErr_Format(PyExc_AttributeError, "%s has no saved tensor '%s'", of(self)->name(), wanted);
  const Object graph = own(PyImport_ImportModule("taeda_autograd.graph"));
  const auto made = [&](size_t i) { return PyObject_CallMethod(graph.get(), "SavedTensor", "Osn", self, wanted, i); };
  if (count == 1) return made(0);
  Object all = own(PyTuple_New(Py_ssize_t(count)));
  for (size_t i = 0; i < count; ++i) PyTuple_SET_ITEM(all.get(), Py_ssize_t(i), own(made(i)).release());
  return all.release();
}

/// _hook_saved(name, number, pack, unpack): packs what is saved by hooks of its own.
PyObject* hook_saved(PyObject* self, PyObject* args) {
  const char* wanted;
  Py_ssize_t number;
  PyObject *pack, *unpack;
  if (!PyArg_ParseTuple(args, "snOO", &wanted, &number, &pack, &unpack)) return nullptr;
  return guarded([&]() -> PyObject* {
    const auto found = saved_of(of(self), wanted);
    check(size_t(number) < found.size(), ErrorKind::Runtime, "register_hooks: the saved tensor '", wanted,
          "' has been freed");
    SavedTensor& saved = *found[size_t(number)];
    check(saved.defined(), ErrorKind::Runtime, "register_hooks: the saved tensor '", wanted, "' of ", of(self)->name(),
          " is None or has been freed");
    check(!saved.packed_edge(), ErrorKind::Runtime, "register_hooks: the saved tensor '", wanted, "' of ",
          of(self)->name(), " has hooks already");
    pack_saved(saved, pack, unpack);
    Py_RETURN_NONE;
  });
}

/// What a node of its kind has, and `_saved_<name>` of what this one saved.
PyObject* dir(PyObject* self, PyObject*) {
  return guarded([&] {
    Object names = own(PyObject_CallMethod(reinterpret_cast<PyObject*>(&PyBaseObject_Type), "__dir__", "O", self));
    struct Namer final : SavedVisitor {
      PyObject* names;
      const char* last = "";
      void operator()(const char* name, SavedTensor& saved) override {
        if (!saved.defined() || std::string_view(name) == last) return;
        last = name;
        for (const char* form : {"_saved_%s", "_raw_saved_%s"})
          ensure(PyList_Append(names, own(PyUnicode_FromFormat(form, name)).get()) == 0);
      }
    } namer;
    namer.names = names.get();
    of(self)->each_saved(namer);
    return names.release();
  });
}

PyObject* getattro(PyObject* self, PyObject* key) {
  PyObject* found = PyObject_GenericGetAttr(self, key);
  if (found || !PyErr_ExceptionMatches(PyExc_AttributeError)) return found;
  const char* text = PyUnicode_AsUTF8(key);
  if (text && std::string_view(text).starts_with("_saved_")) {
    PyErr_Clear();
    return guarded([&] { return saved_attribute(of(self), text + 7); });
  }
  if (text && std::string_view(text).starts_with("_raw_saved_")) {
    PyErr_Clear();
    return guarded([&] { return raw_saved_attribute(self, text + 11); });
  }
  if (!(of(self)->flags & kPython)) return nullptr;
  PyErr_Clear();
  return PyObject_GetAttr(static_cast<PyNode*>(of(self))->ctx, key);
}

/// What a node has no place for is kept by the ctx of its Function.
int setattro(PyObject* self, PyObject* key, PyObject* value) {
  PyObject* type = reinterpret_cast<PyObject*>(Py_TYPE(self));
  if (!(of(self)->flags & kPython) || PyObject_HasAttr(type, key)) return PyObject_GenericSetAttr(self, key, value);
  return PyObject_SetAttr(static_cast<PyNode*>(of(self))->ctx, key, value);
}

PyObject* richcompare(PyObject* a, PyObject* b, int op) {
  if ((op != Py_EQ && op != Py_NE) || !PyObject_TypeCheck(b, NodeType)) Py_RETURN_NOTIMPLEMENTED;
  return PyBool_FromLong((of(a) == of(b)) == (op == Py_EQ));
}
Py_hash_t hash(PyObject* self) { return Py_hash_t(reinterpret_cast<uintptr_t>(of(self)) >> 4); }

PyMethodDef methods[] = {
    {"name", name, METH_NOARGS, "Name of the operation."},
    {"_sequence_nr", sequence_nr, METH_NOARGS, "Place in the order of recording."},
    {"_register_prehook", register_prehook, METH_O, "Adds a hook on the gradients that come in; returns its number."},
    {"_register_hook", register_hook, METH_O, "Adds a hook on the gradients that go out; returns its number."},
    {"_remove_hook", drop_hook, METH_O, "Removes a hook by its number."},
    {"_hook_saved", hook_saved, METH_VARARGS, "Packs one saved tensor by hooks of its own."},
    {"__dir__", dir, METH_NOARGS, "Names of its attributes, `_saved_` ones among them."},
    {nullptr},
};
PyGetSetDef attributes[] = {
    {"next_functions", next_functions, nullptr, "Nodes that the gradients go to, each with the number of its output.",
     nullptr},
    {"metadata", metadata, nullptr, "A dict for notes of the user's.", nullptr},
    {"variable", variable, nullptr, "The leaf of an AccumulateGrad node.", nullptr},
    {nullptr},
};
PyType_Slot slots[] = {
    {Py_tp_dealloc, reinterpret_cast<void*>(dealloc)},
    {Py_tp_repr, reinterpret_cast<void*>(repr)},
    {Py_tp_getattro, reinterpret_cast<void*>(getattro)},
    {Py_tp_setattro, reinterpret_cast<void*>(setattro)},
    {Py_tp_richcompare, reinterpret_cast<void*>(richcompare)},
    {Py_tp_hash, reinterpret_cast<void*>(hash)},
    {Py_tp_call, reinterpret_cast<void*>(call)},
    {Py_tp_methods, methods},
    {Py_tp_getset, attributes},
    {Py_tp_doc, const_cast<char*>("A recorded operation of the graph.")},
    {0, nullptr},
};
PyType_Spec spec = {"taeda_autograd._C.Node", sizeof(PyNodeObject), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};

/// The type of all nodes of one name, which is the type's name: programs that draw graphs show it.
PyTypeObject* type_of(const char* name) {
  struct Named {
    std::string full;
    PyTypeObject* type = nullptr;
  };
  static auto& known = *new std::unordered_map<std::string, Named>;  // not destroyed: objects outlive static ones
  const auto [found, added] = known.try_emplace(name);
  Named& named = found->second;
  if (named.type) return named.type;
  named.full = std::string("taeda_autograd._C.") + name;
  PyType_Slot none[] = {{0, nullptr}};
  PyType_Spec derived = {named.full.c_str(), sizeof(PyNodeObject), 0,
                         Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, none};
  // Only here may types be derived from Node: an instance without a node would not be safe.
  NodeType->tp_flags |= Py_TPFLAGS_BASETYPE;
  const Object bases = own(PyTuple_Pack(1, NodeType));
  named.type = reinterpret_cast<PyTypeObject*>(PyType_FromSpecWithBases(&derived, bases.get()));
  NodeType->tp_flags &= ~Py_TPFLAGS_BASETYPE;
  if (!named.type) {
    known.erase(found);
    raise();
  }
  return named.type;
}

}  // namespace

PyObject* wrap(const Ref<Node>& node) {
  if (!node) Py_RETURN_NONE;
  NodeExtras& extras = ensure_extras(node.get());
  if (PyObject* known = share_living(extras.python)) return known;
  auto* object = PyObject_New(PyNodeObject, type_of(node->name()));
  if (!object) raise();
  new (&object->node) Ref<Node>(node);
  let_be_shared(reinterpret_cast<PyObject*>(object));
  extras.python = object;
  return reinterpret_cast<PyObject*>(object);
}

Ref<Node> node_of(PyObject* o) {
  check(PyObject_TypeCheck(o, NodeType), ErrorKind::Type, "expected a graph node, found ", Py_TYPE(o)->tp_name);
  return reinterpret_cast<PyNodeObject*>(o)->node;
}

bool init_node(PyObject* module) {
  NodeType = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  return NodeType && PyModule_AddObjectRef(module, "Node", reinterpret_cast<PyObject*>(NodeType)) == 0;
}

}  // namespace taeda::autograd::py
