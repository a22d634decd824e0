// Trial deletion over tensors and nodes; see Note [Cycles through .grad] and Note [Witnesses].
#include "taeda/autograd/cycles.h"

#include <algorithm>
#include <random>

#include "taeda/autograd/accumulate.h"
#include "taeda/autograd/hooks.h"
#include "taeda/autograd/saved.h"
#include "taeda/autograd/views.h"

namespace taeda::autograd {

void destroy(Watch* watch) noexcept { delete watch; }

namespace {

std::atomic<uint64_t> looked_at{0};

/// Tensors to search from, with the references to them that are known to go.
using Starts = std::unordered_map<TensorImpl*, uint32_t>;

bool recorded_gradient(const AutogradMeta* meta) noexcept { return meta->grad.defined() && meta->grad.requires_grad(); }
bool has_wrapper(const TensorImpl* impl) noexcept { return impl->python && !(impl->flags & kOwnsPython); }

/// Tensors without a witness that were found alive: held by a node's Python object, or by a backward that was running.
Watch& unwitnessed() {
  static Watch* const watch = new Watch;  // lives as long as any tensor
  return *watch;
}

void wait_in(Watch& watch, TensorImpl* impl) {
  meta_of(impl)->watch = Ref<Watch>::share(&watch);
  watch.waiting[meta_of(impl)] = impl;
}

/// One walk over all that the starts reach.
class Search : SavedVisitor {
 public:
  void run(const Starts& starts) {
    for (const auto& [impl, known] : starts) objects_[add(impl, false)].seen = known;
    for (size_t i = 0; i < objects_.size(); ++i) expand(i);
    looked_at.fetch_add(objects_.size(), std::memory_order_relaxed);
    mark_alive();
    watch_the_living(starts);
    free_garbage();
  }

 private:
  struct Object {
    void* at;
    bool is_node;
    bool external = false, alive = false, watched = false;
    uint32_t seen = 0;           // references to it that the walk met
    size_t first = 0, last = 0;  // what it refers to, in ends_
  };
  TensorImpl* tensor(const Object& o) const noexcept { return static_cast<TensorImpl*>(o.at); }
  Node* node(const Object& o) const noexcept { return static_cast<Node*>(o.at); }

  size_t add(void* object, bool is_node) {
    const auto [at, fresh] = index_.try_emplace(object, objects_.size());
    if (fresh) objects_.push_back({object, is_node});
    return at->second;
  }
  void see(void* object, bool is_node) {
    const size_t index = add(object, is_node);
    ++objects_[index].seen;
    ends_.push_back(index);
  }
  void see(const Tensor& t) {
    if (t.defined()) see(t.impl(), false);
  }
  void see(const Ref<Node>& node) {
    if (node) see(node.get(), true);
  }
  void operator()(const char*, SavedTensor& saved) override {
    see(saved.held());
    if (const Edge* edge = saved.packed_edge()) see(edge->node);
  }

  void expand(size_t index) {
    const Object object = objects_[index];
    const size_t first = ends_.size();
    if (object.is_node) expand(node(object));
    else expand(tensor(object));
    objects_[index].first = first;
    objects_[index].last = ends_.size();
  }
  void expand(TensorImpl* impl) {
    if (impl->base) see(impl->base.get(), false);
    if (const AutogradMeta* meta = meta_of(impl)) {
      see(meta->grad);
      see(meta->grad_fn);
    }
  }
  void expand(Node* node) {
    for (size_t i = 0; i < node->edge_count; ++i) see(node->edges[i].node);
    if (node->flags & kAccumulates) see(static_cast<AccumulateGrad*>(node)->leaf);
    if (Node* inner = node->inner()) {
      // The wrapped node belongs to this one: its edges and saved tensors are seen through it.
      see(static_cast<void*>(inner), true);
      return;
    }
    node->each_saved(*this);
  }

  bool held_from_outside(const Object& o) const noexcept {
    if (!o.is_node) return tensor(o)->use_count() > o.seen;
    return node(o)->owner.load(std::memory_order_relaxed) != nullptr || node(o)->use_count() > o.seen;
  }
  /// All that `from` reaches through objects for which `enter` holds; it marks them.
  template <class Enter>
  void flood(size_t from, const Enter& enter) {
    std::vector<size_t> work{from};
    while (!work.empty()) {
      Object& o = objects_[work.back()];
      work.pop_back();
      if (!enter(o)) continue;
      work.insert(work.end(), ends_.begin() + ptrdiff_t(o.first), ends_.begin() + ptrdiff_t(o.last));
    }
  }
  /// Objects with references from outside, and all that these reach, stay.
  void mark_alive() {
    for (size_t i = 0; i < objects_.size(); ++i) {
      objects_[i].external = held_from_outside(objects_[i]);
      if (objects_[i].external) flood(i, [](Object& o) { return !std::exchange(o.alive, true); });
    }
  }

