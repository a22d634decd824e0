// Anomaly mode's Python side: a position is kept as (code object, instruction) pairs and becomes text only in an error.
#include "python/objects.h"
// After Python.h, which objects.h brings.
#include <frameobject.h>

#include "taeda/autograd/anomaly.h"

namespace taeda::autograd::py {
namespace {

constexpr int kFrames = 12;

/// A list of (code, line) of the innermost frames.
void* record() {
  if (!PyGILState_Check()) return nullptr;
  PyObject* list = PyList_New(0);
  PyFrameObject* frame = PyEval_GetFrame();
  Py_XINCREF(frame);
  for (int i = 0; frame && list && i < kFrames; ++i) {
    const Object code(reinterpret_cast<PyObject*>(PyFrame_GetCode(frame)));
    const Object item(Py_BuildValue("Oi", code.get(), PyFrame_GetLineNumber(frame)));
    if (!item || PyList_Append(list, item.get()) < 0) PyErr_Clear();
    PyFrameObject* back = PyFrame_GetBack(frame);
    Py_DECREF(frame);
    frame = back;
  }
  Py_XDECREF(frame);
  return list;
}

std::string describe(void* location) {
  Gil gil;
  PyObject* list = static_cast<PyObject*>(location);
  std::string text;
  for (Py_ssize_t i = PyList_GET_SIZE(list) - 1; i >= 0; --i) {
    PyObject* item = PyList_GET_ITEM(list, i);
    auto* code = reinterpret_cast<PyCodeObject*>(PyTuple_GET_ITEM(item, 0));
    const char* file = PyUnicode_AsUTF8(code->co_filename);
    const char* function = PyUnicode_AsUTF8(code->co_name);
    text += std::string("  File \"") + (file ? file : "?") + "\", line " +
            std::to_string(PyLong_AsLong(PyTuple_GET_ITEM(item, 1))) + ", in " + (function ? function : "?") + "\n";
  }
  return text;
}

void warn(const std::string& text) noexcept {
  Gil gil;
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  if (PyErr_WarnEx(PyExc_UserWarning, text.c_str(), 1) < 0) PyErr_Clear();
  PyErr_Restore(type, value, trace);
}

}  // namespace

void init_anomaly() {
  record_location = record;
  describe_location = describe;
  warn_location = warn;
}

}  // namespace taeda::autograd::py
