// What autograd hangs on a tensor, and the questions asked of it on every recorded call.
#pragma once
#include <functional>
#include <optional>
#include <unordered_map>

#include "taeda/autograd/node.h"
#include "taeda/dispatch.h"

namespace taeda::autograd {

/// A hook sees a gradient and may return another; undefined keeps it.
using TensorHook = std::function<Tensor(const Tensor& grad)>;
struct HookList;
struct AutogradMeta;

/// See Note [Witnesses] in cycles.h.
struct Watch final : Counted {
  const AutogradMeta* witness = nullptr;
  bool holds = false;  // the witness still reaches all
  std::unordered_map<const AutogradMeta*, TensorImpl*> waiting;
};
void destroy(Watch* watch) noexcept;

struct AutogradMeta final : GradMeta, Pooled {
  Ref<Node> grad_fn;          // null for leaves
  uint32_t output = 0;        // which output of grad_fn
  uint32_t attr_version = 0;  // views: storage version at which grad_fn was right
  /// Of leaves: the dtype of gradients where it is not the tensor's own.
  std::optional<DType> grad_dtype;
  bool any_grad_dtype = false;  // `grad` may be given in any dtype
  /// What was saved at the first version holds at the second: `data` was set in between.
  uint32_t data_before = 0, data_after = 0;
  Tensor grad;  // of leaves, and of others after retain_grad; see Note [Gradients and threads]
  std::atomic<const void*> keeper{nullptr};  // the thread that holds `grad`'s lock
  Node* accumulator = nullptr;               // see Note [Resting accumulators]
  HookList* hooks = nullptr;                 // of leaves; owned
  Ref<Watch> watch;
  ~AutogradMeta() override;
  static void operator delete(void* memory, size_t bytes) noexcept { Pool::give(memory, bytes); }
};

/// Note [Gradients and threads]
/// Adding to a large gradient gives the interpreter's lock up, so the gradient of a leaf has a lock of its own: from
/// the look whether there is one to the sum's return to its place. Whoever waits for it lets other Python threads run,
/// for one of them may be the holder. The holder may enter again (a kernel written in Python may ask for the gradient).
class GradLock {
 public:
  explicit GradLock(AutogradMeta& meta) : keeper_(&meta.keeper) {
    const void* nobody = nullptr;
    if (!keeper_->compare_exchange_strong(nobody, &thread_state, std::memory_order_acquire)) [[unlikely]]
      wait();
  }
  ~GradLock() {
    if (keeper_) keeper_->store(nullptr, std::memory_order_release);
  }
  GradLock(const GradLock&) = delete;

 private:
  void wait();
  std::atomic<const void*>* keeper_;  // null: an outer lock of this thread
};

inline AutogradMeta* meta_of(const TensorImpl* impl) noexcept { return static_cast<AutogradMeta*>(impl->grad); }
inline AutogradMeta* meta_of(const Tensor& t) noexcept { return meta_of(t.impl()); }
inline AutogradMeta& ensure_meta(TensorImpl* impl) {
  if (!impl->grad) impl->grad = new AutogradMeta;
  return *meta_of(impl);
}

/// Note [Views and their base]
/// In-place writes through a view rewrite the history of the base (rebase_history). The base's other views then find
/// out by the storage's version that their grad_fn is old, and get a new one from the base's by strides. A view made
/// before its base became differentiable has no mark of its own: it is recognised by its base. Views made under no_grad
/// stay outside: they require grad as their base does, so that what is computed from them is recorded, but gradients
/// end there, as they do at views of leaves that came to require grad later.
bool view_became_tracked(const Tensor& view) noexcept;

/// Whether calls with `t` are recorded.
inline bool tracked(const Tensor& t) noexcept {
  const TensorImpl* impl = t.impl();
  if (!impl) return false;
  if (impl->flags & kRequiresGrad) return true;
  return impl->base && (impl->base->flags & kRequiresGrad) && view_became_tracked(t);
}
inline bool tracked(TensorList list) noexcept {
  for (const Tensor& t : list)
    if (tracked(t)) return true;
  return false;
}

/// Whether a call with these tensor arguments must be recorded.
template <class... T>
inline bool needs_grad(const T&... arguments) noexcept {
  return thread_state.grad_enabled && (tracked(arguments) || ...);
}

/// `.grad`, and its setting without any check; undefined is none.
Tensor grad_of(const Tensor& t);
void replace_grad(const Tensor& t, Tensor grad);

/// The node and output that produce `t`; for leaves their AccumulateGrad. Null node when untracked.
Edge slow_edge(const Tensor& t);
inline Edge collect_edge(const Tensor& t) {
  if (!t.defined()) return {};
  const TensorImpl* impl = t.impl();
  const AutogradMeta* meta = meta_of(impl);
  if ((impl->flags & kRequiresGrad) && !impl->base && meta && meta->grad_fn) [[likely]]
    return {meta->grad_fn, meta->output};
  return slow_edge(t);
}
/// grad_fn as users see it (null for leaves); brings that of a view up to date.
Ref<Node> grad_fn_of(const Tensor& t);

void set_requires_grad(const Tensor& t, bool value);

}  // namespace taeda::autograd
