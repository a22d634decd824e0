// taeda_profiler._C: starts and stops recordings, hands over what they hold, and marks spans.
#include <algorithm>
#include <cstring>

#include "places.h"
#include "recorder.h"

// Callgrind counts what happens within this function; its name is how it finds it.
extern "C" __attribute__((visibility("default"), noinline)) PyObject* taeda_profiler_counted(PyObject* function,
                                                                                             PyObject* argument) {
  return PyObject_CallOneArg(function, argument);
}

namespace profiler {
namespace {

std::shared_ptr<Session> current;

/// An owned reference, given back at the end of the scope.
class Owned {
 public:
  explicit Owned(PyObject* object) noexcept : object_(object) {}
  ~Owned() { Py_XDECREF(object_); }
  Owned(const Owned&) = delete;
  PyObject* get() const noexcept { return object_; }
  PyObject* release() noexcept { return std::exchange(object_, nullptr); }
  explicit operator bool() const noexcept { return object_; }

 private:
  PyObject* object_;
};

PyObject* fail(int32_t status) {
  if (status == TAEDA_OK) Py_RETURN_NONE;
  PyErr_SetString(PyExc_RuntimeError, api->last_error());
  return nullptr;
}

// --- start and stop ---

/// connect(capsule): the table of the C ABI.
PyObject* connect(PyObject*, PyObject* capsule) {
  const void* table = PyCapsule_GetPointer(capsule, TAEDA_API_CAPSULE);
  if (!table) return nullptr;
  api = static_cast<const taeda_api*>(table);
  Py_RETURN_NONE;
}

bool names_in(PyObject* set, std::unordered_set<std::string>& names) {
  const Owned iterator(PyObject_GetIter(set));
  if (!iterator) return false;
  while (PyObject* item = PyIter_Next(iterator.get())) {
    const Owned held(item);
    const char* text = PyUnicode_AsUTF8(item);
    if (!text) return false;
    names.insert(text);
  }
  return !PyErr_Occurred();
}

/// start(shapes, memory, stacks, devices, whole, max_bytes)
PyObject* start(PyObject*, PyObject* args) {
  int shapes, memory, stacks, devices;
  PyObject* whole;
  long long max_bytes;
  if (!PyArg_ParseTuple(args, "ppppOL", &shapes, &memory, &stacks, &devices, &whole, &max_bytes)) return nullptr;
  if (current) {
    PyErr_SetString(PyExc_RuntimeError, "profile: another one is recording already; stop it first");
    return nullptr;
  }
  if (!api) {
    PyErr_SetString(PyExc_RuntimeError, "profile: not connected to a tensor core");
    return nullptr;
  }
  Options options{bool(shapes), bool(memory), bool(stacks), bool(devices), {}, max_bytes};
  if (!names_in(whole, options.whole)) return nullptr;
  const auto made = std::make_shared<Session>(options);
  if (const int32_t status = made->start_devices(); status != TAEDA_OK) return fail(status);
  current = made;
  join(current);
  invite(current);
  Py_RETURN_NONE;
}

/// As a function of sys.setprofile: the thread joins.
PyObject* join_thread(PyObject*, PyObject*) {
  PyEval_SetProfile(nullptr, nullptr);
  if (current) join(current);
  Py_RETURN_NONE;
}

/// In a child after a fork: the recording stays with the parent.
PyObject* abandon(PyObject*, PyObject*) {
  invite_no_more();
  if (current) {
    current->recording = false;
    leave();
    new std::shared_ptr<Session>(std::move(current));  // its locks may be held by threads that are not here
  }
  current.reset();
  Py_RETURN_NONE;
}

PyObject* recording(PyObject*, PyObject*) { return PyBool_FromLong(current != nullptr); }
PyObject* clock(PyObject*, PyObject*) { return PyLong_FromLongLong(now()); }

// --- what was recorded ---

/// A column of numbers, as bytes for NumPy.
template <class T>
struct Column {
  explicit Column(size_t count)
      : bytes(PyBytes_FromStringAndSize(nullptr, Py_ssize_t(count * sizeof(T)))),
        items(bytes ? reinterpret_cast<T*>(PyBytes_AS_STRING(bytes.get())) : nullptr) {}
  Owned bytes;
  T* items;
};

PyObject* tuple_of(const int64_t* words, size_t count) {
  Owned tuple(PyTuple_New(Py_ssize_t(count)));
  for (size_t i = 0; tuple && i < count; ++i) {
    PyObject* number = PyLong_FromLongLong(words[i]);
    if (!number) return nullptr;
    PyTuple_SET_ITEM(tuple.get(), Py_ssize_t(i), number);
  }
  return tuple.release();
}

PyObject* details_of(const WordLists& lists, size_t count) {
  Owned all(PyList_New(Py_ssize_t(count)));
  for (size_t i = 0; all && i < count; ++i) {
    PyObject* item = tuple_of(lists.begin_of(uint32_t(i)), lists.count_of(uint32_t(i)));
    if (!item) return nullptr;
    PyList_SET_ITEM(all.get(), Py_ssize_t(i), item);
  }
  return all.release();
}

/// The event that each one lies in, and how deep.
struct Nesting {
  struct Outer {
    int64_t end;
    int32_t index;
  };
  std::vector<Outer> open;
  void place(int64_t begin, int64_t end, int32_t index, int32_t& parent, int32_t& depth) {
    while (!open.empty() && open.back().end <= begin) open.pop_back();
    parent = open.empty() ? -1 : open.back().index;
    depth = int32_t(open.size());
    open.push_back({end, index});
  }
};

/// {begin, length, name, kind, failed, sequence, detail, parent, depth} as bytes.
PyObject* events_of(const Thread& thread, int64_t until, double tick, size_t& details) {
  const size_t count = thread.events.size();
  Column<int64_t> begin(count), length(count);
  Column<int32_t> name(count), detail(count), parent(count), depth(count);
  Column<uint32_t> sequence(count);
  Column<uint8_t> kind(count), failed(count);
  if (PyErr_Occurred()) return nullptr;
  Nesting nesting;
  size_t i = 0;
  thread.events.each([&](const Event& event) {
    if (i == count) return;
    begin.items[i] = int64_t(double(event.start()) * tick);
    const int64_t end = event.length() == Event::kOpen ? until : int64_t(double(event.start() + event.length()) * tick);
    length.items[i] = std::max(end - begin.items[i], int64_t(0));
    name.items[i] = int32_t(event.name());
    kind.items[i] = uint8_t(event.kind());
    failed.items[i] = event.failed();
    sequence.items[i] = event.sequence();
    detail.items[i] = int32_t(event.detail());
    if (event.detail() >= details) details = event.detail() + 1;
    nesting.place(begin.items[i], begin.items[i] + length.items[i], int32_t(i), parent.items[i], depth.items[i]);
    ++i;
  });
  return Py_BuildValue("{s:O,s:O,s:O,s:O,s:O,s:O,s:O,s:O,s:O}", "begin", begin.bytes.get(), "length",
                       length.bytes.get(), "name", name.bytes.get(), "kind", kind.bytes.get(), "failed",
                       failed.bytes.get(), "sequence", sequence.bytes.get(), "detail", detail.bytes.get(), "parent",
                       parent.bytes.get(), "depth", depth.bytes.get());
}

PyObject* memory_of(const Thread& thread, double tick) {
  const size_t count = thread.memory.size();
  Column<int64_t> at(count), bytes(count);
  Column<uint64_t> address(count);
  Column<int32_t> event(count), device(count);
  if (PyErr_Occurred()) return nullptr;
  size_t i = 0;
  thread.memory.each([&](const MemoryEvent& use) {
    if (i == count) return;
    at.items[i] = int64_t(double(use.at) * tick);
    bytes.items[i] = use.bytes;
    address.items[i] = use.address;
    event.items[i] = int32_t(use.event);
    device.items[i] = int32_t(use.device);
    ++i;
  });
  return Py_BuildValue("{s:O,s:O,s:O,s:O,s:O}", "at", at.bytes.get(), "bytes", bytes.bytes.get(), "address",
                       address.bytes.get(), "event", event.bytes.get(), "device", device.bytes.get());
}

/// {origin, at, event} of what the thread handed to devices.
PyObject* works_of(const Thread& thread, double tick) {
  const size_t count = thread.works.size();
  Column<uint64_t> origin(count);
  Column<int64_t> at(count);
  Column<int32_t> event(count);
  if (PyErr_Occurred()) return nullptr;
  size_t i = 0;
  thread.works.each([&](const Work& work) {
    if (i == count) return;
    origin.items[i] = work.origin;
    at.items[i] = int64_t(double(work.at) * tick);
    event.items[i] = int32_t(work.event);
    ++i;
  });
  return Py_BuildValue("{s:O,s:O,s:O}", "origin", origin.bytes.get(), "at", at.bytes.get(), "event", event.bytes.get());
}

/// {begin, length, name, kind, device, stream, origin, bytes} of what devices did.
PyObject* activities_of(const Session& session) {
  const auto& all = session.activities;
  Column<int64_t> begin(all.size()), length(all.size()), bytes(all.size());
  Column<uint64_t> stream(all.size()), origin(all.size());
  Column<int32_t> name(all.size()), device(all.size());
  Column<uint8_t> kind(all.size());
  if (PyErr_Occurred()) return nullptr;
  for (size_t i = 0; i < all.size(); ++i) {
    begin.items[i] = all[i].begin;
    length.items[i] = all[i].length;
    bytes.items[i] = all[i].bytes;
    stream.items[i] = all[i].stream;
    origin.items[i] = all[i].origin;
    name.items[i] = int32_t(all[i].name);
    device.items[i] = int32_t(all[i].device);
    kind.items[i] = all[i].kind;
  }
  return Py_BuildValue("{s:O,s:O,s:O,s:O,s:O,s:O,s:O,s:O}", "begin", begin.bytes.get(), "length", length.bytes.get(),
                       "name", name.bytes.get(), "kind", kind.bytes.get(), "device", device.bytes.get(), "stream",
                       stream.bytes.get(), "origin", origin.bytes.get(), "bytes", bytes.bytes.get());
}

/// Names of the backends, by their numbers.
PyObject* backends() {
  Owned all(PyList_New(0));
  for (int32_t number = 0; all; ++number) {
    const char* text = api->backend_name(number);
    if (!text) break;
    const Owned name(PyUnicode_FromString(text));
    if (!name || PyList_Append(all.get(), name.get()) != 0) return nullptr;
  }
  return all.release();
}

PyObject* thread_of(const Thread& thread, int64_t until, double tick) {
  size_t details = 1;
  Owned events(events_of(thread, until, tick, details));
  Owned memory(events ? memory_of(thread, tick) : nullptr);
  Owned works(memory ? works_of(thread, tick) : nullptr);
  Owned detail(works ? details_of(thread.details, details) : nullptr);
  if (!detail) return nullptr;
  return Py_BuildValue("{s:I,s:K,s:K,s:O,s:O,s:O,s:O}", "number", thread.number, "id",
                       static_cast<unsigned long long>(thread.system_id), "dropped",
                       static_cast<unsigned long long>(thread.dropped.load()), "events", events.get(), "memory",
                       memory.get(), "works", works.get(), "details", detail.get());
}

PyObject* names_of(const Session& session) {
  const auto names = session.names();
  Owned all(PyList_New(Py_ssize_t(names.size())));
  for (size_t i = 0; all && i < names.size(); ++i) {
    PyObject* item = Py_BuildValue("(ss)", names[i].text.c_str(), names[i].schema.c_str());
    if (!item) return nullptr;
    PyList_SET_ITEM(all.get(), Py_ssize_t(i), item);
  }
  return all.release();
}

PyObject* collected(const Session& session) {
  const auto threads = session.threads();
  const double tick = tick_length();
  Owned list(PyList_New(0));
  for (const auto& thread : threads) {
    const Owned one(thread_of(*thread, session.stopped - session.started, tick));
    if (!one || !list || PyList_Append(list.get(), one.get()) != 0) return nullptr;
  }
  Owned names(names_of(session)), stacks(session.stacks.list()), activities(activities_of(session)),
      devices(backends());
  if (!list || !names || !stacks || !activities || !devices) return nullptr;
  const int64_t used = session.options.max_bytes - session.left.load();
  return Py_BuildValue("{s:L,s:L,s:L,s:O,s:O,s:O,s:O,s:O,s:K,s:s}", "started", static_cast<long long>(session.started),
                       "stopped", static_cast<long long>(session.stopped), "used", static_cast<long long>(used),
                       "names", names.get(), "stacks", stacks.get(), "threads", list.get(), "activities",
                       activities.get(), "backends", devices.get(), "activities_dropped",
                       static_cast<unsigned long long>(session.activities_dropped), "devices_failed",
                       session.devices_failed.c_str());
}

/// Ends the recording and gives what it holds.
PyObject* stop(PyObject*, PyObject*) {
  if (!current) {
    PyErr_SetString(PyExc_RuntimeError, "profile: nothing is being recorded");
    return nullptr;
  }
  const std::shared_ptr<Session> session = std::move(current);
  current.reset();
  session->recording.store(false);
  session->stopped = now();
  invite_no_more();
  leave();
  session->stop_devices();
  PyObject* found = collected(*session);
  session->forget_threads();
  return found;
}

// --- spans ---

template <int32_t (*taeda_api::*Function)(const taeda_span*)>
PyObject* span(PyObject*, PyObject* const* args, Py_ssize_t count) {
  if (!api) Py_RETURN_NONE;
  if (count != 2) {
    PyErr_SetString(PyExc_TypeError, "span: expected a name and a kind");
    return nullptr;
  }
  const char* name = PyUnicode_AsUTF8(args[0]);
  const long kind = name ? PyLong_AsLong(args[1]) : 0;
  if (!name || (kind == -1 && PyErr_Occurred())) return nullptr;
  if (kind < 0 || kind > TAEDA_SPAN_SYNCHRONIZE) {
    PyErr_Format(PyExc_ValueError, "span: there is no kind %ld", kind);
    return nullptr;
  }
  const taeda_span told{sizeof(taeda_span), name, int32_t(kind), 0, 0};
  return fail((api->*Function)(&told));
}

/// A step of an optimizer: a hook of it, called as hook(optimizer, args, kwargs).
template <int32_t (*taeda_api::*Function)(const taeda_span*)>
PyObject* step(PyObject*, PyObject* const* args, Py_ssize_t count) {
  if (!api) Py_RETURN_NONE;
  if (count < 1) {
    PyErr_SetString(PyExc_TypeError, "step: expected an optimizer");
    return nullptr;
  }
  thread_local std::string name;  // in one place, where the recorder finds it again
  const char* kind = Py_TYPE(args[0])->tp_name;
  const char* dot = std::strrchr(kind, '.');
  name.assign("Optimizer.step#").append(dot ? dot + 1 : kind).append(".step");
  const taeda_span told{sizeof(taeda_span), name.c_str(), TAEDA_SPAN_STEP, 0, 0};
  return fail((api->*Function)(&told));
}

/// counted(function, argument)
PyObject* counted(PyObject*, PyObject* const* args, Py_ssize_t count) {
  if (count != 2) {
    PyErr_SetString(PyExc_TypeError, "counted: expected a function and its argument");
    return nullptr;
  }
  return taeda_profiler_counted(args[0], args[1]);
}

template <class F>
PyCFunction fast(F function) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function));
}

