// The extension module taeda_tensor_core._C: types, functions, and the lock that kernels give up.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include "python/bindings.h"
#include "python/errors.h"
#include "python/internal.h"
#include "python/library.h"
#include "python/override.h"
#include "taeda/interrupt.h"
#include "taeda/keys.h"
#include "taeda/work.h"
#include "taeda/parallel.h"

namespace taeda::py {

void fill_python_api();

namespace {

void* give_lock_up() {
  if (!PyGILState_Check()) return nullptr;
  threads_at_work.fetch_add(1);
  return PyEval_SaveThread();
}
void take_lock_again(void* token) {
  if (host_ended) leave_work();
  threads_at_work.fetch_sub(1);
  not_unwound([token] { PyEval_RestoreThread(static_cast<PyThreadState*>(token)); });
}

/// The interpreter is gone: kernels of daemon threads come to an end before the process takes down what they use.
void wait_for_work() {
  using namespace std::chrono;
  host_ended = true;
  const auto limit = steady_clock::now() + seconds(10);
  while (threads_at_work > 0 && steady_clock::now() < limit) std::this_thread::sleep_for(milliseconds(1));
}

void install_host_lock() {
  host_lock.release = give_lock_up;
  host_lock.acquire = take_lock_again;
  host_lock.turns = PyObject_CallNoArgs(reinterpret_cast<PyObject*>(&PyBaseObject_Type));
  Py_AtExit(wait_for_work);
}

/// Static types, free-lists and the thread's state are the process's: one interpreter has them.
bool refuse_subinterpreter() {
  if (PyInterpreterState_Get() == PyInterpreterState_Main()) return false;
  PyErr_SetString(PyExc_ImportError,
                  "taeda_tensor_core works in the main interpreter only, not in sub-interpreters: use threads or "
                  "processes");
  return true;
}
PyObject* check_interpreter(PyObject*, PyObject*) { return refuse_subinterpreter() ? nullptr : Py_NewRef(Py_None); }

/// What the handler of a signal raised within an operator.
struct SignalError : CarriedError, Interrupted {
  explicit SignalError(CarriedError raised) : CarriedError(std::move(raised)) {}
};

/// Handlers are user code: they meet layers and modes as programs do at their beginning, whatever the operator, or the
/// run of backward that it belongs to, has switched off.
void run_signal_handlers() {
  if (!Py_IsInitialized()) return;
  const Gil gil;
  if (PyErr_Occurred()) return;
  const ThreadState before = thread_state;
  thread_state.excluded &= ~KeySet::of(Layer::Autograd).bits();
  thread_state.grad_enabled = true;
  thread_state.inference_mode = false;
  const bool raised = PyErr_CheckSignals() < 0;
  thread_state.grad_enabled = before.grad_enabled;
  thread_state.inference_mode = before.inference_mode;
  restore_excluded(before.excluded);  // last: its fence holds the two above as well
  if (raised) throw SignalError(take_error());
}

bool add_tables(PyObject* module, PyMethodDef* const* tables) {
  for (; *tables; ++tables)
    if (PyModule_AddFunctions(module, *tables) < 0) return false;
  return true;
}

/// The functions that stand in one module stand in the other too, as the same objects.
bool share_tables(PyObject* from, PyObject* to, PyMethodDef* const* tables) {
  for (; *tables; ++tables)
    for (const PyMethodDef* row = *tables; row->ml_name; ++row) {
      const Object function(PyObject_GetAttrString(from, row->ml_name));
      if (!function || PyModule_AddObjectRef(to, row->ml_name, function.get()) < 0) return false;
    }
  return true;
}

/// `ops`: every operator function, also those that have no place at top level.
bool add_ops(PyObject* module) {
  PyObject* ops = PyModule_New("taeda_tensor_core.ops");
  if (!ops) return false;
  const bool ok = share_tables(module, ops, all_functions) && add_tables(ops, all_nn_functions);
  return PyModule_AddObject(module, "ops", ops) == 0 && ok;
}

/// The module of a dotted name below `module`, made where it is not there yet. One with modules in it counts as a
/// package.
Object namespace_module(PyObject* module, const std::string& name) {
  Object place(Py_NewRef(module));
  for (size_t begin = 0, end; begin < name.size(); begin = end + 1) {
    end = std::min(name.find('.', begin), name.size());
    const std::string part = name.substr(begin, end - begin);
    if (!PyObject_HasAttrString(place.get(), part.c_str())) {
      const Object made(PyModule_New(("taeda_tensor_core." + name.substr(0, end)).c_str()));
      if (!made || PyModule_AddObjectRef(place.get(), part.c_str(), made.get()) < 0) return Object();
      const Object path(end < name.size() ? PyList_New(0) : nullptr);
      if (path && PyModule_AddObjectRef(made.get(), "__path__", path.get()) < 0) return Object();
    }
    place = Object(PyObject_GetAttrString(place.get(), part.c_str()));
  }
  return place;
}

bool add_namespaces(PyObject* module) {
  for (const Namespace* space = all_namespaces; space->name; ++space) {
    const Object made = namespace_module(module, space->name);
    if (!made || !add_tables(made.get(), space->functions)) return false;
    PyObject* const error = std::string_view(space->name) == "linalg" ? linalg_error() : nullptr;
    if (error && PyModule_AddObjectRef(made.get(), "LinAlgError", error) < 0) return false;
  }
  return true;
}

bool fill(PyObject* module) {
  PyMethodDef* const own_tables[] = {dtype_functions,
                                     devices_together_functions,
                                     data_functions,
                                     buffer_functions,
                                     dlpack_functions,
                                     runtime_functions,
                                     text_functions,
                                     stream_functions,
                                     library_functions,
                                     operator_functions,
                                     library_autograd_functions,
                                     plugin_functions,
                                     override_functions,
                                     level_functions,
                                     ending_functions,
                                     storage_watch_functions,
                                     step_functions,
                                     nullptr};
  show_warnings();
  return add_errors(module) && init_dtype(module) && init_device(module) && init_generator(module) &&
         init_size(module) && init_tensor(module) && init_mode(module) && init_operator(module) &&
         add_tables(module, all_functions) && add_tables(module, own_tables) && init_override(module) &&
         add_ops(module) && add_namespaces(module);
}

PyMethodDef methods[] = {{"_check_interpreter", check_interpreter, METH_NOARGS, "Refuses sub-interpreters."},
                         {nullptr, nullptr, 0, nullptr}};

PyModuleDef definition{PyModuleDef_HEAD_INIT,
                       "taeda_tensor_core._C",
                       "Tensors and operators, compiled.",
                       -1,
                       methods,
                       nullptr,
                       nullptr,
                       nullptr,
                       nullptr};

}  // namespace
}  // namespace taeda::py

PyMODINIT_FUNC PyInit__C() {
  using namespace taeda::py;
  if (refuse_subinterpreter()) return nullptr;
  PyObject* module = PyModule_Create(&definition);
  if (!module) return nullptr;
  const bool ok = [&] {
    try {
      return fill(module);
    } catch (...) {
      set_python_error();
      return false;
    }
  }();
  if (!ok) {
    Py_DECREF(module);
    return nullptr;
  }
  install_host_lock();
  taeda::host_signals = run_signal_handlers;
  fill_python_api();
  taeda::needs_no_lock(module);
  return module;
}
