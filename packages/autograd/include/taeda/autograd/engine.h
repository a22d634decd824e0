// The engine: runs recorded nodes backwards from given tensors.
#pragma once
#include "taeda/autograd/meta.h"

namespace taeda::autograd {

struct RunOptions {
  bool retain_graph = false;
  bool create_graph = false;
  /// Non-empty: gradients of these tensors only. With `collect` they are returned, otherwise added to their .grad.
  TensorList inputs;
  bool collect = false;
  bool allow_unused = false;
};

/// Gradients of `roots`, weighted by `grads` (undefined items: ones, for single-element roots only), flow to the leaves or to `inputs`.
/// Returns one gradient per input when collecting (undefined for unused ones), else nothing.
std::vector<Tensor> run_backward(TensorList roots, TensorList grads, const RunOptions& options);

/// Brings a gradient to the shape, dtype and kind (real or complex) of `info`; RuntimeError naming `who` when it cannot.
Tensor fit_gradient(Tensor grad, const OutputInfo& info, const char* who, size_t index);
/// a + b, reusing the memory of whichever nobody else can see.
Tensor accumulate(Tensor a, Tensor b, bool record);
/// Whether nobody but the caller can see the tensor object or its memory; a view of a lone temporary becomes a plain tensor.
bool own_alone(Tensor& t) noexcept;

}  // namespace taeda::autograd
