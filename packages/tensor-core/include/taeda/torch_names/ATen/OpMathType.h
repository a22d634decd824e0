// What PyTorch has under this name: the type that sums of elements are kept in.
#pragma once
#include "taeda/torch_names/names.h"

namespace taeda {
template <class T>
using opmath_type = T;
}  // namespace taeda
