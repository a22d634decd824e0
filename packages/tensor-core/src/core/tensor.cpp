// Life, layout and making of tensors.
#include "taeda/tensor.h"

#include <algorithm>
#include <limits>

#include "core/composite_kernels.h"
#include "core/runtime.h"
#include "taeda/checked.h"
#include "taeda/dispatch.h"
#include "taeda/exported.h"
#include "taeda/levels.h"
#include "taeda/ops/cast.h"
#include "taeda/reach.h"
#include "taeda/warn.h"
#include "taeda/wrappers.h"

namespace taeda {

constinit thread_local ThreadState thread_state;
void (*release_python_wrapper)(void* wrapper) noexcept = nullptr;
WrapperApi wrapper_api;

namespace {

using TensorMemory = detail::FreeList<TensorImpl, 512>;

Ref<TensorImpl> fresh() { return Ref<TensorImpl>::adopt(new (TensorMemory::take()) TensorImpl); }

int64_t* reserve_dims(TensorImpl* impl, size_t ndim) {
  check(ndim <= size_t(kMaxDims), ErrorKind::Value, "a tensor has at most ", kMaxDims, " dimensions, asked for ", ndim);
  if (impl->dims != impl->inline_dims) delete[] impl->dims;
  impl->dims = ndim <= size_t(TensorImpl::kInlineDims) ? impl->inline_dims : new int64_t[2 * ndim];
  impl->ndim = uint8_t(ndim);
  return impl->dims;
}

void set_dims(TensorImpl* impl, IntSpan sizes, IntSpan strides) {
  int64_t* dims = reserve_dims(impl, sizes.size());
  std::copy(sizes.begin(), sizes.end(), dims);
  std::copy(strides.begin(), strides.end(), dims + sizes.size());
}

[[gnu::noinline]] size_t checked_large_bytes(int64_t numel, DType dtype, IntSpan sizes, Device device) {
  const Count bytes = Count(numel) * item_size(dtype);
  const bool has_memory = device.backend != kMeta;
  if (!(bytes.fits() && (!has_memory || bytes.of("empty") < (int64_t(1) << 47)))) [[unlikely]]
    fail(ErrorKind::Memory, "empty: a tensor of shape ", shape_text(sizes), " and dtype ", name(dtype),
         " does not fit in memory: DefaultCPUAllocator: can't allocate memory");
  return size_t(bytes.of("empty"));
}
[[gnu::always_inline]] inline size_t checked_bytes(int64_t numel, DType dtype, IntSpan sizes, Device device) {
  if (numel >> 40 == 0) [[likely]]
    return size_t(numel * item_size(dtype));
  return checked_large_bytes(numel, dtype, sizes, device);
}

inline Ref<TensorImpl> fresh_on(DType dtype, Device device) {
  Ref<TensorImpl> impl = fresh();
  impl->dtype = dtype;
  impl->device = device;
  impl->keys = detail::keys_on(device.backend);
  if (is_float8(dtype)) [[unlikely]]
    impl->keys = impl->keys | float8_key();
  if (thread_state.inference_mode) impl->flags |= kInference;
  return impl;
}

/// Other sizes over the same memory, row-major from the same first element.
void show(TensorImpl* impl, IntSpan sizes) {
  const Shape kept(sizes);  // may be those of the tensor itself
  set_dims(impl, kept, contiguous_strides(kept));
  refresh_layout(impl);
}

/// The rare ties of a dying tensor: the wrapper that it owns, what it carries.
[[gnu::noinline]] void end_bonds(TensorImpl* impl) noexcept {
  if (impl->flags & kOwnsPython) release_python_wrapper(impl->python);
  if (impl->flags & kCarries) end_payloads(impl);
}

/// Whether views of a tensor out of the ordinary may become part of a graph.
[[gnu::noinline]] bool is_tracked_kind(TensorImpl* impl) {
  check_has_memory(Tensor(Ref<TensorImpl>::share(impl)), "view");
  return !(impl->flags & kInference);
}

/// Points to memory of its own that begins with the bytes which `self` showed, in their order.
void move_to_new_memory(const Tensor& self, IntSpan sizes) {
  const Tensor made = empty(sizes, self.dtype(), self.device());
  const Storage& storage = *self.impl()->storage;
  if (storage.data) {
    const int64_t after = (static_cast<char*>(storage.data) + storage.nbytes - self.bytes()) / self.item_bytes();
    const int64_t count = std::min(after, made.numel());
    Below autograd(Layer::Autograd);
    if (count > 0) ops::copy_(alias(made, Shape{count}, Shape{1}, 0), alias(self, Shape{count}, Shape{1}, 0));
  }
  assign_storage(self, made);
  self.impl()->base = nullptr;
}

/// Gives back a tensor whose bonds have ended.
void give_back(TensorImpl* impl) noexcept {
  delete impl->grad;
  if (impl->dims != impl->inline_dims) delete[] impl->dims;
  impl->~TensorImpl();
  TensorMemory::give(impl);
}

/// Gradients have gradients in turn: of a chain, the tensors beyond so many wait in a list, so that one of any length
/// dies on a small stack.
struct Heirs {
  static constexpr int kDeepest = 50;
  TensorImpl* waiting = nullptr;
  int depth = 0;

