// Leaves: one accumulator each, found through a weak pointer; what happens to a gradient that arrives.
#include "taeda/autograd/accumulate.h"

#include <pthread.h>

#include <algorithm>
#include <mutex>

#include "taeda/arithmetic.h"
#include "taeda/autograd/engine.h"
#include "taeda/autograd/hooks.h"
#include "taeda/autograd/streams.h"
#include "taeda/ops.h"

namespace taeda::autograd {
namespace {

constinit std::atomic_flag weak_lock = ATOMIC_FLAG_INIT;

/// Guards the weak pointers of all leaves; held for a few instructions.
class WeakLock {
 public:
  WeakLock() noexcept {
    while (weak_lock.test_and_set(std::memory_order_acquire)) {
    }
  }
  ~WeakLock() { weak_lock.clear(std::memory_order_release); }
};

class Adding;

// Note [Leaves and fork]
// A thread may be adding to a leaf's gradient, which takes as long as the sum, while another forks. The child does not
// have that thread: so each thread enlists what it adds to, and the child gives these gradients back and opens their
// locks. Such a gradient is then partly added to, as any tensor is that a thread was writing to.

/// The sums that one thread is in, and the list of all threads that have ever been in one.
struct Adder {
  Adding* innermost = nullptr;
  Adder *next = nullptr, *previous = nullptr;
  Adder();
  ~Adder();
};

struct Adders {
  std::mutex lock;
  Adder* first = nullptr;
};
Adders& adders() {
  static auto* instance = new Adders;
  return *instance;
}
Adder::Adder() {
  const std::lock_guard guard(adders().lock);
  next = adders().first;
  if (next) next->previous = this;
  adders().first = this;
}
Adder::~Adder() {
  const std::lock_guard guard(adders().lock);
  (previous ? previous->next : adders().first) = next;
  if (next) next->previous = previous;
}
thread_local Adder adder __attribute__((tls_model("initial-exec")));

/// The gradient of a leaf, locked and taken out of it while something is added: nobody else writes to it, nobody takes
/// it away.
class Adding {
 public:
  explicit Adding(AutogradMeta& meta)
      : lock_(meta), meta_(meta), thread_(adder), outer_(thread_.innermost), held_(std::move(meta.grad)) {
    thread_.innermost = this;
  }
  ~Adding() {
    give_back();
    thread_.innermost = outer_;
  }
  Adding(const Adding&) = delete;
  bool found() const { return held_.defined(); }
  void set(Tensor grad) { held_ = std::move(grad); }
  const Tensor& held() const { return held_; }
  void add(const Tensor& grad, bool record) {
    // A sum of the library's wrapping tensors may be of another kind (sparse and dense).
    const bool fixed = held_.keys().has(Layer::PreDispatch);
    if (record || fixed) held_ = held_ + grad;
    else ops::add_(held_, grad);
  }
  /// In a child of fork, which does not have the thread that was adding.
  static void abandon(Adding* innermost) {
    for (Adding* one = innermost; one; one = one->outer_) {
      one->give_back();
      one->meta_.keeper = nullptr;
    }
  }

 private:
  void give_back() {
    if (!meta_.grad.defined()) meta_.grad = std::move(held_);  // else this thread set another one meanwhile
  }

