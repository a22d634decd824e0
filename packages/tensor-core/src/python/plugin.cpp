// Plug-ins from Python: the C ABI's table, loading, discovery of devices, fallback, and what a device says of itself.
#include "taeda/plugin.h"

#include <algorithm>

#include "core/loading.h"
#include "python/arguments.h"
#include "python/library.h"
#include "taeda/backend.h"
#include "taeda/checked.h"
#include "taeda/reach.h"
#include "taeda/reserved.h"

namespace taeda::py {
namespace {

PyObject* nothing() { Py_RETURN_NONE; }

// --- the ABI ---

PyObject* abi_capsule(PyObject*, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  return guarded([&] {
    static Names known{"abi_capsule", 3, {"major", "minor", "distribution"}};
    const Given given(known, args, count, names);
    const int64_t major = given.integer(0, TAEDA_ABI_MAJOR), minor = given.integer(1, 0);
    check(major >= 0 && minor >= 0 && major <= UINT32_MAX && minor <= UINT32_MAX, ErrorKind::Value,
          "abi_capsule: arguments 'major' and 'minor' must be numbers of a version, found ", major, " and ", minor);
    const std::string refusal = abi_refusal(uint32_t(major), uint32_t(minor), std::string(given.text(2, "")));
    check(refusal.empty(), ErrorKind::Runtime, "abi_capsule: ", refusal);
    return own(PyCapsule_New(const_cast<taeda_api*>(&abi_table()), TAEDA_API_CAPSULE, nullptr)).release();
  });
}
PyObject* py_load_plugin(PyObject*, PyObject* path) {
  return guarded([&] {
    load_plugin(std::string(text_of(path, "load: argument 'path'")));
    return nothing();
  });
}
PyObject* py_start_plugin(PyObject*, PyObject* capsule) {
  return guarded([&] {
    auto* plugin = static_cast<const taeda_plugin*>(PyCapsule_GetPointer(capsule, TAEDA_PLUGIN_CAPSULE));
    ensure(plugin != nullptr);
    start_plugin(plugin);
    return nothing();
  });
}

// --- discovery ---

/// Python function that is asked about unknown device names; never released.
PyObject* discovery = nullptr;

void ask_discovery(std::string_view name) {
  const Gil gil;
  const Object answer(
      called_out([&] { return PyObject_CallFunction(discovery, "s#", name.data(), Py_ssize_t(name.size())); }));
  if (!answer) throw take_error();
}
PyObject* set_discovery(PyObject*, PyObject* function) {
  Py_XSETREF(discovery, Py_NewRef(function));
  discover_backend = ask_discovery;
  return nothing();
}

// --- backends ---

/// A backend by device name, which may be discovered.
BackendId backend_of(PyObject* name) { return parse_device(text_of(name, "backend: argument 'device'")).backend; }

PyObject* backend_names(PyObject*, PyObject*) {
  return guarded([&] {
    Object list = own(PyList_New(0));
    for (int b = 0; b < backend_count(); ++b) {
      const std::string text = backend(BackendId(b)).name();
      if (text.front() == '(' || find_backend(text) != b) continue;  // withdrawn, or another thread loads it
      const Object name = own(PyUnicode_FromString(text.c_str()));
      ensure(PyList_Append(list.get(), name.get()) == 0);
    }
    return list.release();
  });
}
PyObject* reserved_devices(PyObject*, PyObject*) {
  return guarded([&] {
    Object names = own(PyTuple_New(std::size(kReservedDevices)));
    for (size_t i = 0; i < std::size(kReservedDevices); ++i)
      PyTuple_SET_ITEM(names.get(), i, own(PyUnicode_FromString(kReservedDevices[i].name)).release());
    return names.release();
  });
}
PyObject* py_begin_loading(PyObject*, PyObject*) {
  return guarded([&] {
    begin_loading();
    return nothing();
  });
}
/// How: "undo", "show" or "join".
PyObject* py_end_loading(PyObject*, PyObject* how) {
  return guarded([&] {
    const std::string_view text = text_of(how, "end_loading: argument 'how'");
    end_loading(text == "show" ? Loaded::Show : text == "join" ? Loaded::Join : Loaded::Undo);
    return nothing();
  });
}
PyObject* py_is_loading(PyObject*, PyObject*) { return PyBool_FromLong(is_loading()); }
PyObject* device_count(PyObject*, PyObject* name) {
  return guarded([&] { return PyLong_FromLong(backend(backend_of(name)).device_count()); });
}
PyObject* device_properties(PyObject*, PyObject* o) {
  return guarded([&] {
    const std::optional<Device> device = as_device(o);
    if (!device)
      fail(ErrorKind::Type, "properties: argument 'device' must be a device or its name, found ", type_name(o));
    const DeviceProperties p = backend(device->backend).properties(*device);
    return Py_BuildValue("{s:N,s:K,s:K,s:I,s:I,s:N}", "name", shown_text(p.name), "total_memory",
                         static_cast<unsigned long long>(p.total_memory), "free_memory",
                         static_cast<unsigned long long>(p.free_memory), "alignment", p.alignment, "processors",
                         p.processors, "more", shown_text(p.more));
  });
}
PyObject* empty_device_cache(PyObject*, PyObject* o) {
  return guarded([&] {
    const std::optional<Device> device = as_device(o);
    if (!device)
      fail(ErrorKind::Type, "empty_cache: argument 'device' must be a device or its name, found ", type_name(o));
    backend(device->backend).empty_cache(*device);
    return nothing();
  });
}

/// A dict of what `fill` puts into it.
template <class Map, class Convert>
PyObject* dict_of(const Map& map, const Convert& convert) {
  Object dict = own(PyDict_New());
  for (const auto& [key, value] : map) {
    const Object converted = own(convert(value));
    ensure(PyDict_SetItemString(dict.get(), key.c_str(), converted.get()) == 0);
  }
  return dict.release();
}
PyObject* backend_lacks(PyObject*, PyObject* name) {
  return guarded(
      [&] { return dict_of(backend(backend_of(name)).lacks(), [](const std::string& s) { return shown_text(s); }); });
}

/// (bytes now, most bytes, bytes ever taken, takings, givings back) of one device; None where nobody counts.
PyObject* device_memory(PyObject*, PyObject* o) {
  return guarded([&]() -> PyObject* {
    const std::optional<Device> device = as_device(o);
    check(device.has_value(), ErrorKind::Type, "expected a device or its name, found ", type_name(o));
    const MemoryCount* use = backend(device->backend).memory_use(*device);
    if (!use) return nothing();
    const MemoryCount::Counts c = use->counts();
    return Py_BuildValue("(LLLLL)", (long long)c.now, (long long)c.peak, (long long)c.taken, (long long)c.takings,
                         (long long)c.givings);
  });
}
PyObject* forget_peak(PyObject*, PyObject* o) {
  return guarded([&] {
    const std::optional<Device> device = as_device(o);
    check(device.has_value(), ErrorKind::Type, "expected a device or its name, found ", type_name(o));
    if (MemoryCount* use = backend(device->backend).memory_use(*device)) use->forget_peak();
    return nothing();
  });
}
PyObject* current_device(PyObject*, PyObject* name) {
  return guarded([&] { return PyLong_FromLong(current_device_index(backend_of(name))); });
}
PyObject* set_current_device(PyObject*, PyObject* args) {
  PyObject* name;
  int index;
  if (!PyArg_ParseTuple(args, "Ui", &name, &index)) return nullptr;
  return guarded([&] {
    set_current_device_index(backend_of(name), index);
    return nothing();
  });
}

/// Optional parts of the interface, with whether they are there.
PyObject* backend_capabilities(PyObject*, PyObject* name) {
  return guarded([&] {
    const Backend& b = backend(backend_of(name));
    const std::map<std::string, bool> found{
        {"host-read", !b.opaque()},           {"streams", b.has_streams()},
        {"events", b.has_events()},           {"event-timing", b.has_event_timing()},
        {"peer-copies", b.has_peer_copies()}, {"pinned-memory", b.has_pinned_memory()},
        {"sharing", b.can_share_memory()}};
    return dict_of(found, PyBool_FromLong);
  });
}

// --- memory of other processes ---

Backend& sharing_backend(const char* function, Device device) {
  Backend& owner = backend(device.backend);
  if (!owner.can_share_memory()) [[unlikely]]
    fail(ErrorKind::NotImplemented, function, ": device '", to_string(device),
         "' cannot share its memory with other processes");
  return owner;
}
/// (bytes of the storage, description) of the memory that a tensor shows a part of.
PyObject* memory_export(PyObject*, PyObject* o) {
  return guarded([&] {
    if (!is_tensor(o)) fail(ErrorKind::Type, "export_memory: argument 'tensor' must be a Tensor, found ", type_name(o));
    const Tensor& tensor = tensor_of(o);
    const Device device = tensor.device();
    Backend& owner = sharing_backend("export_memory", device);
    const Storage& storage = *tensor.impl()->storage;
    owner.synchronize(device);  // no other process waits for our streams
    const std::string description =
        storage.nbytes ? owner.memory_export(device, storage.data, storage.nbytes) : std::string();
    return Py_BuildValue("ny#", Py_ssize_t(storage.nbytes), description.data(), Py_ssize_t(description.size()));
  });
}
/// How the backend ends an import, and what is to be let go of afterwards.
struct Lent {
  void (*release)(void*, size_t, void*);
  void* context;
  PyObject* lease;
};
void end_lease(void* data, size_t nbytes, void* given) {
  const std::unique_ptr<Lent> lent(static_cast<Lent*>(given));
  if (lent->release) lent->release(data, nbytes, lent->context);
  if (!Py_IsInitialized()) return;
  const Gil gil;
  Py_DECREF(lent->lease);
}
Ref<Storage> imported(Device device, size_t nbytes, std::string_view description, PyObject* lease) {
  Backend& owner = sharing_backend("import_memory", device);
  Ref<Storage> storage = borrow_storage(nullptr, 0, device, false, nullptr, nullptr);
  if (nbytes) owner.memory_import(*storage, nbytes, description);
  if (lease != Py_None) {
    storage->context = new Lent{storage->release, storage->context, Py_NewRef(lease)};
    storage->release = end_lease;
  }
  return storage;
}
Shape shape_of(PyObject* tuple) {
  Shape shape;
  for (Py_ssize_t i = 0; i < PyTuple_Size(tuple); ++i) shape.push_back(PyLong_AsLongLong(PyTuple_GetItem(tuple, i)));
  ensure(!PyErr_Occurred());
  return shape;
}
/// (device, dtype, sizes, strides, offset, bytes of the storage, description, what is kept as long as it is used)
PyObject* memory_import(PyObject*, PyObject* args) {
  PyObject *device, *dtype, *sizes, *strides, *lease = Py_None;
  long long offset, nbytes;
  const char* text;
  Py_ssize_t length;
  if (!PyArg_ParseTuple(args, "OOO!O!LLy#|O", &device, &dtype, &PyTuple_Type, &sizes, &PyTuple_Type, &strides, &offset,
                        &nbytes, &text, &length, &lease))
    return nullptr;
  return guarded([&] {
    const std::optional<Device> where = as_device(device);
    const std::optional<DType> type = as_dtype(dtype);
    const Shape shape = shape_of(sizes), steps = shape_of(strides);
    check(where && type && shape.size() == steps.size() && nbytes >= 0 && offset >= 0, ErrorKind::Value,
          "import_memory: argument 'handle' is not what export_memory gives");
    check(std::ranges::none_of(shape, [](int64_t size) { return size < 0; }), ErrorKind::Value,
          "import_memory: argument 'handle' has a tensor of shape ", shape_text(shape), " with a negative size");
    count_of(shape, "import_memory");
    const int64_t item = int64_t(item_size(*type));
    const Reach reach = reach_of("import_memory", shape, steps, item);
    const int64_t first = (Count(offset) * item).of("import_memory", "the offset");
    check(first + reach.low >= 0 && reach.high <= nbytes - first, ErrorKind::Value,
          "import_memory: argument 'handle' has a tensor of shape ", shape_text(shape), " that leaves its memory of ",
          nbytes, " bytes");
    return wrap(from_storage(imported(*where, size_t(nbytes), {text, size_t(length)}, lease), shape,
                             settled_strides(shape, steps), first, *type));
  });
}

// --- fallback ---

PyObject* py_set_fallback(PyObject*, PyObject* args) {
  PyObject* name;
  int cpu;
  if (!PyArg_ParseTuple(args, "Up", &name, &cpu)) return nullptr;
  return guarded([&] {
    const BackendId id = backend_of(name);
    check(id != kCPU, ErrorKind::Value, "fallback: the cpu itself has nothing to fall back to");
    set_fallback(id, cpu ? Fallback::Cpu : Fallback::Error);
    return nothing();
  });
}
PyObject* py_fallback_of(PyObject*, PyObject* name) {
  return guarded(
      [&] { return PyUnicode_FromString(fallback_of(backend_of(name)) == Fallback::Cpu ? "cpu" : "error"); });
}
PyObject* py_fallback_counts(PyObject*, PyObject* name) {
  return guarded([&] { return dict_of(fallback_counts(backend_of(name)), PyLong_FromUnsignedLongLong); });
}
PyObject* py_reset_fallback_counts(PyObject*, PyObject* name) {
  return guarded([&] {
    reset_fallback_counts(backend_of(name));
    return nothing();
  });
}

}  // namespace

PyMethodDef plugin_functions[] = {
    {"_abi_capsule", reinterpret_cast<PyCFunction>(abi_capsule), METH_FASTCALL | METH_KEYWORDS, nullptr},
    {"_load_plugin", py_load_plugin, METH_O, nullptr},
    {"_start_plugin", py_start_plugin, METH_O, nullptr},
    {"_set_discovery", set_discovery, METH_O, nullptr},
    {"_backend_names", backend_names, METH_NOARGS, nullptr},
    {"_reserved_devices", reserved_devices, METH_NOARGS, nullptr},
    {"_begin_loading", py_begin_loading, METH_NOARGS, nullptr},
    {"_end_loading", py_end_loading, METH_O, nullptr},
    {"_is_loading", py_is_loading, METH_NOARGS, nullptr},
    {"_device_count", device_count, METH_O, nullptr},
    {"_device_properties", device_properties, METH_O, nullptr},
    {"_empty_device_cache", empty_device_cache, METH_O, nullptr},
    {"_device_memory", device_memory, METH_O, nullptr},
    {"_forget_memory_peak", forget_peak, METH_O, nullptr},
    {"_current_device", current_device, METH_O, nullptr},
    {"_set_current_device", set_current_device, METH_VARARGS, nullptr},
    {"_backend_lacks", backend_lacks, METH_O, nullptr},
    {"_backend_capabilities", backend_capabilities, METH_O, nullptr},
    {"_memory_export", memory_export, METH_O, nullptr},
    {"_memory_import", memory_import, METH_VARARGS, nullptr},
    {"_set_fallback", py_set_fallback, METH_VARARGS, nullptr},
    {"_fallback_of", py_fallback_of, METH_O, nullptr},
    {"_fallback_counts", py_fallback_counts, METH_O, nullptr},
    {"_reset_fallback_counts", py_reset_fallback_counts, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace taeda::py
