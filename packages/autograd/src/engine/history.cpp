// Recording: results take their place in the graph; the rules of in-place operations.
#include "taeda/autograd/cycles.h"
#include "taeda/autograd/directions.h"
#include "taeda/autograd/hooks.h"
#include "taeda/autograd/layer.h"
#include "taeda/autograd/streams.h"
#include "taeda/autograd/views.h"
#include "taeda/wrappers.h"

namespace taeda::autograd {

bool anomaly_enabled = false;

namespace {

void mark(TensorImpl* impl) noexcept {
  impl->flags |= kRequiresGrad;
  impl->keys = impl->keys | KeySet::of(Layer::Autograd);
}

Device place_of(TensorImpl* impl) {
  return (impl->keys & kClassBits).bits() ? stated_device(Tensor(Ref<TensorImpl>::share(impl))) : impl->device;
}

void attach(TensorImpl* impl, Node* node, uint32_t nr) {
  if (!node->sequence) {
    take_place(node);
    if (anomaly_enabled) [[unlikely]]
      note_location(node);
    if (packing) [[unlikely]]
      pack_arguments(node);
    if (on_device(impl->device)) [[unlikely]]
      note_stream(node, impl->device);
  }
  OutputInfo& info = node->outputs[nr];
  info.sizes.assign({impl->dims, impl->ndim});
  info.dtype = impl->dtype;
  info.device = place_of(impl);
  info.known = true;
  AutogradMeta& meta = ensure_meta(impl);
  if (meta.grad_fn) [[unlikely]] {
    move_retained(meta, node, nr);
    if (meta.watch) path_cut(meta);
  }
  meta.grad_fn = Ref<Node>::share(node);
  meta.output = nr;
  mark(impl);
}

}  // namespace

void collect_edges(Node* node, size_t at, TensorList list) {
  for (const Tensor& t : list) node->edges[at++] = collect_edge(t);
}

void set_history(const Tensor& result, Node* node, uint32_t nr) {
  if (!result.defined() || !is_differentiable(result.dtype())) return;
  attach(result.impl(), node, nr);
}

void set_view_history(const Tensor& result, const Tensor& self, Node* node, uint32_t nr) {
  if (!is_differentiable(result.dtype())) return;
  TensorImpl* impl = result.impl();
  const TensorImpl* root = self.is_view() ? self.impl()->base.get() : self.impl();
  if (impl->base && impl->base.get() != root) impl->base.reset();
  // What the class gave for a view of its instance stands alone; only the graph knows of what.
  if (!impl->base && is_wrapper(result)) impl->base = Ref<TensorImpl>::share(const_cast<TensorImpl*>(root));
  attach(impl, node, nr);
  meta_of(impl)->attr_version = result.version();
}

void check_inplace_grad(const OpEntry& op, const Tensor& self) {
  const TensorImpl* impl = self.impl();
  if (impl->flags & kInference) [[unlikely]]
    fail(ErrorKind::Runtime, op.name, ": argument 'self' (", describe(self),
         ") was made under inference_mode and cannot be recorded; clone() it first");
  const AutogradMeta* meta = meta_of(impl);
  if ((impl->flags & kRequiresGrad) && (!meta || !meta->grad_fn)) [[unlikely]]
    fail(ErrorKind::Runtime, op.name, ": argument 'self' (", describe(self),
         "): a leaf Variable that requires grad is being used in an in-place operation while gradients are recorded; "
         "use "
         "no_grad() or clone() it first");
  if (!impl->base && (impl->flags & kUntrackedView)) [[unlikely]]
    fail(ErrorKind::Runtime, op.name, ": argument 'self' (", describe(self),
         ") was returned by a Function and shows one of its inputs, which must not be modified in place through it; "
         "clone() it first");
  if (!impl->base) return;
  const TensorImpl* base = impl->base.get();
  if (is_wrapper(self)) [[unlikely]]
    fail(ErrorKind::Runtime, op.name, ": argument 'self' (", describe(self),
         ") is a view of an instance of a class with __torch_dispatch__; a write through it cannot be recorded: write "
         "into the whole, or use the form of the operation without '_'");
  // The base of a leaf that is a view itself need not require grad: its views do.
  if (((base->flags | impl->flags) & kRequiresGrad) && (!meta_of(base) || !meta_of(base)->grad_fn)) [[unlikely]]
    fail(ErrorKind::Runtime, op.name, ": argument 'self' (", describe(self),
         "): a view of a leaf Variable that requires grad is being used in an in-place operation while gradients are "
         "recorded; use no_grad() or clone() it first");
  if (impl->storage != base->storage) [[unlikely]]
    fail(ErrorKind::Runtime, op.name, ": argument 'self' (", describe(self),
         ") is a view of a tensor that shows other memory by now (by set_, resize_ or .data), so that the write cannot "
         "be recorded; clone() it first");
  if (impl->flags & kUntrackedView) [[unlikely]]
    fail(ErrorKind::Runtime, op.name, ": argument 'self' (", describe(self),
         ") is a view made under no_grad and is modified while gradients are recorded; make the view outside no_grad, "
         "or modify it inside");
  if (base->dtype != impl->dtype && base->dtype != complex_of(impl->dtype) && impl->dtype != complex_of(base->dtype))
      [[unlikely]]
    fail(ErrorKind::Runtime, op.name, ": argument 'self' (", describe(self), ") is a view of dtype ", name(impl->dtype),
         " of a tensor of dtype ", name(base->dtype), "; recorded in-place operations need the same dtype");
}

void refuse_out(const OpEntry& op) {
  fail(ErrorKind::Runtime, op.name,
       ": an out= argument cannot be recorded for gradients, but one of the tensors requires grad; "
       "call the operator without out=, or under no_grad()");
}

void refuse_argument(const OpEntry& op, const char* argument) {
  fail(ErrorKind::NotImplemented, op.name, ": the derivative for argument '", argument,
       "' is not implemented; it requires grad: detach() it, or call "
       "the operator under no_grad()");
}

Tensor saved_copy(const Tensor& self) { return ops::clone(self); }

void rebase_history(const Tensor& self, Node* node, uint32_t nr) {
  TensorImpl* impl = self.impl();
  if (!is_differentiable(impl->dtype)) return;
  if (!impl->base) return attach(impl, node, nr);

  const Tensor base{impl->base};
  auto slices = make_node<CopySlices>();
  slices->reserve(node->edge_count ? node->edge_count : 1);
  slices->edges[0] = collect_edge(base);
  for (size_t i = 1; i < node->edge_count; ++i) slices->edges[i] = node->edges[i];
  // CopySlices itself makes zeros where the view stands.
  if (node->flags & kOverwrites) node->edges[0] = {};
  slices->base = Geometry::of(base, base);
  slices->view = Geometry::of(self, base);
  slices->view_dtype = self.dtype();
  node->outputs[nr] = OutputInfo{Shape(self.sizes()), self.dtype(), stated_device(self), true};
  if (!node->sequence) take_place(node);
  slices->wrap(node);
  // The view's own grad_fn is now out of date and is made from the base's when asked for.
  AutogradMeta& meta = ensure_meta(impl);
  meta.attr_version = self.version() - 1;
  attach(base.impl(), slices.get(), 0);
}

void UnknownDerivative::apply(Tensor*, Tensor*) {
  fail(ErrorKind::NotImplemented, op_, ": the derivative of this operator is not implemented");
}

void Overwritten::apply(Tensor* grads, Tensor* result) {
  if (grads[0].defined() && wanted(0)) result[0] = ops::zeros_like(grads[0]);
}

}  // namespace taeda::autograd
