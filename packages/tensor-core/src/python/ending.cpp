// What is to be done when an object ends, in a way that loses no Ctrl-C.
#include <sys/syscall.h>
#include <unistd.h>

#include "python/internal.h"

namespace taeda::py {
namespace {

// Note [Interrupts at an end]
// The interpreter prints what a finalizer raises, and goes on; a Ctrl-C whose handler happens to run in one is lost. So
// that an object has ended is noted by a function of C, in which no handler runs. What comes out of the Python function
// that acts on it is raised anew where the program was, by the interpreter's next look at what is pending.

constexpr const char* kEnding = "taeda.ending";

struct Ending {
  Object note, value, act;
};

/// Called by the main thread's interpreter between two instructions.
int raise_anew(void* exception) {
  const Object raised(static_cast<PyObject*>(exception));
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(raised.get())), raised.get());
  return -1;
}

/// An exception that comes out of a finalizer: for the program where it is an interrupt, else told.
void hand_on(PyObject* about) {
  const bool interrupt = !PyErr_ExceptionMatches(PyExc_Exception) && syscall(SYS_gettid) == getpid();
  if (interrupt) {
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    if (Py_AddPendingCall(raise_anew, Py_NewRef(value)) == 0) {
      Py_XDECREF(type), Py_XDECREF(value), Py_XDECREF(traceback);
      return;
    }
    Py_DECREF(value);
    PyErr_Restore(type, value, traceback);
  }
  PyErr_WriteUnraisable(about);
}

void end(PyObject* capsule) {
  const std::unique_ptr<Ending> ending(static_cast<Ending*>(PyCapsule_GetPointer(capsule, kEnding)));
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  if (!Object(PyObject_CallOneArg(ending->note.get(), ending->value.get()))) PyErr_WriteUnraisable(ending->note.get());
  if (ending->act.get() != Py_None && !Object(PyObject_CallNoArgs(ending->act.get()))) hand_on(ending->act.get());
  PyErr_Restore(type, value, traceback);
}

PyObject* at_end(PyObject*, PyObject* args) {
  PyObject *note, *value, *act;
  if (!PyArg_ParseTuple(args, "OOO:at_end", &note, &value, &act)) return nullptr;
  return guarded([&] {
    auto ending = std::make_unique<Ending>(share(note), share(value), share(act));
    PyObject* const made = own(PyCapsule_New(ending.get(), kEnding, end)).release();
    ending.release();
    return made;
  });
}

}  // namespace

PyMethodDef ending_functions[] = {{"_at_end", at_end, METH_VARARGS, nullptr}, {nullptr, nullptr, 0, nullptr}};

}  // namespace taeda::py
