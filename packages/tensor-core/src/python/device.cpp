// device objects: a backend's name and an index.
#include "python/internal.h"
#include "taeda/backend.h"

namespace taeda::py {

PyTypeObject* DeviceType = nullptr;

namespace {

PyObject* host = nullptr;  // device("cpu"), the one asked for most

Device value_of(PyObject* self) { return reinterpret_cast<PyDevice*>(self)->value; }
std::string type_of(Device device) { return backend(device.backend).name(); }

PyObject* make(Device device) {
  PyDevice* object = PyObject_New(PyDevice, DeviceType);
  if (object) object->value = device;
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
    std::string text(text_of(type, "device: argument 'type'"));
    if (index != Py_None) {
      if (text.find(':') != std::string::npos)
        fail(ErrorKind::Runtime, "device: '", text, "' has an index already, argument 'index' must not be given");
      const long i = PyLong_AsLong(index);
      ensure(i != -1 || !PyErr_Occurred());
      text += ":" + std::to_string(i);
    }
    return wrap(parse_device(text));
  });
}

PyObject* repr(PyObject* self) {
  const Device device = value_of(self);
  if (device.backend <= kMeta) return PyUnicode_FromFormat("device(type='%s')", type_of(device).c_str());
  return PyUnicode_FromFormat("device(type='%s', index=%d)", type_of(device).c_str(), int(device.index));
}
PyObject* str(PyObject* self) { return PyUnicode_FromString(to_string(value_of(self)).c_str()); }
Py_hash_t hash(PyObject* self) { return Py_hash_t(value_of(self).backend) * 256 + value_of(self).index + 1; }
PyObject* compare(PyObject* a, PyObject* b, int op) {
  if ((op != Py_EQ && op != Py_NE) || !is_device(a) || !is_device(b)) Py_RETURN_NOTIMPLEMENTED;
  return PyBool_FromLong((value_of(a) == value_of(b)) == (op == Py_EQ));
}
PyObject* get_type(PyObject* self, void*) { return PyUnicode_FromString(type_of(value_of(self)).c_str()); }
PyObject* get_index(PyObject* self, void*) {
  if (value_of(self).backend <= kMeta) Py_RETURN_NONE;
  return PyLong_FromLong(value_of(self).index);
}
PyObject* reduce(PyObject* self, PyObject*) {
  return Py_BuildValue("O(s)", reinterpret_cast<PyObject*>(DeviceType), to_string(value_of(self)).c_str());
}

PyMethodDef methods[] = {{"__reduce__", reduce, METH_NOARGS, nullptr}, {nullptr, nullptr, 0, nullptr}};
PyGetSetDef attributes[] = {
    {"type", get_type, nullptr, "Name of the backend.", nullptr},
    {"index", get_index, nullptr, "Number of the device, None where there is only one.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyType_Slot slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(construct)},
    {Py_tp_repr, reinterpret_cast<void*>(repr)},
    {Py_tp_str, reinterpret_cast<void*>(str)},
    {Py_tp_hash, reinterpret_cast<void*>(hash)},
    {Py_tp_richcompare, reinterpret_cast<void*>(compare)},
    {Py_tp_methods, methods},
    {Py_tp_getset, attributes},
    {Py_tp_doc, const_cast<char*>("device(type, index=None)\n\nPlace of a tensor's elements: 'cpu', 'meta', or what an "
                                  "installed backend offers.\n\n"
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
  if (is_device(o)) return value_of(o);
  if (PyUnicode_Check(o)) return parse_device(text_of(o, "device"));
  return std::nullopt;
}

bool init_device(PyObject* module) {
  DeviceType = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  if (!DeviceType || PyModule_AddObjectRef(module, "device", reinterpret_cast<PyObject*>(DeviceType)) < 0) return false;
  host = make(Device{});
  return host != nullptr;
}

}  // namespace taeda::py
