// Everything that generated layer entries use: recording of results, in-place rules, saved values.
#pragma once
#include "taeda/arithmetic.h"
#include "taeda/autograd/meta.h"
#include "taeda/autograd/saved.h"
#include "taeda/ops.h"

namespace taeda::autograd {

/// Set by detect_anomaly: notes where in the program a node was made.
extern bool anomaly_enabled;
void note_location(Node* node);

/// Edges for arguments, in order: `collect_edges(node, 0, self, other)`.
inline void collect_edges(Node* node, size_t) {}
template <class... Rest>
inline void collect_edges(Node* node, size_t at, const Tensor& first, const Rest&... rest) {
  node->edges[at] = collect_edge(first);
  collect_edges(node, at + 1, rest...);
}
/// Edges for a list argument, from edge `at` on.
void collect_edges(Node* node, size_t at, TensorList list);

/// Makes `result` output number `nr` of `node`. Results that cannot carry gradients (integers, undefined) stay as they
/// are.
void set_history(const Tensor& result, Node* node, uint32_t nr = 0);
inline void set_history(TensorList results, Node* node, uint32_t first = 0) {
  for (const Tensor& t : results) set_history(t, node, first++);
}
/// The same for the result of a view operator on `self`: a result that turned out to be a copy is no view.
void set_view_history(const Tensor& result, const Tensor& self, Node* node, uint32_t nr = 0);

/// Before an in-place call that will be recorded: RuntimeError for leaves that require grad, views of them, and views
/// made under no_grad.
void check_inplace_grad(const OpEntry& op, const Tensor& self);
/// Before an out= call while gradients are recorded and an argument is tracked: RuntimeError.
[[noreturn]] void refuse_out(const OpEntry& op);
/// Before a call with an argument that requires grad and has no formula: NotImplementedError.
[[noreturn]] void refuse_argument(const OpEntry& op, const char* argument);
/// After an in-place call: `self` (or, for a view, its base) now stems from `node`.
void rebase_history(const Tensor& self, Node* node, uint32_t nr = 0);

/// What in-place calls save of `self` when the formula needs its old values: a copy that keeps the history.
Tensor saved_copy(const Tensor& self);

/// Node of an operator whose derivative is not known: running it raises NotImplementedError naming the operator.
struct UnknownDerivative final : DynamicNode {
  explicit UnknownDerivative(const char* op) : op_(op) {}
  const char* name() const override { return "NotDifferentiable"; }
  void apply(Tensor* grads, Tensor* result) override;

 private:
  const char* op_;
};

/// Node of an in-place operator that leaves nothing of the old value and takes no gradient to others (`zero_`).
struct Overwritten final : FixedNode<1> {
  explicit Overwritten(const char* name) : name_(name) { flags = kOverwrites; }
  const char* name() const override { return name_; }
  void apply(Tensor* grads, Tensor* result) override;

 private:
  const char* name_;
};

}  // namespace taeda::autograd
