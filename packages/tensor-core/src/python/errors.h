// Classes of errors that Python does not have.
#pragma once
#include "python/pytensor.h"

namespace taeda::py {

/// The class linalg.LinAlgError, borrowed.
PyObject* linalg_error() noexcept;

}  // namespace taeda::py