  void watch_the_living(const Starts& starts) {
    // Only a leaf's gradient is known to change nowhere but where path_cut is told of it.
    std::vector<size_t> lasting, passing;
    for (size_t i = 0; i < objects_.size(); ++i) {
      const Object& o = objects_[i];
      if (o.is_node || !o.external || starts.contains(tensor(o)) || !has_wrapper(tensor(o)) || !meta_of(tensor(o)))
        continue;
      const AutogradMeta* meta = meta_of(tensor(o));
      if (recorded_gradient(meta) && !meta->grad_fn) lasting.push_back(i);
      else if (meta->grad_fn) passing.push_back(i);
    }
    static thread_local std::minstd_rand chance;
    std::shuffle(lasting.begin(), lasting.end(), chance);
    for (size_t i : lasting) set_watch(i, starts, true);
    for (size_t i : passing) set_watch(i, starts, false);
    for (const auto& [impl, known] : starts) {
      const Object& o = objects_[index_.at(impl)];
      if (o.alive && !o.watched && recorded_gradient(meta_of(impl))) wait_in(unwitnessed(), impl);
    }
  }
  void set_watch(size_t witness, const Starts& starts, bool holds) {
    if (objects_[witness].watched) return;
    auto watch = Ref<Watch>::adopt(new Watch);
    watch->witness = meta_of(tensor(objects_[witness]));
    watch->holds = holds;
    flood(witness, [&](Object& o) {
      if (std::exchange(o.watched, true)) return false;
      if (o.is_node) return true;
      AutogradMeta* meta = meta_of(tensor(o));
      if (!meta) return true;
      if (starts.contains(tensor(o)) && recorded_gradient(meta)) wait_in(*watch, tensor(o));
      else if (!meta->watch || meta->watch->waiting.empty()) meta->watch = watch;
      return true;
    });
  }

  void free_garbage() {
    std::vector<Tensor> gradients;
    for (const Object& o : objects_) {
      if (o.is_node || o.alive) continue;
      AutogradMeta* meta = meta_of(tensor(o));
      if (!meta) continue;
      if (meta->watch) meta->watch->waiting.erase(meta);
      meta->watch.reset();
      if (meta->grad.defined()) gradients.push_back(std::move(meta->grad));
    }
  }

  std::unordered_map<void*, size_t> index_;
  std::vector<Object> objects_;
  std::vector<size_t> ends_;
};

void add_waiting(Watch& watch, Starts& starts) {
  for (const auto& [meta, impl] : std::exchange(watch.waiting, {})) starts.try_emplace(impl, 0);
}

void search(Starts& starts) noexcept {
  try {
    add_waiting(unwitnessed(), starts);
    Search().run(starts);
  } catch (...) {
    // No memory for the search: the ring stays.
  }
}

std::vector<Ref<Watch>>& due() {
  static thread_local std::vector<Ref<Watch>> list;
  return list;
}

}  // namespace

void collect_cycle(TensorImpl* impl) noexcept {
  AutogradMeta* meta = meta_of(impl);
  if (!meta) return;
  // Only a recorded gradient can lead back to its leaf.
  const bool ring = recorded_gradient(meta);
  const Ref<Watch> watch = meta->watch;
  const bool witness = watch && watch->witness == meta;
  if (!ring && !witness) return;
  if (watch && watch->holds && !witness) {
    watch->waiting[meta] = impl;
    return;
  }
  Starts starts{{impl, 1}};  // the dying object's reference
  if (watch) {
    if (witness) watch->witness = nullptr;
    watch->holds = false;
    add_waiting(*watch, starts);
  }
  search(starts);
}

void moved_home(TensorImpl* impl) noexcept {
  const AutogradMeta* meta = meta_of(impl);
  if (!meta || !meta->watch) return;
  if (const auto found = meta->watch->waiting.find(meta); found != meta->watch->waiting.end()) found->second = impl;
}

void path_cut(AutogradMeta& meta) noexcept {
  const Ref<Watch> watch = meta.watch;
  watch->holds = false;
  if (watch->waiting.empty()) return;
  Starts starts;
  add_waiting(*watch, starts);
  search(starts);
}

void leave_watch(const AutogradMeta& meta) noexcept {
  Watch& watch = *meta.watch;
  watch.waiting.erase(&meta);
  if (watch.witness != &meta) return;
  watch.witness = nullptr;
  watch.holds = false;
  if (watch.waiting.empty()) return;
  due().push_back(meta.watch);
  searches_are_due = true;
}

void search_due() noexcept {
  Starts starts;
  for (const Ref<Watch>& watch : std::exchange(due(), {})) add_waiting(*watch, starts);
  searches_are_due = false;
  if (!starts.empty()) search(starts);
}

uint64_t searched_objects() noexcept { return looked_at.load(std::memory_order_relaxed); }

}  // namespace taeda::autograd
