// Marks on nodes: Note [Histories of directions].
#include "taeda/autograd/directions.h"

#include <span>

#include "taeda/autograd/hooks.h"
#include "taeda/autograd/layer.h"

namespace taeda::autograd {
namespace {

bool leads_to_duals_alone(const Node* node) noexcept {
  bool any = false;
  for (const Edge& edge : std::span(node->edges, node->edge_count)) {
    if (!edge.node) continue;
    if (!(edge.node->flags & kOfDirections)) return false;
    any = true;
  }
  return any;
}

struct Asked final : FixedNode<1> {
  const char* name() const override { return "AliasBackward0"; }
  void apply(Tensor* grads, Tensor* result) override { result[0] = std::move(grads[0]); }
};

}  // namespace

void mark_directions(Node* node) noexcept {
  if (leads_to_duals_alone(node)) node->flags |= kOfDirections;
}

bool of_directions(const Tensor& t) {
  if (!duals_made.load(std::memory_order_relaxed)) return false;
  const Ref<Node> node = grad_fn_of(t);
  return node && (node->flags & kOfDirections);
}

Ref<Node> shown_grad_fn(const Tensor& t) {
  Ref<Node> node = grad_fn_of(t);
  if (node && (node->flags & (kOfDirections | kAsked))) return nullptr;
  return node;
}

void begin_directions(const Tensor& dual) {
  const Ref<Node> node = collect_edge(dual).node;
  if (!node)
    fail(ErrorKind::Runtime, "begin_directions: argument 'dual' is no result of a recorded call, found ",
         describe(dual));
  duals_made.store(true, std::memory_order_relaxed);
  node->flags |= kOfDirections;
}

void ask_gradient(const Tensor& t) {
  auto node = make_node<Asked>();
  node->edges[0] = collect_edge(t);
  rebase_history(t, node.get());
  const Ref<Node> made = grad_fn_of(t);
  made->flags = uint8_t((made->flags & ~kOfDirections) | kAsked);
  retain_grad(t);
}

}  // namespace taeda::autograd
