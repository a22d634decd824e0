// Registration and removal of hooks.
#include "taeda/autograd/directions.h"
#include "taeda/autograd/hooks.h"

#include <algorithm>

namespace taeda::autograd {

void (*release_python_object)(void* object) noexcept = nullptr;

namespace {

template <class List>
void erase_id(List& list, uint64_t id) noexcept {
  const auto found = std::ranges::find_if(list, [id](const auto& hook) { return hook.id == id; });
  if (found == list.end()) return;
  // Dropping a hook may run any code, also code that comes back here: the list is in order by then.
  const auto dropped = std::move(*found);
  list.erase(found);
}

void require_tracked(const Tensor& t, const char* op) {
  if (!tracked(t) || of_directions(t)) [[unlikely]]
    fail(ErrorKind::Runtime, op, ": cannot register a hook on a tensor that doesn't require gradient: ", describe(t));
}

}  // namespace

NodeExtras::~NodeExtras() {
  if (metadata) release_python_object(metadata);
  if (location) release_python_object(location);
}

uint64_t next_hook_id() noexcept {
  static std::atomic<uint64_t> counter{0};
  return ++counter;
}

uint64_t add_tensor_hook(const Tensor& t, TensorHook hook, void* python) {
  require_tracked(t, "register_hook");
  const uint64_t id = next_hook_id();
  if (const Ref<Node> node = grad_fn_of(t)) {
    ensure_extras(node.get()).on_output.push_back({id, meta_of(t)->output, std::move(hook), python});
  } else {
    AutogradMeta& meta = ensure_meta(t.impl());
    if (!meta.hooks) meta.hooks = new HookList;
    meta.hooks->on_grad.push_back({id, std::move(hook), python});
  }
  return id;
}

uint64_t add_leaf_hook(const Tensor& leaf, LeafHook hook, void* python) {
  require_tracked(leaf, "register_post_accumulate_grad_hook");
  if (grad_fn_of(leaf)) [[unlikely]]
    fail(
        ErrorKind::Runtime,
        "register_post_accumulate_grad_hook: post accumulate grad hooks cannot be registered on non-leaf tensors, got ",
        describe(leaf));
  AutogradMeta& meta = ensure_meta(leaf.impl());
  if (!meta.hooks) meta.hooks = new HookList;
  const uint64_t id = next_hook_id();
  meta.hooks->after_accumulate.push_back({id, std::move(hook), python});
  return id;
}

uint64_t add_node_hook(Node* node, NodeHook hook, void* python) {
  const uint64_t id = next_hook_id();
  ensure_extras(node).before.push_back({id, std::move(hook), python});
  return id;
}

uint64_t add_post_hook(Node* node, PostHook hook, void* python) {
  const uint64_t id = next_hook_id();
  ensure_extras(node).after.push_back({id, std::move(hook), python});
  return id;
}

void remove_hook(const Tensor& t, uint64_t id) noexcept {
  AutogradMeta* meta = meta_of(t);
  if (!meta) return;
  if (meta->hooks) {
    erase_id(meta->hooks->on_grad, id);
    erase_id(meta->hooks->after_accumulate, id);
  }
  if (const Ref<Node> node = meta->grad_fn) remove_hook(node.get(), id);
}

std::vector<std::pair<uint64_t, void*>> python_hooks(const Tensor& t) {
  std::vector<std::pair<uint64_t, void*>> found;
  const auto add = [&](const auto& hook) {
    if (hook.python) found.emplace_back(hook.id, hook.python);
  };
  const AutogradMeta* meta = meta_of(t);
  if (const Ref<Node> node = grad_fn_of(t)) {
    if (node->extras)
      for (const OutputHook& hook : node->extras->on_output)
        if (hook.output == meta_of(t)->output) add(hook);
  } else if (meta && meta->hooks) {
    std::ranges::for_each(meta->hooks->on_grad, add);
  }
  return found;
}

void remove_hook(Node* node, uint64_t id) noexcept {
  if (!node->extras) return;
  erase_id(node->extras->on_output, id);
  erase_id(node->extras->before, id);
  erase_id(node->extras->after, id);
}

namespace {

/// The node of a tensor's history when only the tensor keeps it.
Node* own_node(TensorImpl* impl) noexcept {
  const AutogradMeta* meta = meta_of(impl);
  return meta && meta->grad_fn && meta->grad_fn->use_count() == 1 ? meta->grad_fn.get() : nullptr;
}

template <class List>
int visit_list(const List& list, PyVisit visit, void* arg) {
  for (const auto& hook : list)
    if (hook.python)
      if (const int stop = visit(static_cast<_object*>(hook.python), arg)) return stop;
  return 0;
}

}  // namespace

int visit_hooks(TensorImpl* impl, PyVisit visit, void* arg) {
  const AutogradMeta* meta = meta_of(impl);
  if (!meta || impl->use_count() != 1) return 0;
  int stop = 0;
  if (const HookList* hooks = meta->hooks) {
    stop = visit_list(hooks->on_grad, visit, arg);
    if (!stop) stop = visit_list(hooks->after_accumulate, visit, arg);
  }
  const Node* node = own_node(impl);
  if (stop || !node || !node->extras) return stop;
  stop = visit_list(node->extras->on_output, visit, arg);
  if (!stop) stop = visit_list(node->extras->before, visit, arg);
  if (!stop) stop = visit_list(node->extras->after, visit, arg);
  return stop;
}

void drop_hooks(TensorImpl* impl) noexcept {
  AutogradMeta* meta = meta_of(impl);
  if (!meta || impl->use_count() != 1) return;
  // Dropping a hook may run any code, also code that comes back here: the lists are empty by then.
  HookList hooks;
  if (meta->hooks) std::swap(hooks, *meta->hooks);
  std::vector<OutputHook> on_output;
  std::vector<Hook<NodeHook>> before;
  std::vector<Hook<PostHook>> after;
  if (Node* node = own_node(impl); node && node->extras) {
    on_output.swap(node->extras->on_output);
    before.swap(node->extras->before);
    after.swap(node->extras->after);
  }
}

void retain_grad(const Tensor& t) {
  require_tracked(t, "retain_grad");
  const Ref<Node> node = grad_fn_of(t);
  if (!node || retains_grad(t)) return;
  AutogradMeta* meta = meta_of(t);
  ensure_extras(node.get()).retained.emplace_back(meta->output, meta);
}

bool retains_grad(const Tensor& t) noexcept {
  const AutogradMeta* meta = meta_of(t);
  if (!meta || !meta->grad_fn || !meta->grad_fn->extras) return false;
  const auto& list = meta->grad_fn->extras->retained;
  return std::any_of(list.begin(), list.end(), [&](const auto& item) { return item.second == meta; });
}

void forget_retained(AutogradMeta& meta) noexcept {
  if (!meta.grad_fn || !meta.grad_fn->extras) return;
  std::erase_if(meta.grad_fn->extras->retained, [&](const auto& item) { return item.second == &meta; });
}

void move_retained(AutogradMeta& meta, Node* to, uint32_t output) {
  if (!meta.grad_fn || !meta.grad_fn->extras) return;
  auto& list = meta.grad_fn->extras->retained;
  const bool found = std::any_of(list.begin(), list.end(), [&](const auto& item) { return item.second == &meta; });
  if (!found) return;
  forget_retained(meta);
  ensure_extras(to).retained.emplace_back(output, &meta);
}

}  // namespace taeda::autograd
