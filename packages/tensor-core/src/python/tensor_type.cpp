// The Tensor type: life and death of wrappers, subclasses, the type object. See Note [Identity of wrappers].
#include <Python.h>
#include <structmember.h>

#include <cstddef>
#include <cstring>
#include <optional>

#include "python/bindings.h"
#include "python/internal.h"
#include "python/library.h"
#include "python/override.h"
#include "taeda/autograd_api.h"
#include "taeda/levels.h"

namespace taeda::py {

PyTypeObject* TensorType = nullptr;

namespace {

// Wrappers of exact type Tensor are reused: a free one keeps its (untracked) collector header.
constexpr int kFreeLimit = 512;
PyTensor* free_wrappers[kFreeLimit];
int free_count = 0;

PyTensor* cast(PyObject* o) { return reinterpret_cast<PyTensor*>(o); }

void dealloc(PyObject* self);

/// Python's own dealloc of heap subclasses cannot turn ownership round, so subclasses get ours with their first
/// instance.
PyTensor* allocate_subclass(PyTypeObject* type) {
  if (type->tp_dealloc != dealloc) type->tp_dealloc = dealloc;
  return reinterpret_cast<PyTensor*>(type->tp_alloc(type, 0));
}

PyTensor* allocate() {
  PyTensor* wrapper;
  if (free_count) [[likely]] {
    wrapper = free_wrappers[--free_count];
    PyObject_Init(reinterpret_cast<PyObject*>(wrapper), TensorType);
  } else {
    wrapper = PyObject_GC_New(PyTensor, TensorType);
    if (!wrapper) return nullptr;
  }
  wrapper->dict = nullptr;
  wrapper->weakrefs = nullptr;
  return wrapper;
}

/// Turns ownership round when C++ still holds the impl; true when the wrapper lives on.
bool resurrect(PyObject* self, TensorImpl* impl) {
  if (impl->use_count() == 1) return false;
  impl->flags |= kOwnsPython;
  Py_SET_REFCNT(self, 1);
  if (!impl->drop()) return true;
  // Another thread let go in between: this was the last owner after all.
  impl->refs.store(1);
  impl->flags &= uint8_t(~kOwnsPython);
  Py_SET_REFCNT(self, 0);
  return false;
}

/// Looks for rings that keep the impl of a dying wrapper; true when somebody took the wrapper up meanwhile.
bool saved_by_search(PyObject* self, TensorImpl* impl) {
  Py_SET_REFCNT(self, 1);  // what dies in the search may look at it
  autograd_api.orphaned(impl);
  Py_SET_REFCNT(self, Py_REFCNT(self) - 1);
  return Py_REFCNT(self) != 0;
}

/// Calls `visit(offset)` for each of the `__slots__` of a subclass.
template <class Visit>
void each_slot(PyTypeObject* type, const Visit& visit) {
  for (; type != TensorType; type = type->tp_base) {
    if (!(type->tp_flags & Py_TPFLAGS_HEAPTYPE) || !type->tp_members) continue;
    for (PyMemberDef* member = type->tp_members; member->name; ++member)
      if (member->type == T_OBJECT_EX && !(member->flags & READONLY)) visit(member->offset);
  }
}
PyObject*& slot_at(void* self, Py_ssize_t offset) {
  return *reinterpret_cast<PyObject**>(static_cast<char*>(self) + offset);
}
void clear_slots(PyTypeObject* type, PyObject* self) {
  each_slot(type, [&](Py_ssize_t offset) { Py_CLEAR(slot_at(self, offset)); });
}

/// Another instance of the class, with the same attributes.
Tensor alias_of_wrapper(const Tensor& self) {
  Tensor shown = bare_alias(self);
  const Gil gil;
  auto* from = static_cast<PyTensor*>(self.impl()->python);
  if (!from) return shown;
  PyTypeObject* type = Py_TYPE(from);
  const Object made = own(wrap_fresh(Tensor(shown), type));
  if (from->dict) cast(made.get())->dict = own(PyDict_Copy(from->dict)).release();
  each_slot(type, [&](Py_ssize_t offset) { slot_at(made.get(), offset) = Py_XNewRef(slot_at(from, offset)); });
  return shown;
}

Scalar item_of_wrapper(const Tensor& self) {
  const Gil gil;
  return scalar_of(self, "item");
}

Device device_of_wrapper(const Tensor& self) {
  const Gil gil;
  auto* known = static_cast<PyObject*>(self.impl()->python);
  return known ? shown_device(known) : self.device();
}

/// The part of dying that plain wrappers do not need; false when the wrapper lives on.
bool end_stateful(PyObject* self) {
  TensorImpl* impl = cast(self)->tensor.impl();
  if (impl && impl->grad && autograd_api.orphaned && impl->use_count() > 1 && saved_by_search(self, impl)) return false;
  if (impl && resurrect(self, impl)) return false;
  PyTypeObject* type = Py_TYPE(self);
  if (type->tp_finalize && PyObject_CallFinalizerFromDealloc(self) < 0) return false;
  if (PyObject_GC_IsTracked(self)) PyObject_GC_UnTrack(self);
  if (cast(self)->weakrefs) PyObject_ClearWeakRefs(self);
  clear_slots(type, self);
  Py_CLEAR(cast(self)->dict);
  return true;
}

void dealloc(PyObject* self) {
  const Turn turn;
  PyTensor* wrapper = cast(self);
  PyTypeObject* type = Py_TYPE(self);
  if (type != TensorType || wrapper->dict || wrapper->weakrefs) [[unlikely]]
    if (!end_stateful(self)) return;
  if (PyObject_GC_IsTracked(self)) PyObject_GC_UnTrack(self);  // a wrapper whose tensor has hooks
  if (TensorImpl* impl = wrapper->tensor.impl()) {
    impl->python = nullptr;
    if (impl->grad && autograd_api.orphaned && impl->use_count() > 1) autograd_api.orphaned(impl);
  }
  wrapper->tensor.~Tensor();
  if (type == TensorType && free_count < kFreeLimit) free_wrappers[free_count++] = wrapper;
  else type->tp_free(self);
  Py_DECREF(type);
}

/// An impl dies that owns its wrapper. Somebody may have reached the wrapper through a weak reference or its finalizer
/// may look at it: it takes all that the impl had along, into an impl of its own. While the interpreter ends its last
/// collections and finalizers may still look at it, but it is no longer known who holds the lock: there it stays.
void release_wrapper(void* owned) noexcept {
  PyTensor* wrapper = static_cast<PyTensor*>(owned);
  std::optional<Gil> gil;
  if (Py_IsInitialized()) gil.emplace();
  TensorImpl* dying = wrapper->tensor.ref().release();
#ifndef Py_GIL_DISABLED
  if (gil && Py_REFCNT(wrapper) == 1 && !Py_TYPE(wrapper)->tp_finalize) {  // nobody can look at it
    dying->python = nullptr;
    dying->flags &= uint8_t(~kOwnsPython);
    Py_DECREF(reinterpret_cast<PyObject*>(wrapper));
    return;
  }
#endif
  Tensor borrowed(Ref<TensorImpl>::adopt(dying));
  Tensor heir = bare_alias(borrowed);
  borrowed.ref().release();
  heir.impl()->keys = dying->keys;
  heir.impl()->flags = uint8_t(dying->flags & ~kOwnsPython);
  if (dying->flags & kCarries) heir.impl()->payload = dying->payload;
  dying->flags &= uint8_t(~kCarries);
  heir.impl()->base = std::move(dying->base);
  heir.impl()->grad = std::exchange(dying->grad, nullptr);
  if (heir.impl()->grad && autograd_api.moved_home) autograd_api.moved_home(heir.impl());
  heir.impl()->python = wrapper;
  wrapper->tensor = std::move(heir);
  if (gil) Py_DECREF(reinterpret_cast<PyObject*>(wrapper));
}

int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(cast(self)->dict);
  TensorImpl* impl = cast(self)->tensor.impl();
  if (!impl) return 0;
  // What a payload owns is this wrapper's only while nobody else keeps either.
  if ((impl->flags & kCarries) && impl->use_count() == 1)
    for (const PayloadLink* link = impl->payload; link; link = link->next)
      if (link->payload->use_count() == 1)
        if (const int stop = link->payload->traverse(visit, arg)) return stop;
  return autograd_api.visit_hooks ? autograd_api.visit_hooks(impl, visit, arg) : 0;
}
int clear(PyObject* self) {
  const Turn turn;
  Py_CLEAR(cast(self)->dict);
  TensorImpl* impl = cast(self)->tensor.impl();
  if (impl && (impl->flags & kCarries) && impl->use_count() == 1)
    for (const PayloadLink* link = impl->payload; link; link = link->next)
      if (link->payload->use_count() == 1) link->payload->clear();
  if (impl && autograd_api.drop_hooks) autograd_api.drop_hooks(impl);
  return 0;
}

int set_attribute(PyObject* self, PyObject* name, PyObject* value) {
  const int status = PyObject_GenericSetAttr(self, name, value);
  if (cast(self)->dict) track_state(self);
  return status;
}

/// Attributes that belong to packages which may be missing say so instead of being absent.
PyObject* missing(const char* attribute, const char* package) {
  return PyErr_Format(PyExc_RuntimeError,
                      "Tensor.%s needs a package that is not installed or not imported: pip install %s", attribute,
                      package);
}
#define TAEDA_MISSING(NAME, PACKAGE) \
  {#NAME, [](PyObject*, PyObject*) { return missing(#NAME, PACKAGE); }, METH_VARARGS, "Offered by " PACKAGE "."}
// METH_KEYWORDS functions have another type; these are only placeholders that the packages replace.
PyMethodDef placeholders[] = {
    {"backward",
     reinterpret_cast<PyCFunction>(static_cast<PyCFunctionWithKeywords>(
         [](PyObject*, PyObject*, PyObject*) { return missing("backward", "taeda-autograd"); })),
     METH_VARARGS | METH_KEYWORDS, "Offered by taeda-autograd."},
    TAEDA_MISSING(register_hook, "taeda-autograd"),
    TAEDA_MISSING(register_post_accumulate_grad_hook, "taeda-autograd"),
    TAEDA_MISSING(retain_grad, "taeda-autograd"),
    {nullptr, nullptr, 0, nullptr}};
#undef TAEDA_MISSING

bool is_attribute(const char* name) {
  for (PyGetSetDef* a = tensor_attributes; a->name; ++a)
    if (!std::strcmp(a->name, name)) return true;
  return false;
}

/// One table for the type: attributes and hand-written methods win over generated ones, which win over placeholders.
PyMethodDef* joined_methods() {
  static std::vector<PyMethodDef> all;
  const auto add = [](PyMethodDef* table) {
    for (; table->ml_name; ++table)
      if (!is_attribute(table->ml_name)) all.push_back(*table);
  };
  add(tensor_methods);
  add(override_methods);
  add(dlpack_methods);
  add(buffer_methods);
  for (PyMethodDef* const* table = all_methods; *table; ++table) add(*table);
  add(placeholders);
  all.push_back({nullptr, nullptr, 0, nullptr});
  return all.data();
}

PyMemberDef members[] = {{"__dictoffset__", T_PYSSIZET, offsetof(PyTensor, dict), READONLY, nullptr},
                         {"__weaklistoffset__", T_PYSSIZET, offsetof(PyTensor, weakrefs), READONLY, nullptr},
                         {nullptr, 0, 0, 0, nullptr}};

constexpr const char* kDoc =
    "Tensor(data) or Tensor(*sizes)\n\nN-dimensional array of one dtype on one device, possibly a view of another "
    "tensor.\n\n"
    "Made by functions such as taeda.tensor, zeros and arange; calling the class gives the default dtype.\n\n"
    "Example:\n    >>> taeda.tensor([[1, 2], [3, 4]]).sum(0)\n    tensor([4, 6])";

}  // namespace

void track_state(PyObject* self) noexcept {
  if (!PyObject_GC_IsTracked(self)) PyObject_GC_Track(self);
}

PyObject* wrap_fresh(Tensor&& tensor, PyTypeObject* type) {
  PyTensor* wrapper;
  if (type == TensorType) [[likely]] {
    wrapper = allocate();
  } else {
    if (tensor.impl()->python) tensor = bare_alias(tensor);  // a mode or class that made it may keep its wrapper
    wrapper = allocate_subclass(type);
    if (dispatches(type)) tensor.impl()->keys = tensor.keys() | KeySet::of(dispatch_layer(type));
  }
  if (!wrapper) return nullptr;
  let_be_shared(reinterpret_cast<PyObject*>(wrapper));
  tensor.impl()->python = wrapper;
  new (&wrapper->tensor) Tensor(std::move(tensor));
  return reinterpret_cast<PyObject*>(wrapper);
}

PyObject* reclaim_wrapper(TensorImpl* impl) noexcept {
  impl->flags &= uint8_t(~kOwnsPython);
  impl->retain();
  return static_cast<PyObject*>(impl->python);
}

bool init_tensor(PyObject* module) {
  std::vector<PyType_Slot> slots = number_slots();
  const auto slot = [&](int id, auto function) { slots.push_back({id, reinterpret_cast<void*>(function)}); };
  slot(Py_tp_new, tensor_new);
  slot(Py_tp_dealloc, dealloc);
  slot(Py_tp_traverse, traverse);
  slot(Py_tp_clear, clear);
  slot(Py_tp_setattro, set_attribute);
  slot(Py_mp_subscript, tensor_getitem);
  slot(Py_mp_ass_subscript, tensor_setitem);
  slot(Py_sq_item, tensor_sequence_item);
  slot(Py_bf_getbuffer, tensor_get_buffer);
  slot(Py_bf_releasebuffer, tensor_release_buffer);
  slot(Py_tp_methods, joined_methods());
  slot(Py_tp_getset, tensor_attributes);
  slot(Py_tp_members, members);
  slots.push_back({Py_tp_doc, const_cast<char*>(kDoc)});
  slots.push_back({0, nullptr});
  PyType_Spec spec{"taeda_tensor_core.Tensor", sizeof(PyTensor), 0,
                   Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, slots.data()};
  TensorType = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  release_python_wrapper = release_wrapper;
  wrapper_api = {.alias = alias_of_wrapper, .device = device_of_wrapper, .item = item_of_wrapper};
  return TensorType && PyModule_AddObjectRef(module, "Tensor", reinterpret_cast<PyObject*>(TensorType)) == 0;
}

}  // namespace taeda::py
