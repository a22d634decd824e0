// AccumulateGrad: where gradients of leaves end, in their .grad.
#pragma once
#include "taeda/autograd/meta.h"

namespace taeda::autograd {

/// Holds its leaf strongly; the leaf knows it weakly, so that one leaf has one accumulator at a time.
struct AccumulateGrad final : FixedNode<0, 1> {
  Tensor leaf;
  explicit AccumulateGrad(const Tensor& variable);
  ~AccumulateGrad() override;
  const char* name() const override { return "AccumulateGrad"; }
  void apply(Tensor* grads, Tensor* result) override;
};

/// The live accumulator of a leaf, or a new one.
Ref<Node> accumulator_of(const Tensor& leaf);
/// Adds to `leaf.grad`; the first gradient is taken over when nobody else sees it.
void accumulate_grad(const Tensor& leaf, Tensor grad);

}  // namespace taeda::autograd
