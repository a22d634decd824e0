// What functions that make tensors give.
#pragma once
#include "taeda/autograd_api.h"
#include "taeda/tensor.h"

namespace taeda::impl {

/// A tensor of this call's own, as it is given: what has filled it was no change of it.
inline Tensor as_made(const Tensor& made, bool requires_grad) {
  if (Storage* const storage = made.impl()->storage.get()) {
    storage->version = 0;
    storage->last_mutator = 0;
  }
  if (requires_grad) {
    check(autograd_api.set_requires_grad != nullptr, ErrorKind::Runtime,
          "requires_grad=True needs an autograd provider and none is loaded; pip install taeda-autograd");
    autograd_api.set_requires_grad(made, true);
  }
  return made;
}

}  // namespace taeda::impl
