// The engine: runs recorded nodes backwards from given tensors.
#pragma once
#include <functional>
#include <string_view>

#include "taeda/autograd/meta.h"
#include "taeda/wrappers.h"

namespace taeda::autograd {

/// A place in the graph: that of a tensor, or (GradientEdge) an edge without one.
struct Place {
  Tensor tensor;
  Edge edge;
};

struct RunOptions {
  bool retain_graph = false;
  bool create_graph = false;
  /// Non-empty: gradients of these places only. With `collect` they are returned, otherwise added to the .grad of the
  /// tensors there.
  std::span<const Place> inputs;
  bool collect = false;
  bool allow_unused = false;
};

/// Gradients of `roots`, weighted by `grads` (undefined items: ones, for single-element roots only), flow to the leaves
/// or to `inputs`. Returns one gradient per input when collecting (undefined for unused ones), else nothing.
std::vector<Tensor> run_backward(std::span<const Place> roots, TensorList grads, const RunOptions& options);

/// Number of the innermost backward that this thread runs; 0: none.
uint64_t current_run() noexcept;
/// Calls `callback` when that backward has computed all gradients, before it returns; RuntimeError outside of one.
void queue_callback(std::function<void()> callback);

/// Brings a gradient to the shape, dtype and kind (real or complex) of `info`; RuntimeError naming `who` when it
/// cannot.
Tensor fit_gradient(Tensor grad, const OutputInfo& info, const char* who, size_t index);
/// a + b, reusing the memory of whichever nobody else can see.
Tensor accumulate(Tensor a, Tensor b, bool record);
/// For the formula of a node with one input, named `node`: calls `add` with the sum to which the gradient, of these
/// sizes and this dtype, would be added next, if the running node is that one and the sum may be written in place. Then
/// the formula gives an undefined tensor. False, with nothing done, where it must give its gradient.
bool add_at_once(std::string_view node, IntSpan sizes, DType dtype, const std::function<void(const Tensor&)>& add);
/// Whether nobody but the caller can see the tensor object or its memory; a view of a lone temporary becomes a plain
/// tensor.
bool own_alone(Tensor& t) noexcept;
/// Whether gradients of these sizes and this dtype can be added to parts of `sum` in place.
bool can_take(const Tensor& sum, IntSpan sizes, DType dtype) noexcept;
}  // namespace taeda::autograd
