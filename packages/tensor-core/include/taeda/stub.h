// What the generated stubs share: choosing the place of a call, walking layers, out= and in-place targets.
#pragma once
#include <tuple>

#include "taeda/backend.h"
#include "taeda/dispatch.h"
#include "taeda/half.h"
#include "taeda/interrupt.h"
#include "taeda/spec.h"

namespace taeda::stub {

/// `clone` and `copy_` without their headers.
TAEDA_API Tensor clone_of(const Tensor& tensor);
TAEDA_API void copy_into(const Tensor& to, const Tensor& from);

/// Backend and device index that a call computes on.
struct Place {
  Device device;
};

/// Note [Hidden bases]
/// What an operator returns may have been made as a view of a temporary. To the user that is a tensor like any other:
/// it has no base, its hooks stay when it is written in place, and its being made under no_grad forbids nothing. Makes
/// it so where nobody but the view holds the base; false when there are other holders.
TAEDA_API bool drop_hidden_base(const Tensor& view);

inline KeySet keys_of(TensorList tensors) {
  KeySet keys;
  for (const Tensor& t : tensors) keys = keys | t.keys();
  return keys;
}

inline Place place_of(Device device) { return {device}; }
inline Place place_of(std::optional<Device> device) { return {device.value_or(Device{})}; }

TAEDA_API Place place_mixed(const OpEntry& op, KeySet keys, std::span<const Tensor* const> tensors,
                            std::initializer_list<TensorList> lists);

/// One backend among the arguments: its number is its bit. Several devices of it are told apart only when it has
/// several.
template <class... Lists>
inline Place place_of(const OpEntry& op, KeySet keys, std::span<const Tensor* const> tensors, const Lists&... lists) {
  if (keys.backends() == KeySet::backend(kCPU)) [[likely]]
    return {Device{}};
  return place_mixed(op, keys, tensors, {TensorList(lists)...});
}

inline Tensor make(const Spec& spec, Place place) {
  return spec.strides.empty() ? empty(spec.sizes, spec.dtype, place.device)
                              : empty_strided(spec.sizes, spec.strides, spec.dtype, place.device);
}

// What kernels get as an argument `dim` is counted from the front; inference has checked it.
inline int64_t wrapped(int64_t dim, int64_t rank) noexcept { return dim < 0 ? dim + (rank ? rank : 1) : dim; }
inline std::optional<int64_t> wrapped(std::optional<int64_t> dim, int64_t rank) noexcept {
  return dim ? std::optional(wrapped(*dim, rank)) : dim;
}
/// Dimensions, copied only where one of them is negative.
class WrappedDims {
 public:
  WrappedDims(IntSpan given, int64_t rank) : given_(given) {
    bool negative = false;
    for (const int64_t dim : given) negative |= dim < 0;
    if (!negative) return;
    own_.assign(given);
    for (int64_t& dim : own_) dim = wrapped(dim, rank);
  }
  WrappedDims(const WrappedDims&) = delete;
  operator IntSpan() const noexcept { return own_.empty() ? given_ : IntSpan(own_); }

 private:
  IntSpan given_;
  Shape own_;
};
class WrappedDimsOrNone {
 public:
  WrappedDimsOrNone(std::optional<IntSpan> given, int64_t rank)
      : some_(given), dims_(given.value_or(IntSpan()), rank) {}
  operator std::optional<IntSpan>() const noexcept { return some_ ? std::optional<IntSpan>(dims_) : std::nullopt; }

