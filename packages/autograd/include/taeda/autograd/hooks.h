// Hooks and other rare things that hang on nodes and leaves.
#pragma once
#include "taeda/autograd/meta.h"
#include "taeda/autograd_api.h"
#include "taeda/grad_mode.h"
#include "taeda/stream.h"

namespace taeda::autograd {

struct CopySlices;

using NodeHook = std::function<void(Node* node, Tensor* grads, size_t count)>;
using PostHook =
    std::function<void(Node* node, Tensor* results, size_t result_count, Tensor* grads, size_t grad_count)>;
using LeafHook = std::function<void(const Tensor& leaf)>;

template <class F>
struct Hook {
  uint64_t id;
  F call;
  void* python = nullptr;  // the PyObject* that `call` owns a reference to, for the garbage collector
};

/// Hooks of a leaf: on its gradient, and after it was accumulated.
struct HookList {
  std::vector<Hook<TensorHook>> on_grad;
  std::vector<Hook<LeafHook>> after_accumulate;
};

struct OutputHook {
  uint64_t id;
  uint32_t output;
  TensorHook call;
  void* python = nullptr;
};

/// Note [Order of hooks]
/// When all gradients of a node's outputs are in: hooks of the output tensors (in order of registration), retain_grad,
/// then what `grad` asked for is taken. Where the run goes on through the node: its pre hooks, the formula, its post
/// hooks.
struct NodeExtras : Pooled {
  std::vector<OutputHook> on_output;
  std::vector<std::pair<uint32_t, AutogradMeta*>>
      retained;  // tensors that keep their .grad; they leave the list when they die
  std::vector<Hook<NodeHook>> before;
  std::vector<Hook<PostHook>> after;
  void* python = nullptr;              // borrowed PyObject* of the node's wrapper
  void* metadata = nullptr;            // owned PyObject*: the dict that users see
  void* location = nullptr;            // owned: where the node was made (anomaly mode)
  Stream stream;                       // where the forward call ran; null: its device's default stream
  const CopySlices* within = nullptr;  // the node that wraps this one
  ~NodeExtras();
};

inline NodeExtras& ensure_extras(Node* node) {
  if (!node->extras) node->extras = new NodeExtras;
  return *node->extras;
}

uint64_t next_hook_id() noexcept;
/// Hook on the gradient of `t`; returns its id. `python`: the PyObject* that the hook owns a reference to, if any.
uint64_t add_tensor_hook(const Tensor& t, TensorHook hook, void* python = nullptr);
uint64_t add_leaf_hook(const Tensor& leaf, LeafHook hook, void* python = nullptr);
uint64_t add_node_hook(Node* node, NodeHook hook, void* python = nullptr);
uint64_t add_post_hook(Node* node, PostHook hook, void* python = nullptr);
/// See AutogradApi::visit_hooks and drop_hooks.
int visit_hooks(TensorImpl* impl, PyVisit visit, void* arg);
void drop_hooks(TensorImpl* impl) noexcept;
void remove_hook(const Tensor& t, uint64_t id) noexcept;
/// The hooks on the gradient of `t` that belong to Python, in order: their ids and objects (borrowed).
std::vector<std::pair<uint64_t, void*>> python_hooks(const Tensor& t);
void remove_hook(Node* node, uint64_t id) noexcept;
void retain_grad(const Tensor& t);
bool retains_grad(const Tensor& t) noexcept;
/// Moves the retain_grad mark of `meta` from its present node to `to` (in-place calls make a new one).
void move_retained(AutogradMeta& meta, Node* to, uint32_t output);
void forget_retained(AutogradMeta& meta) noexcept;

/// Frees an owned Python object held as void*; set by the Python part.
extern void (*release_python_object)(void* object) noexcept;

/// Scope in which user code runs inside the engine: layers work as in ordinary programs, and what it switches goes
/// back.
class UserCode {
 public:
  UserCode() noexcept : mode_(thread_state.grad_enabled) {
    thread_state.excluded &= ~KeySet::of(Layer::Autograd).bits();
  }

 private:
  GradMode mode_;
};

}  // namespace taeda::autograd
