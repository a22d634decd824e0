// The generated method tables, one of each kind per family; null-terminated lists.
#pragma once
#include <Python.h>

namespace taeda::py {
extern PyMethodDef* const all_functions[];     // top-level and `ops`
extern PyMethodDef* const all_nn_functions[];  // `ops` only
extern PyMethodDef* const all_methods[];       // methods of Tensor

/// A Python module beside the top level (`linalg`, `signal.windows`) with its functions; the list ends with a null
/// name.
struct Namespace {
  const char* name;
  PyMethodDef* const* functions;
};
extern const Namespace all_namespaces[];
}  // namespace taeda::py
