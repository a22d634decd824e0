// Whether calls with a tensor are recorded, also where it has not been told yet.
#pragma once
#include "taeda/autograd_api.h"

namespace taeda {

/// Asks the autograd layer about a view, which learns late that its base has become one that is recorded.
inline bool is_tracked(const Tensor& t) {
  if (t.requires_grad()) return true;
  return t.defined() && t.is_view() && autograd_api.tracked && autograd_api.tracked(t);
}

/// Whether programs are told that the tensor requires grad.
inline bool shows_grad(const Tensor& t) {
  return is_tracked(t) && !(autograd_api.of_directions && autograd_api.of_directions(t));
}

}  // namespace taeda
