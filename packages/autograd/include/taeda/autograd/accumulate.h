// AccumulateGrad: where gradients of leaves end, in their .grad.
#pragma once
#include <functional>

#include "taeda/autograd/meta.h"

namespace taeda::autograd {

/// Note [Resting accumulators]
/// While a graph holds the accumulator, it holds its leaf strongly and the leaf knows it weakly: one leaf, one
/// accumulator. When the last graph lets go, it gives up the leaf and rests with it, owned by the leaf's meta, so that
/// the next call finds it ready made.
struct AccumulateGrad final : FixedNode<0, 1> {
  Tensor leaf;
  explicit AccumulateGrad(const Tensor& variable);
  ~AccumulateGrad() override;
  const char* name() const override { return "AccumulateGrad"; }
  void apply(Tensor* grads, Tensor* result) override;

 private:
  friend Ref<Node> accumulator_of(const Tensor& variable);
  friend bool rest(Node* node) noexcept;
  static DType dtype_for(const Tensor& variable);
  bool fits(const Tensor& variable) const;
  void describe_output(const Tensor& variable);
  bool resting_ = false;
};

/// Puts an accumulator without references to rest; false when it must be deleted instead.
bool rest(Node* node) noexcept;
/// The live or resting accumulator of a leaf, or a new one.
Ref<Node> accumulator_of(const Tensor& leaf);
/// Calls `add` with `leaf.grad`, if there is one of these sizes and this dtype on the CPU.
bool add_to_grad(const Tensor& leaf, IntSpan sizes, DType dtype, const std::function<void(const Tensor&)>& add);
/// Adds to `leaf.grad`; the first gradient is taken over when nobody else sees it.
void accumulate_grad(const Tensor& leaf, Tensor grad);
/// Tells those who asked for it (`register_post_accumulate_grad_hook`) that the leaf has its gradient.
void call_after_accumulate(const Tensor& leaf);

}  // namespace taeda::autograd