 private:
  bool some_;
  WrappedDims dims_;
};
inline WrappedDims wrapped(IntSpan dims, int64_t rank) { return {dims, rank}; }
inline WrappedDimsOrNone wrapped(std::optional<IntSpan> dims, int64_t rank) { return {dims, rank}; }

/// The typed kernel; null (nothing to do) for backends without memory.
template <class Op>
inline typename Op::Kernel* kernel_of(const OpEntry& op, Place place) {
  void* found = op.kernels->typed[place.device.backend];
  if (!found) [[unlikely]]
    found = missing_kernel(op, Op::entry, place.device.backend);
  return reinterpret_cast<typename Op::Kernel*>(found);
}
template <class Op>
inline typename Op::Kernel* direct_of(const OpEntry& op, Place place) {
  void* found = op.kernels->typed[place.device.backend];
  if (!found) [[unlikely]] {
    found = missing_kernel(op, Op::entry, place.device.backend);
    if (!found) no_kernel(op, place.device.backend);
  }
  return reinterpret_cast<typename Op::Kernel*>(found);
}

/// Function of an operator that only writes to its first argument: for backends without memory there is nothing to do.
template <class Op>
inline typename Op::Kernel* writer_of(const OpEntry& op, Place place) {
  void* found = op.kernels->typed[place.device.backend];
  if (!found) [[unlikely]]
    found = missing_kernel(op, Op::entry, place.device.backend);
  return reinterpret_cast<typename Op::Kernel*>(found);
}

/// Calls the entry of the first active layer that has one, which calls the operator again with itself excluded; without
/// one, the form's own computation. One function serves all forms of a signature, as do layers: what is theirs comes
/// last, so that the arguments stay where they are.
template <class Fn>
struct Layers;
template <class R, class... A>
struct Layers<R(KeySet, A...)> {
  [[gnu::noinline]] static R call(KeySet keys, A... arguments, const OpEntry& op, R (*compute)(KeySet, A...)) {
    for (KeySet rest = keys; rest.has_layers(); rest = rest.without_slot(rest.top_slot()))
      if (void* layer = op.layers[rest.top_slot()])
        return reinterpret_cast<R (*)(KeySet, A..., const OpEntry&)>(layer)(rest, arguments..., op);
    return compute(keys, arguments...);
  }
};

// What a schema calls written, `Tensor(a!)`, is checked before anything is computed and counted afterwards. Optional
// tensors may be absent; of a list all items are meant.

/// RuntimeError unless the target is memory that may be written to, of a tensor that may change, and, with `apart`,
/// shows no place twice.
TAEDA_API void check_target(const OpEntry& op, const Tensor& target, const char* argument, bool apart);

inline bool is_readonly(const Tensor& t) noexcept { return t.impl()->storage && t.impl()->storage->readonly; }
/// Whether the tensor was made under inference_mode and must stay as it is outside: nothing tells its changes. What
/// `detach` and `.data` gave of it may change.
inline bool is_sealed(const Tensor& t) noexcept {
  return (t.impl()->flags & (kInference | kDetachedData)) == kInference && !thread_state.inference_mode;
}
inline bool is_fixed(const Tensor& t) noexcept { return is_readonly(t) || is_sealed(t); }
inline void check_writable(const OpEntry& op, const Tensor& target, const char* argument) {
  if (target.defined() && (!target.dense() || is_fixed(target))) [[unlikely]]
    check_target(op, target, argument, true);
}
inline void check_writable(const OpEntry& op, TensorList list, const char* argument) {
  for (const Tensor& t : list) check_writable(op, t, argument);
}
/// One value for all elements may be written to one place twice.
inline void check_memory(const OpEntry& op, const Tensor& target, const char* argument) {
  if (is_fixed(target)) [[unlikely]]
    check_target(op, target, argument, false);
}
/// What a tensor shows may be changed where its memory must not be.
inline void check_shown(const OpEntry& op, const Tensor& target, const char* argument) {
  if (is_sealed(target)) [[unlikely]]
    check_target(op, target, argument, false);
}

inline void bump(const OpEntry& op, const Tensor& self) {
  if (self.defined()) self.bump_version(op.id);
}
inline void bump(const OpEntry& op, TensorList list) {
  for (const Tensor& t : list) bump(op, t);
}
/// Runs the kernel of an in-place call. A target that a signal left partly written has a new version: what was saved of
/// it is gone.
template <class Call>
inline void writing(const OpEntry& op, const Tensor& self, Call&& call) {
  try {
    call();
  } catch (const Interrupted&) {
    bump(op, self);
    throw;
  }
}
template <class Call>
inline void writing(const OpEntry& op, TensorList list, Call&& call) {
  try {
    call();
  } catch (const Interrupted&) {
    bump(op, list);
    throw;
  }
}

/// The operator that was called is named as the last one that wrote, in the place of those that it is made of.
inline void blame(const OpEntry& op, const Tensor& self) {
  if (self.defined() && self.impl()->storage && !(self.impl()->flags & kDetachedData))
    self.impl()->storage->last_mutator = op.id;
}
inline void blame(const OpEntry& op, TensorList list) {
  for (const Tensor& t : list) blame(op, t);
}

/// Whether a call that writes to `target` must copy this input first. One that makes each element of the same elements
/// alone may read the target itself.
inline bool disturbed(const Tensor& input, const Tensor& target, bool elementwise) {
  return overlaps(input, target) && !(elementwise && same_place(input, target));
}
/// An input of an in-place call, copied when it shares bytes with the target.
class Apart {
 public:
  Apart(const Tensor& input, const Tensor& target, bool elementwise) : input_(&input) {
    if (disturbed(input, target, elementwise)) [[unlikely]]
      copy_ = clone_of(input);
  }
  const Tensor& get() const { return copy_.defined() ? copy_ : *input_; }

