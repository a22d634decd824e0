// What tensor-core asks of an installed autograd layer; all null until one is loaded.
#pragma once
#include "taeda/tensor.h"

struct _object;  // PyObject

namespace taeda {

/// CPython's visitproc.
using PyVisit = int (*)(_object* object, void* arg);

/// Table of functions that the autograd package fills in at import; `version` guards its layout.
struct AutogradApi {
  uint32_t version = 1;
  void (*set_requires_grad)(const Tensor& self, bool value) = nullptr;
  Tensor (*grad)(const Tensor& self) = nullptr;  // undefined: None
  void (*set_grad)(const Tensor& self, const Tensor& grad) = nullptr;
  bool (*is_leaf)(const Tensor& self) = nullptr;
  /// New reference to the Python object of the node, or None (PyObject* as void*).
  void* (*grad_fn)(const Tensor& self) = nullptr;
  /// The Python wrapper of `impl` died while others still hold it and `impl->grad` is set: the moment to look for
  /// cycles.
  void (*orphaned)(TensorImpl* impl) noexcept = nullptr;
  /// What the garbage collector may know of a tensor's Python hooks: visits those that nobody but this tensor's wrapper
  /// keeps alive.
  int (*visit_hooks)(TensorImpl* impl, PyVisit visit, void* arg) = nullptr;
  /// Drops the hooks that `visit_hooks` shows: the wrapper is part of a garbage cycle.
  void (*drop_hooks)(TensorImpl* impl) noexcept = nullptr;
  /// Brings the history of a view up to date with its base's.
  void (*refresh)(const Tensor& view) = nullptr;
  /// `impl` has taken over `grad` of another that is dying.
  void (*moved_home)(TensorImpl* impl) noexcept = nullptr;
  /// Whether calls with the tensor are recorded; a view may learn it from its base.
  bool (*tracked)(const Tensor& self) = nullptr;
  /// `self` shows other memory from now on, and what was saved of it at version `before` is to go on with that.
  void (*data_set)(const Tensor& self, uint32_t before) = nullptr;
  /// Whether a backward leaves the gradient of a tensor that is no leaf in it.
  bool (*retains_grad)(const Tensor& self) = nullptr;
  /// Whether calls with the tensor are recorded for tangents of forward mode alone, which programs do not see.
  bool (*of_directions)(const Tensor& self) = nullptr;
};
extern TAEDA_API AutogradApi autograd_api;

}  // namespace taeda
