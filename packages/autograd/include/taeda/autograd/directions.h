// Histories that lead to dual tensors alone: forward mode records them, and programs see no part of them.
#pragma once
#include <atomic>

#include "taeda/autograd/meta.h"

namespace taeda::autograd {

/// Note [Histories of directions]
/// Tangents follow from the graph between a dual tensor and a result (forward_ad.py), so calls with duals are recorded.
/// A program asked for no gradient of them: a node all of whose edges lead to duals has kOfDirections, and its tensors
/// say that they are leaves without gradient. A tensor of such a history that is told to require grad becomes the
/// output of a node with kAsked, which is no part of that history, and still says that it is a leaf.
bool of_directions(const Tensor& t);
/// What programs see: a node without either mark, or null.
Ref<Node> shown_grad_fn(const Tensor& t);
/// The history of `dual` begins with its tangent.
void begin_directions(const Tensor& dual);
void ask_gradient(const Tensor& t);

/// Whether any dual was ever made.
inline constinit std::atomic<bool> duals_made{false};
void mark_directions(Node* node) noexcept;
/// Gives the node its place in the order of execution, after its edges.
inline void take_place(Node* node) noexcept {
  node->sequence = Node::next_sequence();
  if (duals_made.load(std::memory_order_relaxed)) [[unlikely]]
    mark_directions(node);
}

}  // namespace taeda::autograd
