// In-place operations through views, and gradients of views by strides.
#pragma once
#include "taeda/autograd/meta.h"

namespace taeda::autograd {

/// Sizes, strides and first element, in elements of the storage that base and view share.
struct Geometry {
  Shape sizes, strides;
  int64_t offset = 0;
  static Geometry of(const Tensor& t, const Tensor& base);
};

/// Gradient of `base` given that of a view of it: zeros with `grad` added at the view's places.
Tensor embed(const Tensor& grad, const Geometry& base, const Geometry& view);
/// A fresh tensor with the places of `base` (dense or not) that holds `values`, and the view of it that `part` shows.
std::pair<Tensor, Tensor> materialize(const Tensor& values, const Geometry& base, const Geometry& part);

/// grad_fn of a view whose base has a newer history than the view's own.
struct ViewBackward final : FixedNode<1> {
  Geometry base, view;
  DType base_dtype;
  const char* name() const override { return "AsStridedBackward0"; }
  void apply(Tensor* grads, Tensor* result) override;
};

/// History of a base after an in-place operation `fn` on a view of it. Edge 0 leads to the base before, the others are
/// fn's.
struct CopySlices final : DynamicNode {
  Geometry base, view;
  DType view_dtype = DType::Float32;  // reals may show a complex base
  Ref<Node> fn;
  ~CopySlices() override;
  /// Takes `node` as fn; what that saved of its output is found through this node from now on.
  void wrap(Node* node);
  /// Node of the view that fn wrote: the base's history seen through the view, so that gradients which come from a
  /// saved output meet the others here.
  Ref<Node> view_node() const;
  const char* name() const override { return "CopySlices"; }
  void apply(Tensor* grads, Tensor* result) override;
  void each_saved(SavedVisitor& visit) override { fn->each_saved(visit); }
  Node* inner() const noexcept override { return fn.get(); }
};

}  // namespace taeda::autograd