/// A function of the module; where Python has no lock, threads take turns at it.
template <PyObject* (*Function)(PyObject*, PyObject*)>
PyObject* in_turn(PyObject* module, PyObject* args) {
#ifdef Py_GIL_DISABLED
  PyCriticalSection turn;
  PyCriticalSection_Begin(&turn, module);
  PyObject* result = Function(module, args);
  PyCriticalSection_End(&turn);
  return result;
#else
  return Function(module, args);
#endif
}

PyMethodDef functions[] = {
    {"connect", in_turn<connect>, METH_O, "Take the table of the C ABI."},
    {"start", in_turn<start>, METH_VARARGS, "Record: start(shapes, memory, stacks, devices, whole, max_bytes)."},
    {"stop", in_turn<stop>, METH_NOARGS, "End the recording and give what it holds."},
    {"recording", in_turn<recording>, METH_NOARGS, "Whether something is recorded."},
    {"clock", clock, METH_NOARGS, "Nanoseconds of the recorder's clock."},
    {"join_thread", in_turn<join_thread>, METH_VARARGS, "A function for threading.setprofile: the thread joins."},
    {"abandon", in_turn<abandon>, METH_NOARGS, "In a child after a fork."},
    {"span_begin", fast(span<&taeda_api::span_begin>), METH_FASTCALL, "A span begins: span_begin(name, kind)."},
    {"span_end", fast(span<&taeda_api::span_end>), METH_FASTCALL, "A span ends: span_end(name, kind)."},
    {"step_begins", fast(step<&taeda_api::span_begin>), METH_FASTCALL, "A hook before steps of optimizers."},
    {"step_ends", fast(step<&taeda_api::span_end>), METH_FASTCALL, "A hook after steps of optimizers."},
    {"counted", fast(counted), METH_FASTCALL, "Call a function where valgrind counts instructions."},
    {nullptr, nullptr, 0, nullptr}};

PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_C", nullptr, -1, functions, nullptr, nullptr, nullptr, nullptr};

}  // namespace
}  // namespace profiler

PyMODINIT_FUNC PyInit__C() {
  PyObject* module = PyModule_Create(&profiler::definition);
#ifdef Py_GIL_DISABLED
  if (module) PyUnstable_Module_SetGIL(module, Py_MOD_GIL_NOT_USED);
#endif
  return module;
}
