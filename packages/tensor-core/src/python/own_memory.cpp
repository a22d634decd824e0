// Memory of devices from Python that only its owner can read: numbers for the core, an object's own affair behind them.
#include "python/library.h"

namespace taeda::py {
namespace {

Callback method(PyObject* owner, const char* name) {
  const Object found = optional_attribute(owner, name);
  check(found && PyCallable_Check(found.get()), ErrorKind::Type, "Backend: argument 'memory' must have a method '",
        name, "', found ", type_name(owner));
  return Callback(found.get());
}

class PythonMemory final : public OwnMemory {
 public:
  explicit PythonMemory(PyObject* owner)
      : allocate_(method(owner, "allocate")),
        release_(method(owner, "release")),
        write_(method(owner, "write")),
        read_(method(owner, "read")) {}

  uintptr_t allocate(int index, size_t nbytes) override {
    const Gil gil;
    const Object made = allocate_(own(Py_BuildValue("(in)", index, Py_ssize_t(nbytes))));
    const unsigned long long address = PyLong_Check(made.get()) ? PyLong_AsUnsignedLongLong(made.get()) : 0;
    PyErr_Clear();
    check(address > 0 && address <= UINTPTR_MAX - nbytes, ErrorKind::Type,
          "Backend: argument 'memory': allocate() must give a positive number to which ", nbytes,
          " can be added, found ", type_name(made.get()));
    return uintptr_t(address);
  }
  void release(int index, uintptr_t address, size_t) noexcept override {
    if (!Py_IsInitialized()) return;  // the process ends, and the memory with it
    const Gil gil;
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    try {
      release_(own(Py_BuildValue("(iK)", index, static_cast<unsigned long long>(address))));
    } catch (const std::exception& error) {
      PyErr_SetString(PyExc_RuntimeError, error.what());
      PyErr_WriteUnraisable(nullptr);
    }
    PyErr_Restore(type, value, trace);
  }
  void write(int index, uintptr_t to, const void* host, size_t nbytes) override {
    const Gil gil;
    move(write_, index, to, static_cast<char*>(const_cast<void*>(host)), nbytes, PyBUF_READ);
  }
  void read(int index, void* host, uintptr_t from, size_t nbytes) override {
    const Gil gil;
    move(read_, index, from, static_cast<char*>(host), nbytes, PyBUF_WRITE);
  }

 private:
  static void move(const Callback& function, int index, uintptr_t address, char* host, size_t nbytes, int access) {
    const Object view = own(PyMemoryView_FromMemory(host, Py_ssize_t(nbytes), access));
    // Afterwards the bytes are the core's again: who keeps the view must not reach them.
    try {
      function(own(Py_BuildValue("(iKO)", index, static_cast<unsigned long long>(address), view.get())));
    } catch (...) {
      if (PyObject* done = PyObject_CallMethod(view.get(), "release", nullptr)) Py_DECREF(done);
      else PyErr_Clear();
      throw;
    }
    own(PyObject_CallMethod(view.get(), "release", nullptr));
  }

  Callback allocate_, release_, write_, read_;
};

}  // namespace

std::shared_ptr<OwnMemory> memory_of_python(PyObject* owner) { return std::make_shared<PythonMemory>(owner); }

}  // namespace taeda::py
