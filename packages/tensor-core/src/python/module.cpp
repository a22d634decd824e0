// The extension module taeda_tensor_core._C: types, functions, and the lock that kernels give up.
#include "python/bindings.h"
#include "python/internal.h"
#include "python/library.h"
#include "taeda/parallel.h"

namespace taeda::py {

void fill_python_api();

namespace {

void install_host_lock() {
  host_lock.release = []() -> void* { return PyGILState_Check() ? PyEval_SaveThread() : nullptr; };
  host_lock.acquire = [](void* token) { PyEval_RestoreThread(static_cast<PyThreadState*>(token)); };
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

bool fill(PyObject* module) {
  PyMethodDef* const own_tables[] = {data_functions, buffer_functions,  dlpack_functions,           runtime_functions,
                                     text_functions, stream_functions, library_functions, library_autograd_functions, plugin_functions, override_functions, nullptr};
  return init_dtype(module) && init_device(module) && init_generator(module) && init_size(module) &&
         init_tensor(module) && init_mode(module) && add_tables(module, all_functions) &&
         add_tables(module, own_tables) && init_override(module) && add_ops(module);
}

PyModuleDef definition{PyModuleDef_HEAD_INIT,
                       "taeda_tensor_core._C",
                       "Tensors and operators, compiled.",
                       -1,
                       nullptr,
                       nullptr,
                       nullptr,
                       nullptr,
                       nullptr};

}  // namespace
}  // namespace taeda::py

PyMODINIT_FUNC PyInit__C() {
  using namespace taeda::py;
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
  fill_python_api();
  return module;
}
