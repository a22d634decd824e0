// Streams, events and pinned memory for Python: handles in capsules, which streams.py dresses up.
#include "taeda/stream.h"

#include "python/internal.h"
#include "taeda/backend.h"

namespace taeda::py {
namespace {

constexpr const char* kStream = "taeda.stream";
constexpr const char* kEvent = "taeda.event";

template <class T>
PyObject* capsule(Ref<T> held, const char* name) {
  T* raw = held.release();
  PyObject* made = PyCapsule_New(raw, name, [](PyObject* self) {
    Ref<T>::adopt(static_cast<T*>(PyCapsule_GetPointer(self, PyCapsule_GetName(self))));
  });
  if (!made) Ref<T>::adopt(raw);
  return own(made).release();
}
Stream stream_of(PyObject* o) {
  void* held = PyCapsule_GetPointer(o, kStream);
  ensure(held != nullptr);
  return Stream::share(static_cast<StreamImpl*>(held));
}
Event event_of(PyObject* o) {
  void* held = PyCapsule_GetPointer(o, kEvent);
  ensure(held != nullptr);
  return Event::share(static_cast<EventImpl*>(held));
}
Device device_of(PyObject* o, const char* function) {
  const std::optional<Device> device = as_device(o);
  if (!device)
    fail(ErrorKind::Type, function, ": argument 'device' must be a device or its name, found ", type_name(o));
  return *device;
}
int priority_of(PyObject* o) {
  if (!PyLong_Check(o)) fail(ErrorKind::Type, "Stream: argument 'priority' must be an int, found ", type_name(o));
  int overflow = 0;
  const long number = PyLong_AsLongAndOverflow(o, &overflow);
  check(!overflow && number >= INT32_MIN && number <= INT32_MAX, ErrorKind::Value,
        "Stream: argument 'priority' is out of range");
  return int(number);
}
Backend& owner(Device device) { return backend(device.backend); }

/// `Function` for `Expected` arguments, and an error for more or less.
template <auto Function, Py_ssize_t Expected>
PyObject* of(PyObject* module, PyObject* const* args, Py_ssize_t count) {
  if (count == Expected) return Function(module, args, count);
  PyErr_Format(PyExc_TypeError, "expected %zd arguments, found %zd", Expected, count);
  return nullptr;
}
const Tensor& tensor_argument(PyObject* o, const char* function) {
  check(is_tensor(o), ErrorKind::Type, function, ": expected a Tensor, found ", type_name(o));
  return tensor_of(o);
}

PyObject* stream_make(PyObject*, PyObject* const* args, Py_ssize_t) {
  return guarded([&] { return capsule(new_stream(device_of(args[0], "Stream"), priority_of(args[1])), kStream); });
}
PyObject* stream_current(PyObject*, PyObject* device) {
  return guarded([&] { return capsule(current_stream(device_of(device, "current_stream")), kStream); });
}
PyObject* stream_set(PyObject*, PyObject* stream) {
  return guarded([&] {
    set_current_stream(stream_of(stream));
    return Py_NewRef(Py_None);
  });
}
/// (device, address of the handle, priority)
PyObject* stream_facts(PyObject*, PyObject* stream) {
  return guarded([&] {
    const Stream s = stream_of(stream);
    const Object device = own(wrap(s->device));
    return own(Py_BuildValue("OKi", device.get(),
                             static_cast<unsigned long long>(reinterpret_cast<uintptr_t>(s->handle)), s->priority))
        .release();
  });
}
PyObject* stream_synchronize(PyObject*, PyObject* stream) {
  return guarded([&] {
    const Stream s = stream_of(stream);
    owner(s->device).stream_synchronize(s->device, s->handle);
    release_passed_pinned();
    return Py_NewRef(Py_None);
  });
}
PyObject* stream_query(PyObject*, PyObject* stream) {
  return guarded([&] {
    const Stream s = stream_of(stream);
    return PyBool_FromLong(owner(s->device).stream_query(s->device, s->handle));
  });
}
PyObject* stream_uses(PyObject*, PyObject* const* args, Py_ssize_t) {
  return guarded([&] {
    const Tensor& t = tensor_argument(args[0], "record_stream");
    const Stream s = stream_of(args[1]);
    if (t.device() != s->device) [[unlikely]]
      fail(ErrorKind::Runtime, "record_stream: expected a stream of device '", to_string(t.device()),
           "', found one of '", to_string(s->device), "'");
    if (t.impl()->storage && t.impl()->storage->data)
      owner(s->device).stream_uses(s->device, t.impl()->storage->data, s->handle);
    return Py_NewRef(Py_None);
  });
}

PyObject* event_make(PyObject*, PyObject* const* args, Py_ssize_t) {
  return guarded([&] {
    check(is_bool(args[1]), ErrorKind::Type, "Event: argument 'enable_timing' must be a bool, found ",
          type_name(args[1]));
    return capsule(new_event(device_of(args[0], "Event"), args[1] != Py_False), kEvent);
  });
}
PyObject* event_record(PyObject*, PyObject* const* args, Py_ssize_t) {
  return guarded([&] {
    record_event(event_of(args[0]), stream_of(args[1]));
    return Py_NewRef(Py_None);
  });
}
PyObject* event_wait(PyObject*, PyObject* const* args, Py_ssize_t) {
  return guarded([&] {
    wait_event(event_of(args[0]), stream_of(args[1]));
    return Py_NewRef(Py_None);
  });
}
PyObject* event_synchronize(PyObject*, PyObject* event) {
  return guarded([&] {
    synchronize_event(event_of(event));
    release_passed_pinned();
    return Py_NewRef(Py_None);
  });
}
PyObject* event_query(PyObject*, PyObject* event) {
  return guarded([&] { return PyBool_FromLong(event_done(event_of(event))); });
}
PyObject* event_elapsed(PyObject*, PyObject* const* args, Py_ssize_t) {
  return guarded([&] { return PyFloat_FromDouble(elapsed_time(event_of(args[0]), event_of(args[1]))); });
}

PyObject* py_pinned_copy(PyObject*, PyObject* const* args, Py_ssize_t) {
  return guarded([&] {
    return wrap(pinned_copy(tensor_argument(args[0], "pin_memory"), device_of(args[1], "pin_memory").backend));
  });
}

PyCFunction fast(PyObject* (*function)(PyObject*, PyObject* const*, Py_ssize_t)) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function));
}

}  // namespace

