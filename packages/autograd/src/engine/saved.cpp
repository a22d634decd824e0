// Saved tensors: aliases of outputs, version checks and their messages.
#include "taeda/autograd/saved.h"

#include "taeda/autograd/hooks.h"
#include "taeda/autograd/layer.h"
#include "taeda/autograd/views.h"

namespace taeda::autograd {
namespace {

[[noreturn]] void freed(Node* node, const char* argument) {
  fail(ErrorKind::Runtime, node->name(), ": the saved tensor '", argument,
       "' was freed by an earlier backward through this graph; pass retain_graph=True to the earlier call to go through it again");
}

[[noreturn]] void modified(Node* node, const char* argument, const Tensor& tensor, uint32_t expected) {
  const OpEntry* culprit = op_by_id(tensor.impl()->storage->last_mutator);
  fail(ErrorKind::Runtime, node->name(), ": the tensor '", argument, "' needed for its gradient (", describe(tensor),
       ") was modified by an inplace operation: it is at version ", tensor.version(), ", expected version ", expected,
       "; last modified by ", culprit && culprit->name ? culprit->name : "an operation outside the operator table",
       ". Use the form of that operation without '_', or clone() the tensor first");
}

}  // namespace

void SavedTensor::refuse_inference(const Tensor& input, const Node* node, const char* argument) {
  fail(ErrorKind::Runtime, node->name(), ": the tensor '", argument, "' (", describe(input),
       ") was made under inference_mode and cannot be saved for the gradient; clone() it outside inference_mode first");
}

void SavedTensor::save_output(const Tensor& result, uint16_t nr) {
  if (!result.defined()) {
    state_ = State::Empty;
    return;
  }
  tensor_ = detached_alias(result);
  version_ = result.version();
  output_ = nr;
  state_ = State::Output;
}

void SavedTensor::release() noexcept {
  if (state_ != State::Empty) state_ = State::Released;
  tensor_ = Tensor();
}

Tensor SavedTensor::unpack_slow(Node* node, const char* argument) const {
  if (state_ == State::Released) freed(node, argument);
  if (state_ == State::Empty) return tensor_;
  if (tensor_.version() != version_) modified(node, argument, tensor_, version_);
  if (state_ == State::Input || !thread_state.grad_enabled || !is_differentiable(tensor_.dtype())) return tensor_;
  // See Note [Saved outputs]: gradients are being recorded, so the result takes its place in the graph again.
  Tensor result = detached_alias(tensor_);
  AutogradMeta& meta = ensure_meta(result.impl());
  const CopySlices* within = node->extras ? node->extras->within : nullptr;
  meta.grad_fn = within ? within->view_node() : Ref<Node>::share(node);
  meta.output = within ? 0 : output_;
  result.impl()->flags |= kRequiresGrad;
  result.impl()->keys = result.impl()->keys | KeySet::of(Layer::Autograd);
  return result;
}

std::vector<Tensor> unpack(const std::vector<SavedTensor>& saved, Node* node, const char* argument) {
  std::vector<Tensor> tensors;
  tensors.reserve(saved.size());
  for (const SavedTensor& item : saved) tensors.push_back(item.unpack(node, argument));
  return tensors;
}

std::vector<SavedTensor> save_list(TensorList inputs, const Node* node, const char* argument) {
  std::vector<SavedTensor> saved(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) saved[i].save(inputs[i], node, argument);
  return saved;
}

}  // namespace taeda::autograd
