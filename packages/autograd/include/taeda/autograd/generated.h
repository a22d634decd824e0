// Helpers of the generated layer: facts about arguments that nodes keep, and gradients of lists.
#pragma once
#include "taeda/autograd/formulas.h"
#include "taeda/autograd/layer.h"
#include "taeda/decompose.h"

namespace taeda::autograd {

/// What `x.size(d)` becomes in a formula when only the sizes of x were kept.
inline int64_t size_at(const Shape& sizes, int64_t d) { return sizes[size_t(d < 0 ? d + int64_t(sizes.size()) : d)]; }
inline Shape sizes_of(const Tensor& t) { return t.defined() ? Shape(t.sizes()) : Shape(); }
inline Shape strides_of(const Tensor& t) { return t.defined() ? Shape(t.strides()) : Shape(); }
inline std::vector<Shape> sizes_of(TensorList list) {
  std::vector<Shape> out;
  out.reserve(list.size());
  for (const Tensor& item : list) out.push_back(sizes_of(item));
  return out;
}

inline bool none_defined(const Tensor* grads, size_t count) {
  for (size_t i = 0; i < count; ++i)
    if (grads[i].defined()) return false;
  return true;
}
/// Gradients of a list argument to their edges.
inline void spread(std::vector<Tensor> grads, Tensor* into, size_t count) {
  for (size_t i = 0; i < grads.size() && i < count; ++i) into[i] = std::move(grads[i]);
}
inline void set_view_history(TensorList results, const Tensor& self, Node* node) {
  uint32_t nr = 0;
  for (const Tensor& t : results) set_view_history(t, self, node, nr++);
}

}  // namespace taeda::autograd
