// What C++ extensions of taeda include: tensors, operators and options as values of C++, operators of one's own, and
// pybind11's conversions. Nothing but taeda's C table stands behind it (taeda/abi.h), so that an extension keeps
// working when taeda grows, and links nothing of it.
//
//     #include <taeda/extension.h>
//     taeda::Tensor twice(const taeda::Tensor& x) { return x + x; }
//     PYBIND11_MODULE(TAEDA_EXTENSION_NAME, m) { m.def("twice", &twice); }
//
// built by `taeda.utils.cpp_extension`. docs/guides/write-a-cpp-extension.md shows the rest. With TAEDA_WITHOUT_PYTHON
// neither Python nor pybind11 is needed.
#pragma once
#include "taeda/extension/library.h"
#ifndef TAEDA_WITHOUT_PYTHON
#include "taeda/extension/autograd.h"
#endif

#include "taeda/extension/torch_macros.h"