 private:
  const Tensor* input_;
  Tensor copy_;
};

/// The same for a list.
class TAEDA_API ApartList {
 public:
  ApartList(TensorList inputs, const Tensor& target, bool elementwise);
  TensorList get() const { return copies_.empty() ? inputs_ : TensorList(copies_); }

 private:
  TensorList inputs_;
  std::vector<Tensor> copies_;
};

/// RuntimeError when two outputs share memory.
TAEDA_API void check_distinct(const OpEntry& op, std::initializer_list<const Tensor*> outputs);

/// RuntimeError unless the target has exactly the result's dtype.
TAEDA_API void check_same(const OpEntry& op, const Tensor& target, DType dtype);
/// RuntimeError when a factory is asked for another dtype or device than its out= tensor has, or for a leaf.
TAEDA_API void check_made(const OpEntry& op, const Tensor& out, std::optional<DType> dtype,
                          std::optional<Device> device, bool requires_grad);

/// Where an out= form computes: the given tensor, or a temporary when dtype or memory do not allow that.
class TAEDA_API OutTarget {
 public:
  OutTarget(const OpEntry& op, const Tensor& out, const Spec& spec, Place place,
            std::initializer_list<const Tensor*> inputs, std::initializer_list<TensorList> lists);
  const Tensor& tensor() const { return temporary_.defined() ? temporary_ : out_; }
  void finish() const;

 private:
  const OpEntry& op_;
  const Tensor& out_;
  Tensor temporary_;
};

/// The last step of a composite: a result that shows a tensor which nobody else holds is no view (see Note [Hidden
/// bases]).
template <class T>
inline void settle(const T&) noexcept {}  // numbers
inline void settle(const Tensor& result) {
  const TensorImpl* impl = result.impl();
  if (impl && impl->base && impl->base->refs.load(std::memory_order_relaxed) == 1) [[unlikely]]
    drop_hidden_base(result);
}
inline void settle(const std::vector<Tensor>& results) {
  for (const Tensor& t : results) settle(t);
}
template <class... T>
inline void settle(const std::tuple<T...>& results) {
  std::apply([](const T&... each) { (settle(each), ...); }, results);
}

/// A result in the shape of an out= tensor of as many elements, which keeps it; else as it is.
TAEDA_API Tensor in_shape_of(const Tensor& out, const Tensor& result);
/// Stores a computed result into an out= tensor.
TAEDA_API void store_out(const OpEntry& op, const Tensor& out, const Tensor& result);

}  // namespace taeda::stub
