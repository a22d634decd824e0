// What tensor-core asks of an installed autograd layer; all null until one is loaded.
#pragma once
#include "taeda/tensor.h"

namespace taeda {

/// Table of functions that the autograd package fills in at import; `version` guards its layout.
struct AutogradApi {
  uint32_t version = 1;
  void (*set_requires_grad)(const Tensor& self, bool value) = nullptr;
  Tensor (*grad)(const Tensor& self) = nullptr;                    // undefined: None
  void (*set_grad)(const Tensor& self, const Tensor& grad) = nullptr;
  bool (*is_leaf)(const Tensor& self) = nullptr;
  /// New reference to the Python object of the node, or None (PyObject* as void*).
  void* (*grad_fn)(const Tensor& self) = nullptr;
  /// Python-level implementations of `backward`, `register_hook`, `retain_grad`...: looked up by attribute name; new reference or null.
  void* (*attribute)(const char* name) = nullptr;
  /// The Python wrapper of `impl` died while others still hold it and `impl->grad` is set: the moment to look for cycles.
  void (*orphaned)(TensorImpl* impl) noexcept = nullptr;
};
extern TAEDA_API AutogradApi autograd_api;

}  // namespace taeda
