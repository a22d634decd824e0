// Classes of errors that Python does not have.
#pragma once
#include "python/pytensor.h"

namespace taeda::py {

/// The class linalg.LinAlgError, borrowed.
PyObject* linalg_error() noexcept;
/// Of data that cannot become a tensor: of which of its bases depends in PyTorch on what was found and where.
PyObject* data_error() noexcept;
/// Of a call that does not fit the schema of an operator of `taeda.ops`: a TypeError, and a RuntimeError as in PyTorch.
PyObject* call_error() noexcept;
/// IndexError and its like that are RuntimeErrors too, for the Python module `errors`.
bool add_errors(PyObject* module);

}  // namespace taeda::py