PyMethodDef stream_functions[] = {{"_stream_make", fast(of<stream_make, 2>), METH_FASTCALL, nullptr},
                                  {"_stream_current", stream_current, METH_O, nullptr},
                                  {"_stream_set", stream_set, METH_O, nullptr},
                                  {"_stream_facts", stream_facts, METH_O, nullptr},
                                  {"_stream_synchronize", stream_synchronize, METH_O, nullptr},
                                  {"_stream_query", stream_query, METH_O, nullptr},
                                  {"_stream_uses", fast(of<stream_uses, 2>), METH_FASTCALL, nullptr},
                                  {"_event_make", fast(of<event_make, 2>), METH_FASTCALL, nullptr},
                                  {"_event_record", fast(of<event_record, 2>), METH_FASTCALL, nullptr},
                                  {"_event_wait", fast(of<event_wait, 2>), METH_FASTCALL, nullptr},
                                  {"_event_synchronize", event_synchronize, METH_O, nullptr},
                                  {"_event_query", event_query, METH_O, nullptr},
                                  {"_event_elapsed", fast(of<event_elapsed, 2>), METH_FASTCALL, nullptr},
                                  {"_pinned_copy", fast(of<py_pinned_copy, 2>), METH_FASTCALL, nullptr},
                                  {nullptr, nullptr, 0, nullptr}};

}  // namespace taeda::py
