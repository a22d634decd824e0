// What compiled extensions of other packages (autograd) need of the Python objects that tensor-core's extension
// defines. PyObject* travels as void*, so that libtaeda itself stays free of Python. Filled in when
// `taeda_tensor_core._C` is imported.
#pragma once
#include <exception>

#include "taeda/tensor.h"

namespace taeda {

struct PythonApi {
  uint32_t version = 1;
  /// Whether the object is a Tensor, and the tensor in it (borrowed; only for Tensors).
  bool (*is_tensor)(void* object) = nullptr;
  const Tensor* (*tensor_of)(void* object) = nullptr;
  /// New reference to the tensor's one wrapper; None when undefined.
  void* (*wrap)(const Tensor& tensor) = nullptr;
  /// In a catch block: sets the Python error that the current C++ exception stands for.
  void (*set_error)() noexcept = nullptr;
  /// Throws the C++ exception that carries the Python error now set: crosses any C++ frames and comes out unchanged.
  void (*throw_error)() = nullptr;
  /// In a catch block: where the current C++ exception stands for a Python error, takes that out of the interpreter,
  /// tells its kind and text, and gives an exception that carries it on any thread; null where it does not.
  std::exception_ptr (*carry_error)(ErrorKind& kind, std::string& text) noexcept = nullptr;
  /// A number for the line of the user's program that this thread is at, 0 for none, and its text.
  uint32_t (*user_line)() noexcept = nullptr;
  std::string (*line_text)(uint32_t line) = nullptr;
};
extern TAEDA_API PythonApi python_api;

}  // namespace taeda
