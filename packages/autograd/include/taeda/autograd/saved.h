// SavedTensor: a tensor kept for backward without owning the node that made it, with the version it had.
#pragma once
#include "taeda/autograd/node.h"

namespace taeda::autograd {

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
  void save_output(const Tensor& result, uint16_t nr = 0);
  /// The tensor; RuntimeError when it was modified in place since, or was freed. `node` is the owner, `argument` names it in messages.
  Tensor unpack(Node* node, const char* argument) const {
    if (state_ == State::Input && tensor_.version() == version_) [[likely]]
      return tensor_;
    return unpack_slow(node, argument);
  }
  bool defined() const noexcept { return tensor_.defined(); }
  void release() noexcept;
  /// The held tensor, without any check.
  const Tensor& held() const noexcept { return tensor_; }
  bool is_output() const noexcept { return state_ == State::Output; }

 private:
  enum class State : uint8_t { Empty, Input, Output, Released };
  Tensor unpack_slow(Node* node, const char* argument) const;
  [[noreturn]] static void refuse_inference(const Tensor& input, const Node* node, const char* argument);

  Tensor tensor_;
  uint32_t version_ = 0;
  uint16_t output_ = 0;
  State state_ = State::Empty;
};

inline void SavedVisitor::operator()(const char* name, std::vector<SavedTensor>& saved) {
  for (SavedTensor& item : saved) (*this)(name, item);
}

/// Unpacks a saved list.
std::vector<Tensor> unpack(const std::vector<SavedTensor>& saved, Node* node, const char* argument);
/// Saves a list of inputs.
std::vector<SavedTensor> save_list(TensorList inputs, const Node* node, const char* argument);

}  // namespace taeda::autograd
