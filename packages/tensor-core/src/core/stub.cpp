// The slow paths of generated stubs.
#include "taeda/stub.h"

#include <algorithm>
#include <string_view>

#include "taeda/autograd_api.h"
#include "taeda/exported.h"
#include "taeda/lent.h"
#include "taeda/ops/cast.h"
#include "taeda/ops/shape.h"
#include "taeda/texts.h"
#include "taeda/wrappers.h"

namespace taeda::stub {

Tensor clone_of(const Tensor& tensor) { return ops::clone(tensor); }
void copy_into(const Tensor& to, const Tensor& from) { ops::copy_(to, from); }

bool drop_hidden_base(const Tensor& view) {
  TensorImpl* impl = view.impl();
  const TensorImpl* base = impl->base.get();
  const auto held = [](const TensorImpl* t) { return t->python || t->refs.load(std::memory_order_acquire) != 1; };
  if (held(impl) || held(base)) return false;
  // A base that was written after the view was made knows the view's history.
  if ((base->flags & kRequiresGrad) && autograd_api.refresh) autograd_api.refresh(view);
  impl->base.reset();
  impl->flags &= uint8_t(~kUntrackedView);
  if (!(impl->flags & kRequiresGrad)) impl->keys = impl->keys.without(Layer::Autograd);
  return true;
}

namespace {

/// Tensors of one backend (numbers apart): all must be on one of its devices.
Device one_device(const OpEntry& op, BackendId id, std::span<const Tensor* const> tensors,
                  std::initializer_list<TensorList> lists) {
  const Tensor* chosen = nullptr;
  const auto look = [&](const Tensor& t) {
    if (!t.defined() || t.device().backend != id) return;
    if (!chosen) chosen = &t;
    else if (chosen->device() != t.device()) [[unlikely]]
      fail(ErrorKind::Runtime, op.name, ": expected all tensors to be on the same device, found ", describe(*chosen),
           " and ", describe(t));
  };
  for (const Tensor* t : tensors) look(*t);
  for (TensorList list : lists)
    for (const Tensor& t : list) look(t);
  return chosen ? chosen->device() : Device{id, 0};
}

}  // namespace

Place place_mixed(const OpEntry& op, KeySet keys, std::span<const Tensor* const> tensors,
                  std::initializer_list<TensorList> lists) {
  const uint64_t bits = keys.backends().bits();
  if (std::has_single_bit(bits)) return {one_device(op, BackendId(std::countr_zero(bits)), tensors, lists)};
  std::vector<const Tensor*> all(tensors.begin(), tensors.end());
  for (TensorList list : lists)
    for (const Tensor& t : list) all.push_back(&t);
  const BackendId id = resolve_backend(op, keys, all);
  return {one_device(op, id, tensors, lists)};
}

void check_target(const OpEntry& op, const Tensor& target, const char* argument, bool apart) {
  if (is_sealed(target)) [[unlikely]]
    fail(ErrorKind::Runtime, op.name, ": argument '", argument, "' (", describe(target),
         ") was made under inference_mode, outside of which it cannot be changed; clone() it first: Inplace update to "
         "inference tensor outside InferenceMode is not allowed");
  if (is_readonly(target) && !keep_lent(*target.impl()->storage)) [[unlikely]]
    fail(ErrorKind::Runtime, op.name, ": argument '", argument, "' is read-only memory ", describe(target),
         "; copy it first with clone()");
  if (apart) check_places(op, target, argument);
}

ApartList::ApartList(TensorList inputs, const Tensor& target, bool elementwise) : inputs_(inputs) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!disturbed(inputs[i], target, elementwise)) continue;
    if (copies_.empty()) copies_.assign(inputs.begin(), inputs.end());
    copies_[i] = clone_of(inputs[i]);
  }
}

void check_distinct(const OpEntry& op, std::initializer_list<const Tensor*> outputs) {
  for (auto a = outputs.begin(); a != outputs.end(); ++a)
    for (auto b = a + 1; b != outputs.end(); ++b)
      if ((*a)->impl() == (*b)->impl() || overlaps(**a, **b)) [[unlikely]]
        fail(ErrorKind::Runtime, op.name, ": argument 'out' has two tensors that share memory, ", describe(**a),
             " and ", describe(**b));
}