  GradLock lock_;
  AutogradMeta& meta_;
  Adder& thread_;
  Adding* outer_;
  Tensor held_;
};

void before_fork() {
  static_cast<void>(adder.innermost);  // enlisted before the list is locked
  adders().lock.lock();
  while (weak_lock.test_and_set(std::memory_order_acquire)) {
  }
}
void in_parent() {
  weak_lock.clear(std::memory_order_release);
  adders().lock.unlock();
}
void in_child() {
  for (Adder* thread = adders().first; thread; thread = thread->next)
    if (thread != &adder) Adding::abandon(thread->innermost);
  adders().first = &adder;
  adder.next = adder.previous = nullptr;
  in_parent();
}
const bool fork_handler = [] {
  pthread_atfork(before_fork, in_parent, in_child);
  return true;
}();

/// One more reference unless the count has reached zero already.
bool try_retain(Node* node) noexcept {
  uint32_t count = node->refs.load(std::memory_order_relaxed);
  while (count != 0)
    if (node->refs.compare_exchange_weak(count, count + 1, std::memory_order_relaxed)) return true;
  return false;
}

bool same_layout(const Tensor& a, const Tensor& b) noexcept {
  if (a.contiguous() && b.contiguous()) return true;
  return std::equal(a.strides().begin(), a.strides().end(), b.strides().begin(), b.strides().end());
}

/// A copy laid out like the leaf, so that optimizers walk both alike.
Tensor copy_like(const Tensor& leaf, const Tensor& grad) {
  const bool follow = leaf.dense() && leaf.dtype() == grad.dtype();
  Tensor copy = follow ? empty_strided(leaf.sizes(), leaf.strides(), grad.dtype(), grad.device())
                       : empty(grad.sizes(), grad.dtype(), grad.device());
  ops::copy_(copy, grad);
  return copy;
}

}  // namespace

AccumulateGrad::AccumulateGrad(const Tensor& variable) : leaf(variable) {
  flags = kWeaklyHeld | kAccumulates;
  describe_output(variable);
}

AccumulateGrad::~AccumulateGrad() {
  if (!leaf.defined()) return;  // resting: deleted by the leaf's meta
  WeakLock lock;
  AutogradMeta* meta = meta_of(leaf);
  if (meta && meta->accumulator == this) meta->accumulator = nullptr;
}

DType AccumulateGrad::dtype_for(const Tensor& variable) {
  const AutogradMeta* meta = meta_of(variable);
  return meta && meta->grad_dtype ? *meta->grad_dtype : variable.dtype();
}

bool AccumulateGrad::fits(const Tensor& variable) const {
  const OutputInfo& info = outputs[0];
  return info.dtype == dtype_for(variable) && info.device == stated_device(variable) &&
         std::ranges::equal(info.sizes, variable.sizes());
}

void AccumulateGrad::describe_output(const Tensor& variable) {
  OutputInfo& info = outputs[0];
  info.sizes.assign(variable.sizes());
  info.dtype = dtype_for(variable);
  info.device = stated_device(variable);
  info.known = true;
  if (on_device(info.device)) [[unlikely]]
    note_stream(this, info.device);
}

// See Note [Resting accumulators].
bool rest(Node* node) noexcept {
  auto* self = static_cast<AccumulateGrad*>(node);
  if (self->extras) return false;  // hooks end with the graph
  Tensor last;
  WeakLock lock;
  AutogradMeta* meta = meta_of(self->leaf);
  if (!meta || meta->accumulator != self) return false;
  self->resting_ = true;
  last = std::move(self->leaf);  // dies after the lock is open, and with it perhaps the leaf and this node
  return true;
}

Ref<Node> accumulator_of(const Tensor& leaf) {
  AutogradMeta& meta = ensure_meta(leaf.impl());
  {
    WeakLock lock;
    if (auto* found = static_cast<AccumulateGrad*>(meta.accumulator)) {
      // Where the leaf has got another dtype or shape meanwhile (`.data`), graphs made before keep theirs.
      if (!found->resting_ && found->fits(leaf) && try_retain(found)) return Ref<Node>::adopt(found);
      if (found->resting_) {
        found->resting_ = false;
        found->leaf = leaf;
        found->refs.store(1, std::memory_order_relaxed);
        found->describe_output(leaf);  // `.data` may have been given another shape
        return Ref<Node>::adopt(found);
      }
    }
  }
  auto fresh = make_node<AccumulateGrad>(leaf);
  WeakLock lock;
  // Another thread may have made one meanwhile; both work, the newest is found from now on.
  if (auto* found = static_cast<AccumulateGrad*>(meta.accumulator); !found || !found->resting_)
    meta.accumulator = fresh.get();
  return Ref<Node>::adopt(fresh.release());
}

namespace {

Tensor first_gradient(const Tensor& leaf, Tensor& grad) {
  if (thread_state.grad_enabled) return ops::clone(grad);
  // What has no memory of its own (a sparse gradient) keeps its kind.
  if (is_wrapper(grad)) return grad.impl()->use_count() == 1 && !grad.is_view() ? std::move(grad) : ops::clone(grad);
  const bool fits = own_alone(grad) && grad.dense() && (same_layout(grad, leaf) || !leaf.dense());
  return fits ? std::move(grad) : copy_like(leaf, grad);
}

}  // namespace

void accumulate_grad(const Tensor& leaf, Tensor grad) {
  if (!leaf.requires_grad()) return;  // not any more: detach_, requires_grad_(False)
  AutogradMeta& meta = ensure_meta(leaf.impl());
  Adding sum(meta);
  if (sum.found()) sum.add(grad, thread_state.grad_enabled);
  else sum.set(first_gradient(leaf, grad));
}

bool add_to_grad(const Tensor& leaf, IntSpan sizes, DType dtype, const std::function<void(const Tensor&)>& add) {
  if (!leaf.requires_grad()) return false;
  Adding sum(ensure_meta(leaf.impl()));
  if (!sum.found() || !can_take(sum.held(), sizes, dtype)) return false;
  add(sum.held());
  return true;
}

void call_after_accumulate(const Tensor& leaf) {
  const AutogradMeta* meta = meta_of(leaf);
  if (!meta->hooks || meta->hooks->after_accumulate.empty() || !leaf.requires_grad()) return;
  const auto hooks = meta->hooks->after_accumulate;  // a hook may remove itself
  UserCode scope;
  for (const auto& hook : hooks) hook.call(leaf);
}

void AccumulateGrad::apply(Tensor* grads, Tensor*) {
  if (grads[0].defined()) {
    if (extras && !extras->after.empty()) accumulate_grad(leaf, grads[0]);  // hooks see it afterwards
    else accumulate_grad(leaf, std::move(grads[0]));
  }
  call_after_accumulate(leaf);
}

}  // namespace taeda::autograd
