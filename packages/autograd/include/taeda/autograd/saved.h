// SavedTensor: a tensor kept for backward without owning the node that made it, with the version it had.
#pragma once
#include <functional>

#include "taeda/autograd/node.h"
#include "taeda/lent.h"

namespace taeda::autograd {

/// Note [Packed tensors]
/// While a thread has hooks for saved tensors (saved_tensors_hooks), what it records saves what the hooks make of the
/// values. Such a SavedTensor holds an empty tensor that owns the way back (Packed) and the place of the original in
/// the graph.
using Unpack = std::function<Tensor()>;
struct Packed final : GradMeta {
  Unpack unpack;
  Edge edge;  // of an argument; an output belongs to the node itself
  bool output = false;
};
inline constinit thread_local bool packing __attribute__((tls_model("initial-exec"))) = false;
/// Gives the values to the thread's hooks; set by the Python part.
extern Unpack (*pack_values)(const Tensor& values);
/// Packs what the node has saved of its arguments.
void pack_arguments(Node* node);

/// Note [Saved outputs]
/// An output of a node is saved as an alias without history: holding the tensor itself would close a cycle
/// (tensor -> node -> tensor). `unpack` gives the alias its place in the graph again when gradients are being recorded.
class SavedTensor {
 public:
  /// An argument of the forward call; undefined tensors are allowed. RuntimeError for one made under inference_mode:
  /// its versions are not to be relied on. `node` is the owner, `argument` names it in messages.
  void save(const Tensor& input, const Node* node, const char* argument) {
    if (!input.defined()) {
      state_ = State::Empty;
      return;
    }
    if (input.impl()->flags & kInference) [[unlikely]]
      refuse_inference(input, node, argument);
    tensor_ = input;
    version_ = input.version();
    state_ = State::Input;
  }
  /// Output number `nr` of the node, after it was computed.
  void save_output(const Tensor& result, uint32_t nr = 0);
  /// The tensor; RuntimeError when it was modified in place since, or was freed. `node` is the owner, `argument` names
  /// it in messages.
  Tensor unpack(Node* node, const char* argument) const {
    if (state_ == State::Input && tensor_.version() == version_) [[likely]]
      return tensor_;
    return unpack_slow(node, argument);
  }
  bool defined() const noexcept { return tensor_.defined(); }
  void release() noexcept;
  /// The held tensor, without any check; undefined for a packed one.
  Tensor held() const { return state_ == State::Packed ? Tensor() : tensor_; }
  /// Where a packed argument stands in the graph.
  const Edge* packed_edge() const noexcept { return state_ == State::Packed ? &packed().edge : nullptr; }
  /// See Note [Packed tensors].
  void pack();

 protected:
  enum class State : uint8_t { Empty, Input, Output, Released, Packed, Lent };  // Lent: of a LentTensor alone
  /// In the place of the argument or result: the way to its values, and where it stands in the graph.
  void hold(Unpack unpack, Edge edge, bool output);
  const taeda::autograd::Packed& packed() const noexcept {
    return static_cast<const taeda::autograd::Packed&>(*tensor_.impl()->grad);
  }
  Tensor unpack_packed(Node* node) const;
  Tensor unpack_slow(Node* node, const char* argument) const;
  [[noreturn]] static void refuse_inference(const Tensor& input, const Node* node, const char* argument);

  Tensor tensor_;
  uint32_t version_ = 0;
  uint32_t output_ : 24 = 0;
  State state_ : 8 = State::Empty;
};

/// An argument that may be overwritten before it is needed: its values are copied then, and not before. See
/// Note [Lent bytes].
class LentTensor final : public SavedTensor, private Borrower {
 public:
  ~LentTensor() = default;
  /// `lent`: whether it may be overwritten, else it is saved like any argument.
  void save(const Tensor& input, const Node* node, const char* argument, bool lent) {
    SavedTensor::save(input, node, argument);
    if (!lent || state_ != State::Input || !input.impl()->storage || (input.impl()->flags & kCarries)) return;
    if (borrow(input.impl()->storage)) state_ = State::Lent;
  }
  Tensor unpack(Node* node, const char* argument) const {
    if (state_ == State::Lent) {
      const std::lock_guard held(lock());  // against a writer in another thread
      if (state_ == State::Lent && tensor_.version() == version_) return tensor_;
    }
    return SavedTensor::unpack(node, argument);
  }
  using Borrower::give_back;

 private:
  void keep() override;
};

inline void SavedVisitor::operator()(const char* name, std::vector<SavedTensor>& saved) {
  for (SavedTensor& item : saved) (*this)(name, item);
}

/// Unpacks a saved list.
std::vector<Tensor> unpack(const std::vector<SavedTensor>& saved, Node* node, const char* argument);
/// Saves a list of inputs.
std::vector<SavedTensor> save_list(TensorList inputs, const Node* node, const char* argument);

}  // namespace taeda::autograd