void check_same(const OpEntry& op, const Tensor& target, DType dtype) {
  check(target.dtype() == dtype, ErrorKind::Runtime, op.name, ": the result has dtype ", name(dtype),
        ", and the tensor it goes to ", name(target.dtype()), ", expected the same");
}
void check_made(const OpEntry& op, const Tensor& out, std::optional<DType> dtype, std::optional<Device> device,
                bool requires_grad) {
  check(!dtype || *dtype == out.dtype(), ErrorKind::Runtime, op.name, ": argument 'dtype' is ",
        name(dtype.value_or(out.dtype())), ", expected that of argument 'out', ", name(out.dtype()));
  if (device && *device != out.device()) [[unlikely]]
    fail(ErrorKind::Runtime, op.name, ": argument 'device' is ", to_string(*device),
         ", expected that of argument 'out', ", to_string(out.device()));
  check(!requires_grad, ErrorKind::Runtime, op.name,
        ": argument 'requires_grad' is for new tensors, and 'out' is given; call out.requires_grad_()");
}

namespace {
void check_cast(const OpEntry& op, DType result, DType out) {
  if (!can_cast(result, out)) [[unlikely]]
    fail(ErrorKind::Runtime, op.name, ": the result has dtype ", name(result),
         " and cannot be stored into argument 'out' of dtype ", name(out), ": ", cast_refusal(result, out));
}
}  // namespace

OutTarget::OutTarget(const OpEntry& op, const Tensor& out, const Spec& spec, Place place,
                     std::initializer_list<const Tensor*> inputs, std::initializer_list<TensorList> lists)
    : op_(op), out_(out) {
  if (out.device() != place.device) [[unlikely]]
    fail(ErrorKind::Runtime, op.name, ": argument 'out' is on ", to_string(out.device()), ", expected ",
         to_string(place.device));
  check_cast(op, spec.dtype, out.dtype());
  check_writable(op, out, "out");
  bool apart = out.dtype() == spec.dtype;
  // Reductions and matrix products read an input after writing the output: only an exact element-wise match is safe,
  // and that cannot be told here, so any shared byte goes through a temporary.
  for (const Tensor* input : inputs) apart = apart && !overlaps(out, *input);
  for (TensorList list : lists)
    for (const Tensor& input : list) apart = apart && !overlaps(out, input);
  if (apart) resize_output(out, spec.sizes, op.name);
  else temporary_ = make(spec, place);
}

void OutTarget::finish() const {
  if (temporary_.defined()) {
    resize_output(out_, temporary_.sizes(), op_.name);
    ops::copy_(out_, temporary_);
    blame(op_, out_);
  } else {
    bump(op_, out_);
  }
}

Tensor in_shape_of(const Tensor& out, const Tensor& result) {
  return out.numel() == result.numel() ? ops::reshape(result, out.sizes()) : result;
}

namespace {
/// Whether an operator makes its result from numbers alone: it is asked for sizes, so no one is told that it gives them
/// to its output.
bool is_factory(const OpEntry& op) {
  std::string_view text = op.schema;
  text = text.substr(0, text.find("->"));
  for (std::string_view of_tensors : {"Tensor ", "Tensor[", "Tensor?", "Operand "})
    if (text.find(of_tensors) != text.npos) return false;
  return true;
}
}  // namespace

void store_out(const OpEntry& op, const Tensor& out, const Tensor& result) {
  check_cast(op, result.dtype(), out.dtype());
  if (stated_device(out) != stated_device(result)) [[unlikely]]
    fail(ErrorKind::Runtime, op.name, ": argument 'out' is on ", to_string(stated_device(out)), ", expected ",
         to_string(stated_device(result)));
  if (!std::ranges::equal(out.sizes(), result.sizes()) && !out.is_view() && !out.requires_grad() && is_factory(op))
    resize(out, result.sizes());
  resize_output(out, result.sizes(), op.name);
  ops::copy_(out, result);
  blame(op, out);
}

}  // namespace taeda::stub
