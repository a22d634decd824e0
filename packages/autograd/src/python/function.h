// PyNode: the node of a user-defined Function; its formula is Python code.
#pragma once
#include "python/objects.h"
#include "taeda/autograd/saved.h"

namespace taeda::autograd::py {

/// Note [Saved intermediates]
/// Tensors that forward saved on ctx but that are neither inputs nor outputs have no history, although they may depend
/// on the inputs: a second derivative through them would silently lack terms. While gradients are being recorded they
/// are handed out with an ErrorNode as history, whose edges lead to the Function's inputs, so that such a derivative
/// raises.
struct PyNode final : DynamicNode {
  struct Kept {
    Shared name;  // attribute of ctx; null for save_for_backward
    SavedTensor tensor;
    bool intermediate = false;
  };
  PyObject* ctx = nullptr;  // owned
  std::string title;
  std::vector<Kept> kept;
  std::vector<bool> tensor_argument;

  ~PyNode() override;
  const char* name() const override { return title.c_str(); }
  void apply(Tensor* grads, Tensor* result) override;
  void each_saved(SavedVisitor& visit) override {
    for (Kept& item : kept) visit(item.name ? "attribute" : "saved", item.tensor);
  }
  /// The tensor as the user gets it; see Note [Saved intermediates].
  Tensor hand_out(const Kept& item);
};

/// Raises when a gradient reaches it.
struct ErrorNode final : DynamicNode {
  std::string message;
  const char* name() const override { return "Error"; }
  void apply(Tensor*, Tensor*) override { fail(ErrorKind::Runtime, message); }
};

/// `t`'s elements with an ErrorNode as history, whose edges are those of `like`.
Tensor with_error(const Tensor& t, const Node* like, std::string message);

}  // namespace taeda::autograd::py
