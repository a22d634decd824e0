// Saved tensors: aliases of outputs, version checks and their messages.
#include "taeda/autograd/saved.h"

#include "taeda/autograd/hooks.h"
#include "taeda/grad_mode.h"
#include "taeda/autograd/layer.h"
#include "taeda/autograd/views.h"

namespace taeda::autograd {

Unpack (*pack_values)(const Tensor& values) = nullptr;

namespace {

/// Lets a gradient through to a leaf.
struct ToLeaf final : FixedNode<1> {
  const char* name() const override { return "AliasBackward0"; }
  void apply(Tensor* grads, Tensor* result) override { result[0] = std::move(grads[0]); }
};

/// `values` as output `number` of `node`.
Tensor in_graph(const Tensor& values, Ref<Node> node, uint32_t number) {
  Tensor result = detached_alias(values);
  if (node->flags & kAccumulates) {
    auto link = make_node<ToLeaf>();
    link->edges[0] = {std::move(node), number};
    set_history(result, link.get());
    return result;
  }
  AutogradMeta& meta = ensure_meta(result.impl());
  meta.grad_fn = std::move(node);
  meta.output = number;
  result.impl()->flags |= kRequiresGrad;
  result.impl()->keys = result.impl()->keys | KeySet::of(Layer::Autograd);
  return result;
}

/// Where the outputs of `node` stand; see CopySlices.
Tensor as_output(const Tensor& values, Node* node, uint32_t number) {
  const CopySlices* within = node->extras ? node->extras->within : nullptr;
  return within ? in_graph(values, within->view_node(), 0) : in_graph(values, Ref<Node>::share(node), number);
}

[[noreturn]] void freed(Node* node, const char* argument) {
  fail(
      ErrorKind::Runtime, node->name(), ": the saved tensor '", argument,
      "' was freed by an earlier backward through this graph: Trying to backward through the graph a second time; pass "
      "retain_graph=True to the earlier call to go through it again");
}

[[noreturn]] void modified(Node* node, const char* argument, const Tensor& tensor, uint32_t expected) {
  const OpEntry* culprit = op_by_id(tensor.impl()->storage->last_mutator);
  fail(ErrorKind::Runtime, node->name(),
       ": one of the variables needed for gradient computation has been modified by an inplace operation: '", argument,
       "' (", describe(tensor), ") is at version ", tensor.version(), "; expected version ", expected,
       " instead; last modified by ",
       culprit && culprit->name ? culprit->name : "an operation outside the operator table",
       ". Use the form of that operation without '_', or clone() the tensor first");
}

/// Whether nothing but an assignment to `data` has happened to the tensor since it had that version.
bool moved_on(const Tensor& tensor, uint32_t version) {
  const AutogradMeta* meta = meta_of(tensor);
  return meta && version == meta->data_before && tensor.version() == meta->data_after;
}

}  // namespace

void SavedTensor::refuse_inference(const Tensor& input, const Node* node, const char* argument) {
  fail(ErrorKind::Runtime, node->name(), ": the tensor '", argument, "' (", describe(input),
       ") was made under inference_mode and cannot be saved for the gradient; clone() it outside inference_mode first");
}

void SavedTensor::save_output(const Tensor& result, uint32_t nr) {
  if (!result.defined()) {
    state_ = State::Empty;
    return;
  }
  tensor_ = detached_alias(result);
  version_ = result.version();
  output_ = nr;
  state_ = State::Output;
  if (packing) [[unlikely]]
    pack();
}

void pack_arguments(Node* node) {
  struct Packer final : SavedVisitor {
    void operator()(const char*, SavedTensor& saved) override { saved.pack(); }
  } packer;
  node->each_saved(packer);
}

void SavedTensor::pack() {
  if (state_ == State::Lent) {
    static_cast<LentTensor*>(this)->give_back();
    state_ = State::Input;
  }
  if ((state_ != State::Input && state_ != State::Output) || tensor_.is_wrapped_number()) return;
  const bool output = state_ == State::Output;
  Edge edge = output ? Edge() : collect_edge(tensor_);
  Unpack unpack;
  {
    const GradMode unrecorded(false);
    // Programs know an argument by its identity, its class (a parameter) and what made it.
    unpack = pack_values(output ? detached_alias(tensor_) : tensor_);
  }
  check(tensor_.defined(), ErrorKind::Runtime,
        "saved_tensors_hooks: the pack hook ran a backward that freed what it packs");
  if (tensor_.version() != version_) [[unlikely]]
    fail(ErrorKind::Runtime, "saved_tensors_hooks: the pack hook modified its argument (", describe(tensor_),
         ") in place; work on a clone() of it");
  hold(std::move(unpack), std::move(edge), output);
}

void SavedTensor::hold(Unpack unpack, Edge edge, bool output) {
  auto packed = std::make_unique<taeda::autograd::Packed>();
  packed->unpack = std::move(unpack);
  packed->edge = std::move(edge);
  packed->output = output;
  Tensor holder = empty(Shape{0}, DType::Bool);
  holder.impl()->grad = packed.release();
  tensor_ = std::move(holder);
  state_ = State::Packed;
}

void LentTensor::keep() {
  // What was written unnoticed is refused when it is asked for.
  if (state_ != State::Lent || tensor_.version() != version_) return;
  const GradMode unrecorded(false);
  hold([values = ops::clone(bare_alias(tensor_))] { return values; }, collect_edge(tensor_), false);
}

Tensor SavedTensor::unpack_packed(Node* node) const {
  const Tensor holder = tensor_;  // the hook may run a backward that frees what this node saved
  const auto& way = packed();
  Tensor values;
  {
    const GradMode unrecorded(false);
    values = way.unpack();
  }
  if (!thread_state.grad_enabled || !is_differentiable(values.dtype())) return values;
  if (way.output) return as_output(values, node, output_);
  return way.edge.node ? in_graph(values, way.edge.node, way.edge.output) : detached_alias(values);
}

void SavedTensor::release() noexcept {
  if (state_ == State::Lent) static_cast<LentTensor*>(this)->give_back();
  if (state_ != State::Empty) state_ = State::Released;
  tensor_ = Tensor();
}

Tensor SavedTensor::unpack_slow(Node* node, const char* argument) const {
  if (state_ == State::Released) freed(node, argument);
  if (state_ == State::Empty) return tensor_;
  if (state_ == State::Packed) return unpack_packed(node);
  if (tensor_.version() != version_ && !moved_on(tensor_, version_)) modified(node, argument, tensor_, version_);
  if (state_ != State::Output || !thread_state.grad_enabled || !is_differentiable(tensor_.dtype())) return tensor_;
  // See Note [Saved outputs]: gradients are being recorded, so the result takes its place in the graph again.
  return as_output(tensor_, node, output_);
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