  void end(TensorImpl* impl) noexcept {
    if (depth == kDeepest) {
      impl->python = std::exchange(waiting, impl);
      return;
    }
    ++depth;
    give_back(impl);
    if (depth == 1) {
      while (TensorImpl* next = waiting) {
        waiting = static_cast<TensorImpl*>(next->python);
        give_back(next);
      }
    }
    --depth;
  }
};
thread_local constinit Heirs heirs __attribute__((tls_model("initial-exec")));

}  // namespace

void destroy(TensorImpl* impl) noexcept {
  if (impl->flags & (kOwnsPython | kCarries)) [[unlikely]]
    end_bonds(impl);
  if (impl->grad) heirs.end(impl);
  else give_back(impl);
}

void refresh_layout(TensorImpl* impl) noexcept {
  const int n = impl->ndim;
  const int64_t* sizes = impl->dims;
  const int64_t* strides = impl->dims + n;
  int64_t numel = 1;
  for (int d = 0; d < n; ++d) numel *= sizes[d];
  impl->numel = numel;
  if (numel == 0) {
    impl->layout = kContiguous | kDense | (n == 4 ? kChannelsLast : 0);
    return;
  }
  bool contiguous = true;
  for (int64_t d = n - 1, expected = 1; d >= 0; --d) {
    if (sizes[d] != 1) {
      if (strides[d] != expected) {
        contiguous = false;
        break;
      }
      expected *= sizes[d];
    }
  }
  uint8_t layout = contiguous ? kContiguous | kDense : 0;
  if (n == 4) {
    bool last = true;
    int64_t expected = 1;
    for (int d : {1, 3, 2, 0}) {
      if (sizes[d] == 1) continue;
      last = last && strides[d] == expected;
      expected *= sizes[d];
    }
    if (last) layout |= kChannelsLast | kDense;
  }
  if (!(layout & kDense)) {
    // Dense: sorted by stride, each stride is the product of the sizes below it.
    int order[kMaxDims];
    int count = 0;
    for (int d = 0; d < n; ++d)
      if (sizes[d] != 1) order[count++] = d;
    std::sort(order, order + count, [&](int a, int b) { return strides[a] < strides[b]; });
    int64_t expected = 1;
    bool dense = true;
    for (int i = 0; i < count && dense; ++i) {
      dense = strides[order[i]] == expected;
      expected *= sizes[order[i]];
    }
    if (dense) layout |= kDense;
  }
  impl->layout = layout;
}

Tensor empty(IntSpan sizes, DType dtype, Device device) {
  Ref<TensorImpl> impl = fresh_on(dtype, device);
  int64_t* dims = reserve_dims(impl.get(), sizes.size());
  const int n = int(sizes.size());
  uint64_t count = 1, bits = 0;
  for (int d = n - 1; d >= 0; --d) {
    dims[d] = sizes[d];
    dims[n + d] = int64_t(count);
    bits |= count | uint64_t(sizes[d]);
    count *= uint64_t(sizes[d]);
  }
  int64_t numel = int64_t(count);
  if (bits >> 29 || numel == 0) [[unlikely]] {  // as in count_of()
    numel = count_of(sizes, "empty");
    const Shape strides = contiguous_strides(sizes);
    std::copy(strides.begin(), strides.end(), dims + n);
  }
  impl->numel = numel;
  if (n == 4) refresh_layout(impl.get());
  impl->storage = new_storage(checked_bytes(numel, dtype, sizes, device), device);
  impl->data = static_cast<char*>(impl->storage->data);
  return Tensor(std::move(impl));
}

Tensor empty_strided(IntSpan sizes, IntSpan strides, DType dtype, Device device) {
  Ref<TensorImpl> impl = fresh_on(dtype, device);
  const int64_t numel = count_of(sizes, "empty_strided");
  for (size_t d = 0; numel && d < sizes.size(); ++d)
    check(strides[d] >= 0 || sizes[d] == 1, ErrorKind::Value,
          "empty_strided: argument 'stride' must not be negative, got ", shape_text(strides));
  const int64_t extent = reach_of("empty_strided", sizes, strides, 1).high;
  set_dims(impl.get(), sizes, settled_strides(sizes, strides));
  refresh_layout(impl.get());
  impl->storage = new_storage(checked_bytes(extent, dtype, sizes, device), device);
  impl->data = static_cast<char*>(impl->storage->data);
  return Tensor(std::move(impl));
}

Tensor alias(const Tensor& self, IntSpan sizes, IntSpan strides, int64_t offset) {
  TensorImpl* from = self.impl();
  count_of(sizes, "view");
  Ref<TensorImpl> impl = fresh();
  impl->dtype = from->dtype;
  impl->device = from->device;
  impl->flags = from->flags & (kDetachedData | kInference);
  impl->storage = from->storage;
  // As a number: what has no elements may begin beyond its storage, which may have no memory at all.
  impl->data =
      reinterpret_cast<char*>(reinterpret_cast<uintptr_t>(from->data) + uintptr_t(offset * item_size(from->dtype)));
  set_dims(impl.get(), sizes, strides);
  refresh_layout(impl.get());
  if (!(from->flags & (kInference | kCarries)) || is_tracked_kind(from)) [[likely]] {
    impl->base = from->base ? from->base : Ref<TensorImpl>::share(from);
    impl->keys = from->keys.inherent() | KeySet::of(Layer::Autograd);
    if (!thread_state.grad_enabled || (from->flags & kUntrackedView)) impl->flags |= kUntrackedView;
  } else {
    impl->keys = from->keys.inherent();
  }
  return Tensor(std::move(impl));
}

Tensor detached_alias(const Tensor& self) {
  return is_wrapper(self) && wrapper_api.alias ? wrapper_api.alias(self) : bare_alias(self);
}

Tensor bare_alias(const Tensor& self) {
  TensorImpl* from = self.impl();
  Ref<TensorImpl> impl = fresh_on(from->dtype, from->device);
  if (from->flags & (kInference | kCarries)) [[unlikely]] {
    if (from->flags & kInference) impl->flags |= kInference | kDetachedData;
    share_carried(impl.get(), self);
  }
  impl->storage = from->storage;
  impl->data = from->data;
  set_dims(impl.get(), self.sizes(), self.strides());
  impl->numel = from->numel;
  impl->layout = from->layout;
  return Tensor(std::move(impl));
}

Tensor shape_only(IntSpan sizes, DType dtype, Device device) {
  count_of(sizes, "empty");
  Ref<TensorImpl> impl = fresh_on(dtype, device);
  show(impl.get(), sizes);
  return Tensor(std::move(impl));
}

Tensor from_storage(Ref<Storage> storage, IntSpan sizes, IntSpan strides, int64_t byte_offset, DType dtype) {
  count_of(sizes, "from_storage");
  Ref<TensorImpl> impl = fresh_on(dtype, storage->device);
  impl->data = static_cast<char*>(storage->data) + byte_offset;
  impl->storage = std::move(storage);
  set_dims(impl.get(), sizes, strides);
  refresh_layout(impl.get());
  return Tensor(std::move(impl));
}

void assign_storage(const Tensor& self, const Tensor& other) {
  TensorImpl* to = self.impl();
  TensorImpl* from = other.impl();
  if (to == from) return;
  set_dims(to, other.sizes(), other.strides());
  // Callers count this as a write. The version goes on from that of the storage left behind, so that nothing saved
  // earlier finds its own version there.
  if (to->storage && from->storage) from->storage->version = std::max(from->storage->version, to->storage->version);
  to->storage = from->storage;
  to->data = from->data;
  set_dtype(to, from->dtype);
  to->numel = from->numel;
  to->layout = from->layout;
}

void resize_output(const Tensor& out, IntSpan sizes, const char* op) {
  if (std::ranges::equal(out.sizes(), sizes)) return;
  if (out.impl()->base) [[unlikely]]
    fail(ErrorKind::Runtime, op, ": argument 'out' is a view of shape ", shape_text(out.sizes()),
         " and cannot be resized to the result's shape ", shape_text(sizes));
  check(!out.requires_grad(), ErrorKind::Runtime, op, ": argument 'out' requires grad and cannot be resized");
  // Beyond the elements that it shows there may be an operand.
  const bool fits = out.contiguous() && count_of(sizes, op) <= out.numel();
  if (!fits) check_growth(out, sizes, op, "out");
  if (out.numel() > 0)
    warn("An output with one or more elements was resized: ", op, "'s argument 'out' had shape ",
         shape_text(out.sizes()), " and the result has ", shape_text(sizes),
         "; an empty one, out.resize_(0), is resized without a warning");
  if (fits) return show(out.impl(), sizes);
  assign_storage(out, empty(sizes, out.dtype(), out.device()));
}

void resize(const Tensor& self, IntSpan sizes) {
  if (std::ranges::equal(self.sizes(), sizes)) return;
  check_has_memory(self, "resize_");
  check(!self.requires_grad(), ErrorKind::Runtime, "resize_: argument 'self' requires grad and cannot be resized");
  const Storage& storage = *self.impl()->storage;
  const int64_t before = storage.data ? self.bytes() - static_cast<char*>(storage.data) : 0;
  const int64_t needed = int64_t(checked_bytes(count_of(sizes, "resize_"), self.dtype(), sizes, self.device()));
  if (needed == 0 || needed <= int64_t(storage.nbytes) - before) return show(self.impl(), sizes);
  check_growth(self, sizes, "resize_", "self");
  move_to_new_memory(self, sizes);
}

int64_t Tensor::storage_offset() const noexcept {
  if (!impl_->storage) return 0;
  return (impl_->data - static_cast<char*>(impl_->storage->data)) / item_bytes();
}

Tensor::Tensor(const Scalar& number) {
  // The number is kept in double precision: it meets its operand's dtype only inside the kernel.
  const DType dtype = number.kind() == Scalar::Kind::Complex ? DType::Complex128
                      : number.kind() == Scalar::Kind::Float ? DType::Float64
                                                             : number.dtype();
  Tensor made = empty({}, dtype);
  switch (number.kind()) {
    case Scalar::Kind::Bool: *made.data<bool>() = number.to<bool>(); break;
    case Scalar::Kind::Int: *made.data<int64_t>() = number.to<int64_t>(); break;
    case Scalar::Kind::UInt: *made.data<uint64_t>() = number.to<uint64_t>(); break;
    case Scalar::Kind::Float: *made.data<double>() = number.to<double>(); break;
    case Scalar::Kind::Complex: *made.data<Complex128>() = number.to<Complex128>(); break;
  }
  made.impl()->flags |= kWrappedNumber;
  impl_ = std::move(made.impl_);
}

}  // namespace taeda
