// Dimensions that a user names, where the argument has a name of its own.
#pragma once
#include "taeda/tensor.h"

namespace taeda {

/// wrap_dim for an argument that is not called `dim`.
TAEDA_API int64_t wrap_dim(int64_t dim, int64_t ndim, const char* op, const char* argument);

}  // namespace taeda
