// Trial deletion over tensors and nodes; see Note [Cycles through .grad].
#include "taeda/autograd/cycles.h"

#include <unordered_map>

#include "taeda/autograd/accumulate.h"
#include "taeda/autograd/hooks.h"
#include "taeda/autograd/saved.h"
#include "taeda/autograd/views.h"

namespace taeda::autograd {
namespace {

/// One reachable object: how many references to it were seen, and how many it has.
struct Found {
  bool is_node;
  uint32_t seen = 0;
  bool alive = false;
};

class Collector : SavedVisitor {
 public:
  /// True when the object at the start is reachable only from what it reaches itself.
  void run(TensorImpl* start) {
    enter(start);
    while (!work_.empty()) {
      void* object = work_.back();
      work_.pop_back();
      if (found_[object].is_node)
        expand(static_cast<Node*>(object));
      else
        expand(static_cast<TensorImpl*>(object));
    }
    mark_alive();
    free_garbage();
  }

 private:
  using Ends = std::vector<void*>;

  void see(void* object, bool is_node) {
    auto [at, fresh] = found_.try_emplace(object, Found{is_node});
    ++at->second.seen;
    if (current_) ends_[current_].push_back(object);
    if (fresh) work_.push_back(object);
  }
  void enter(TensorImpl* impl) {
    found_.try_emplace(impl, Found{false, 1});  // the dying wrapper's reference
    work_.push_back(impl);
  }
  void see(const Tensor& t) {
    if (t.defined()) see(t.impl(), false);
  }
  void see(const Ref<Node>& node) {
    if (node) see(static_cast<void*>(node.get()), true);
  }
  void operator()(const char*, SavedTensor& saved) override { see(saved.held()); }

  void expand(TensorImpl* impl) {
    current_ = impl;
    if (impl->base) see(impl->base.get(), false);
    if (const AutogradMeta* meta = meta_of(impl)) {
      see(meta->grad);
      see(meta->grad_fn);
    }
  }
  void expand(Node* node) {
    current_ = node;
    for (size_t i = 0; i < node->edge_count; ++i) see(node->edges[i].node);
    if (node->flags & kAccumulates) see(static_cast<AccumulateGrad*>(node)->leaf);
    if (Node* inner = node->inner()) {
      // The wrapped node belongs to this one: its edges and saved tensors are seen through it.
      see(static_cast<void*>(inner), true);
      return;
    }
    node->each_saved(*this);
  }

  static uint32_t references(const std::pair<void* const, Found>& item) {
    return item.second.is_node ? static_cast<Node*>(item.first)->use_count() : static_cast<TensorImpl*>(item.first)->use_count();
  }
  /// Objects with references from outside, and all that these reach, stay.
  void mark_alive() {
    Ends work;
    for (auto& item : found_) {
      const bool running = item.second.is_node && static_cast<Node*>(item.first)->owner.load() != nullptr;
      if (running || references(item) > item.second.seen) work.push_back(item.first);
    }
    while (!work.empty()) {
      void* object = work.back();
      work.pop_back();
      Found& found = found_[object];
      if (found.alive) continue;
      found.alive = true;
      for (void* end : ends_[object]) work.push_back(end);
    }
  }
  void free_garbage() {
    std::vector<Tensor> gradients;
    for (auto& [object, found] : found_) {
      if (found.is_node || found.alive) continue;
      AutogradMeta* meta = meta_of(static_cast<TensorImpl*>(object));
      if (meta && meta->grad.defined()) gradients.push_back(std::move(meta->grad));
    }
  }

  std::unordered_map<void*, Found> found_;
  std::unordered_map<void*, Ends> ends_;
  Ends work_;
  void* current_ = nullptr;
};

}  // namespace

void collect_cycle(TensorImpl* impl) noexcept {
  const AutogradMeta* meta = meta_of(impl);
  // Only a recorded gradient can lead back to its leaf.
  if (!meta || !meta->grad.defined() || !meta->grad.requires_grad()) return;
  try {
    Collector().run(impl);
  } catch (...) {
    // No memory for the search: the ring stays.
  }
}

}  // namespace taeda::autograd
