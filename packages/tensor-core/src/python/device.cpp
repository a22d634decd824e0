// device objects: a backend's name and an index; of reserved names also where there is no such backend.
#include <charconv>

#include "python/internal.h"
#include "taeda/backend.h"
#include "taeda/reserved.h"

namespace taeda::py {

PyTypeObject* DeviceType = nullptr;

namespace {

PyObject* host = nullptr;  // device("cpu"), the one asked for most

// Note [Devices that are not there]: programs name kinds of devices before they ask whether there is one, in defaults
// of arguments for instance. Such an object has a backend number from `kAbsent` on, which stands for the name, and
// index -1 where none was given. Whoever takes a device from Python gets what the name means then, or the usual error.
constexpr BackendId kAbsent = 0xE0;
static_assert(kAbsent >= kMaxBackends && kAbsent + kDeviceWords <= 0x100);

bool is_absent(Device device) { return device.backend >= kAbsent; }
std::string_view reserved_name(Device device) { return device_word(device.backend - kAbsent); }
std::string spelled(Device device) {
  if (!is_absent(device)) return to_string(device);
  const std::string name(reserved_name(device));
  return device.index < 0 ? name : name + ":" + std::to_string(device.index);
}

Device value_of(PyObject* self) { return reinterpret_cast<PyDevice*>(self)->value; }
int said_of(PyObject* self) { return reinterpret_cast<PyDevice*>(self)->said; }
std::string type_of(Device device) {
  return is_absent(device) ? std::string(reserved_name(device)) : backend(device.backend).name();
}
/// The number that a program gave; whether it gave none of a kind that has several is told by kUnsaid.
constexpr int kUnsaid = -2;
struct Identity {
  Device device;
  int said;
  bool operator==(const Identity&) const = default;
};
/// The same for objects of one device that were made before and after its plug-in was loaded.
Identity identity(PyObject* self) {
  const Device device = value_of(self);
  if (!is_absent(device)) return {device, said_of(self)};
  const int there = find_backend(reserved_name(device));
  const BackendId kind = there < 0 ? device.backend : BackendId(there);
  return {{kind, std::max(device.index, int8_t(0))}, device.index < 0 ? kUnsaid : -1};
}

/// A device of a known kind that nobody has loaded; nothing for other texts.
std::optional<Device> absent_device(std::string_view text) {
  const size_t colon = text.find(':');
  const std::string_view name = text.substr(0, colon);
  for (size_t i = 0; i < kDeviceWords; ++i) {
    if (name != device_word(i) || find_backend(name) >= 0) continue;
    int index = -1;
    if (colon != std::string_view::npos) {
      const std::string_view digits = text.substr(colon + 1);
      const auto [end, status] = std::from_chars(digits.data(), digits.data() + digits.size(), index);
      if (status != std::errc() || end != digits.data() + digits.size() || index < 0 || index > 127)
        return std::nullopt;
    }
    return Device{BackendId(kAbsent + i), int8_t(index)};
  }
  return std::nullopt;
}

/// The device of that number, of the accelerator's kind, as programs that know one kind say it.
Device numbered_device(PyObject* number) {
  const int64_t index = number_for(number, "device", "index")->to<int64_t>();
  check(index >= 0, ErrorKind::Runtime, "Device index must not be negative, found ", index);
  const Object module(PyImport_ImportModule("taeda_tensor_core.accelerator"));
  ensure(module.get() != nullptr);
  const Object found(PyObject_CallMethod(module.get(), "current_accelerator", nullptr));
  ensure(found.get() != nullptr);
  if (found.get() == Py_None)
    fail(ErrorKind::Runtime, "Cannot access accelerator device when none is available: device ", index);
  return parse_device(type_of(value_of(found.get())) + ":" + std::to_string(index));
}
bool is_device_number(PyObject* o) { return PyLong_Check(o) && !PyBool_Check(o); }

PyObject* make(Device device, int said = -1) {
  PyDevice* object = PyObject_New(PyDevice, DeviceType);
  if (object) {
    object->value = device;
    object->said = int8_t(said);
  }
  return reinterpret_cast<PyObject*>(object);
}

PyObject* construct(PyTypeObject*, PyObject* args, PyObject* kwargs) {
  static const char* const names[] = {"type", "index", nullptr};
  PyObject* type;
  PyObject* index = Py_None;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|O:device", const_cast<char**>(names), &type, &index))
    return nullptr;
  return guarded([&]() -> PyObject* {
    if (is_device(type)) return Py_NewRef(type);
    if (is_device_number(type) && index == Py_None) return wrap(numbered_device(type));
    std::string text(text_of(type, "device: argument 'type'"));
    if (index != Py_None) {
      if (text.find(':') != std::string::npos)
        fail(ErrorKind::Runtime, "device: '", text, "' has an index already, argument 'index' must not be given");
      if (!PyIndex_Check(index))
        fail(ErrorKind::Type, "device: argument 'index' must be an int or None, found ", type_name(index));
      const Object whole(PyNumber_Index(index));
      ensure(whole.get() != nullptr);
      text += ":" + std::to_string(number_for(whole.get(), "device", "index")->to<int64_t>());
    }
    if (const std::optional<Device> absent = absent_device(text)) return make(*absent);
    const Device device = parse_device(text);
    const size_t colon = text.find(':');
    const bool numbered = colon != std::string::npos;
    if (device.backend > kMeta) return numbered ? wrap(device) : make(device, kUnsaid);
    if (!numbered) return wrap(device);
    return make(device, std::stoi(text.substr(colon + 1)));  // tensors' own devices have no number
  });
}

int number_of(PyObject* self) {
  return value_of(self).backend <= kMeta || said_of(self) == kUnsaid ? said_of(self) : value_of(self).index;
}
std::string spelled(PyObject* self) {
  if (said_of(self) == kUnsaid) return type_of(value_of(self));
  const std::string name = spelled(value_of(self));
  return said_of(self) < 0 ? name : name + ":" + std::to_string(said_of(self));
}
PyObject* repr(PyObject* self) {
  const std::string type = type_of(value_of(self));
  const int index = number_of(self);
  if (index < 0) return PyUnicode_FromFormat("device(type='%s')", type.c_str());
  return PyUnicode_FromFormat("device(type='%s', index=%d)", type.c_str(), index);
}
PyObject* str(PyObject* self) { return PyUnicode_FromString(spelled(self).c_str()); }
Py_hash_t hash(PyObject* self) {
  const auto [device, said] = identity(self);
  return Py_hash_t(device.backend) * 256 + device.index + said + 3;
}
PyObject* compare(PyObject* a, PyObject* b, int op) {
  if ((op != Py_EQ && op != Py_NE) || !is_device(a) || !is_device(b)) Py_RETURN_NOTIMPLEMENTED;
  return PyBool_FromLong((identity(a) == identity(b)) == (op == Py_EQ));
}
PyObject* get_type(PyObject* self, void*) { return PyUnicode_FromString(type_of(value_of(self)).c_str()); }
PyObject* get_index(PyObject* self, void*) {
  const int index = number_of(self);
  if (index < 0) Py_RETURN_NONE;
  return PyLong_FromLong(index);
}
PyObject* reduce(PyObject* self, PyObject*) {
  return Py_BuildValue("O(s)", reinterpret_cast<PyObject*>(DeviceType), spelled(self).c_str());
}

PyMethodDef methods[] = {{"__reduce__", reduce, METH_NOARGS, nullptr}, {nullptr, nullptr, 0, nullptr}};
PyGetSetDef attributes[] = {
    {"type", get_type, nullptr, "Name of the backend.", nullptr},
    {"index", get_index, nullptr, "Number of the device; None where the program gave none.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyType_Slot slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(construct)},
    {Py_tp_repr, reinterpret_cast<void*>(repr)},
    {Py_tp_str, reinterpret_cast<void*>(str)},
    {Py_tp_hash, reinterpret_cast<void*>(hash)},
    {Py_tp_richcompare, reinterpret_cast<void*>(compare)},
    {Py_tp_methods, methods},
    {Py_tp_getset, attributes},
    {Py_tp_doc,
     const_cast<char*>("device(type, index=None)\n\nPlace of a tensor's elements: 'cpu', 'meta', or what an "
                       "installed backend offers.\n\n"
                       "Names that are reserved for accelerators can be used without one; what they are used\n"
                       "for then fails.\n\n"
                       "Raises:\n    RuntimeError: The name is unknown; the known ones are listed.\n\n"
                       "Example:\n    >>> taeda.device('cpu')\n    device(type='cpu')")},
    {0, nullptr}};
PyType_Spec spec{"taeda_tensor_core.device", sizeof(PyDevice), 0, Py_TPFLAGS_DEFAULT, slots};

}  // namespace

PyObject* wrap(Device device) {
  if (device == Device{}) return Py_NewRef(host);
  return make(device);
}

std::optional<Device> as_device(PyObject* o) {
  if (is_device(o)) {
    const Device device = value_of(o);
    return is_absent(device) ? parse_device(spelled(device)) : device;
  }
  if (PyUnicode_Check(o)) return parse_device(text_of(o, "device"));
  if (is_device_number(o)) return numbered_device(o);
  return std::nullopt;
}

bool init_device(PyObject* module) {
  DeviceType = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  if (!DeviceType || PyModule_AddObjectRef(module, "device", reinterpret_cast<PyObject*>(DeviceType)) < 0) return false;
  host = make(Device{});
  return host != nullptr;
}

}  // namespace taeda::py
