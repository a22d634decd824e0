// Questions about a tensor's place in the graph.
#include <chrono>
#include <thread>

#include "taeda/autograd/accumulate.h"
#include "taeda/autograd/cycles.h"
#include "taeda/autograd/directions.h"
#include "taeda/autograd/hooks.h"
#include "taeda/autograd/views.h"
#include "taeda/parallel.h"
#include "taeda/wrappers.h"

namespace taeda::autograd {
namespace {

bool same_number_field(DType a, DType b) noexcept { return is_differentiable(a) && real_of(a) == real_of(b); }

/// Whether a view without a mark of its own takes no part in the graph of its base.
bool stands_outside(const TensorImpl* view) noexcept {
  const AutogradMeta* base = meta_of(view->base.get());
  return (view->flags & kUntrackedView) || !base || !base->grad_fn;
}

/// Gives a view whose base has moved on a grad_fn derived from the base's.
void refresh_view(const Tensor& view) {
  TensorImpl* impl = view.impl();
  const bool marked = impl->flags & kRequiresGrad;
  if (!marked && stands_outside(impl)) return;
  AutogradMeta& meta = ensure_meta(impl);
  if (marked && (!meta.grad_fn || meta.attr_version == view.version())) return;
  const Tensor base{impl->base};
  if (impl->storage != base.impl()->storage) return;  // the base shows other memory by now
  const Edge edge = collect_edge(base);
  if (!edge.node || !same_number_field(view.dtype(), base.dtype())) return;
  auto node = make_node<ViewBackward>();
  node->edges[0] = edge;
  node->base = Geometry::of(base, base);
  node->view = Geometry::of(view, base);
  node->base_dtype = base.dtype();
  node->outputs[0] = OutputInfo{Shape(view.sizes()), view.dtype(), stated_device(view), true};
  take_place(node.get());
  move_retained(meta, node.get(), 0);
  meta.grad_fn = Ref<Node>::adopt(node.release());
  meta.output = 0;
  meta.attr_version = view.version();
  impl->flags |= kRequiresGrad;
}

}  // namespace

AutogradMeta::~AutogradMeta() {
  if (watch) [[unlikely]]
    leave_watch(*this);
  delete accumulator;  // resting: one that lives holds the leaf
  forget_retained(*this);
  delete hooks;
}

void GradLock::wait() {
  if (keeper_->load(std::memory_order_relaxed) == &thread_state) {
    keeper_ = nullptr;
    return;
  }
  for (int tries = 0;;) {
    {
      const Unlocked others(true);
      for (; keeper_->load(std::memory_order_relaxed); ++tries) {
        // Held while a large sum is computed: asleep, the other threads have the core.
        if (tries < 16) std::this_thread::yield();
        else std::this_thread::sleep_for(std::chrono::microseconds(20));
      }
    }
    // With the interpreter's lock again: no fork finds a lock that is taken and stands in no list (Note [Leaves and
    // fork]).
    const void* nobody = nullptr;
    if (keeper_->compare_exchange_strong(nobody, &thread_state, std::memory_order_acquire)) return;
  }
}

Tensor grad_of(const Tensor& t) {
  AutogradMeta* meta = meta_of(t);
  if (!meta) return Tensor();
  const GradLock lock(*meta);
  return meta->grad;
}

void replace_grad(const Tensor& t, Tensor grad) {
  AutogradMeta* meta = meta_of(t);
  if (!meta && !grad.defined()) return;
  if (!meta) meta = &ensure_meta(t.impl());
  {
    const GradLock lock(*meta);
    std::swap(meta->grad, grad);
  }
  if (!meta->watch) return;
  grad = Tensor();
  path_cut(*meta);
}

bool view_became_tracked(const Tensor& view) noexcept {
  const TensorImpl* impl = view.impl();
  return impl->storage == impl->base->storage && same_number_field(impl->dtype, impl->base->dtype);
}

Edge slow_edge(const Tensor& t) {
  if (!tracked(t)) return {};
  if (t.is_view()) refresh_view(t);
  if (!t.requires_grad()) return {};
  const AutogradMeta& meta = ensure_meta(t.impl());
  if (meta.grad_fn) return {meta.grad_fn, meta.output};
  return {accumulator_of(t), 0};
}

Ref<Node> grad_fn_of(const Tensor& t) {
  if (!tracked(t)) return nullptr;
  if (t.is_view()) refresh_view(t);
  const AutogradMeta* meta = meta_of(t);
  return meta ? meta->grad_fn : nullptr;
}

void set_requires_grad(const Tensor& t, bool value) {
  TensorImpl* impl = t.impl();
  const bool has_history = grad_fn_of(t) != nullptr;
  if (has_history) {
    if (of_directions(t)) {
      if (value) ask_gradient(t);
      return;
    }
    if (!value) [[unlikely]]
      fail(ErrorKind::Runtime, "requires_grad_: you can only change requires_grad flags of leaf variables, found ",
           describe(t), ", the result of ", grad_fn_of(t)->name(), "; use detach() to get one that needs no gradient");
    return;
  }
  if (value && !is_differentiable(t.dtype())) [[unlikely]]
    fail(ErrorKind::Runtime,
         "requires_grad_: Only Tensors of floating point and complex dtype can require gradients, got ", describe(t));
  if (value) {
    if ((impl->flags & kInference) && !thread_state.inference_mode) [[unlikely]]
      fail(ErrorKind::Runtime, "requires_grad_: the tensor (", describe(t),
           ") was made under inference_mode; clone() it outside to record gradients");
    ensure_meta(impl);
    impl->flags |= kRequiresGrad;
    impl->keys = impl->keys | KeySet::of(Layer::Autograd);
  } else {
    impl->flags &= uint8_t(~kRequiresGrad);
    if (!impl->base) impl->keys = impl->keys.without(Layer::Autograd);
  }
}

}  // namespace taeda::autograd
