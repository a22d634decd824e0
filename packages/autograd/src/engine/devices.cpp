// Copies between devices: one node, whose gradient goes back to where the tensor was.
#include "taeda/autograd/layer.h"
#include "taeda/ops/cast.h"
#include "taeda/wrappers.h"

namespace taeda::autograd {
namespace {

struct ToCopyBackward final : FixedNode<1> {
  Device from;
  const char* name() const override { return "ToCopyBackward0"; }
  void apply(Tensor* grads, Tensor* result) override {
    if (grads[0].defined() && wanted(0)) result[0] = ops::to_device(grads[0], from);
  }
};

Tensor enter_to_device(KeySet, const Tensor& self, Device device, const OpEntry&) {
  const Device from = stated_device(self);
  if (from == device) return self;
  Ref<ToCopyBackward> node;
  if (needs_grad(self)) {
    node = make_node<ToCopyBackward>();
    node->edges[0] = collect_edge(self);
    node->from = from;
  }
  const Below below(Layer::Autograd);
  Tensor result = ops::to_device(self, device);
  if (!node) return result;
  if (result.same(self)) result = detached_alias(result);  // a class that stays where it is
  set_history(result, node.get());
  return result;
}

[[maybe_unused]] const bool installed = [] {
  register_layer(&op::to_device::entry, Layer::Autograd, reinterpret_cast<void*>(&enter_to_device));
  return true;
}();

}  // namespace
}  // namespace taeda::autograd
