// What PyTorch has under this name: quotients rounded up.
#pragma once
#include "taeda/torch_names/names.h"

namespace taeda {
template <class T>
TAEDA_HOST_DEVICE constexpr T ceil_div(T a, T b) {
  return (a + b - 1) / b;
}
}  // namespace taeda
