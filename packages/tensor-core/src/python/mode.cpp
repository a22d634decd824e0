// _Mode: the base of no_grad, enable_grad, inference_mode: switches of the thread, set for the length of a `with`
// block.
#include "python/internal.h"
#include "taeda/grad_mode.h"

namespace taeda::py {
namespace {

enum Switch : uint8_t { kGradOn = 1, kGradOff = 2, kInferenceOn = 4, kInferenceOff = 8 };
constexpr int kMaxNested = 32;

struct PyMode {
  PyObject_HEAD uint8_t switches;
  uint8_t depth;              // how often this object is entered now
  uint8_t saved[kMaxNested];  // what was on before each entry
};
PyMode* cast(PyObject* o) { return reinterpret_cast<PyMode*>(o); }

PyTypeObject* ModeType = nullptr;

/// The state of the thread that modes change. Whether the layer is switched off does not follow from the rest: inside
/// kernels it is off although gradients are recorded.
enum State : uint8_t { kRecording = 1, kInferring = 2, kBelowAutograd = 4 };
constexpr uint64_t kAutogradBit = KeySet::of(Layer::Autograd).bits();

uint8_t now() {
  return uint8_t((thread_state.grad_enabled ? kRecording : 0) | (thread_state.inference_mode ? kInferring : 0) |
                 (thread_state.excluded & kAutogradBit ? kBelowAutograd : 0));
}

void go_back(uint8_t state) {
  thread_state.grad_enabled = state & kRecording;
  thread_state.inference_mode = state & kInferring;
  thread_state.excluded =
      state & kBelowAutograd ? thread_state.excluded | kAutogradBit : thread_state.excluded & ~kAutogradBit;
}

/// Under inference mode nothing is recorded, also where a program asks for it: its tensors could not be saved.
void apply(uint8_t switches) {
  if (switches & (kInferenceOn | kInferenceOff)) thread_state.inference_mode = switches & kInferenceOn;
  if (switches & (kGradOn | kGradOff)) GradMode::set(switches & kGradOn);
  if (thread_state.inference_mode) thread_state.excluded |= kAutogradBit;
}

PyObject* make(PyTypeObject* type, uint8_t switches) {
  PyObject* mode = type->tp_alloc(type, 0);
  if (mode) cast(mode)->switches = switches;
  return mode;
}

/// Without arguments: what the class says in `_switches`. With some: the class decides in `_with`.
PyObject* construct(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  static PyObject* const switches = PyUnicode_InternFromString("_switches");
  static PyObject* const with = PyUnicode_InternFromString("_with");
  return guarded([&]() -> PyObject* {
    PyObject* cls = reinterpret_cast<PyObject*>(type);
    if (PyTuple_GET_SIZE(args) || (kwargs && PyDict_Size(kwargs)))
      return PyObject_Call(own(PyObject_GetAttr(cls, with)).get(), args, kwargs);
    const long value = PyLong_AsLong(own(PyObject_GetAttr(cls, switches)).get());
    ensure(value != -1 || !PyErr_Occurred());
    return make(type, uint8_t(value));
  });
}

/// Base of every class: an object with given switches.
PyObject* create(PyObject* cls, PyObject* switches) {
  const long value = PyLong_AsLong(switches);
  if (value == -1 && PyErr_Occurred()) return nullptr;
  return make(reinterpret_cast<PyTypeObject*>(cls), uint8_t(value));
}

PyObject* enter(PyObject* self, PyObject*) {
  PyMode* mode = cast(self);
  if (mode->depth == kMaxNested) {
    PyErr_Format(PyExc_RecursionError, "%s: one object is entered more than %d times", Py_TYPE(self)->tp_name,
                 kMaxNested);
    return nullptr;
  }
  mode->saved[mode->depth++] = now();
  apply(mode->switches);
  return Py_NewRef(self);
}

PyObject* leave(PyObject* self, PyObject* const*, Py_ssize_t) {
  PyMode* mode = cast(self);
  if (mode->depth) go_back(mode->saved[--mode->depth]);
  Py_RETURN_NONE;
}

PyObject* get_switches(PyObject* self, void*) { return PyLong_FromLong(cast(self)->switches); }
void dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

PyMethodDef methods[] = {{"__enter__", enter, METH_NOARGS, nullptr},
                         {"__exit__", reinterpret_cast<PyCFunction>(leave), METH_FASTCALL, nullptr},
                         {"_create", create, METH_O | METH_CLASS, nullptr},
                         {nullptr, nullptr, 0, nullptr}};
PyGetSetDef attributes[] = {
    {"switches", get_switches, nullptr, "Bits: 1 record, 2 record not, 4 inference mode, 8 none.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyType_Slot slots[] = {{Py_tp_new, reinterpret_cast<void*>(construct)},
                       {Py_tp_dealloc, reinterpret_cast<void*>(dealloc)},
                       {Py_tp_methods, methods},
                       {Py_tp_getset, attributes},
                       {0, nullptr}};
PyType_Spec spec{"taeda_tensor_core._C._Mode", sizeof(PyMode), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};

}  // namespace

bool init_mode(PyObject* module) {
  ModeType = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  return ModeType && PyModule_AddObjectRef(module, "_Mode", reinterpret_cast<PyObject*>(ModeType)) == 0;
}

}  // namespace taeda::py
