// The ABI's functions on tensors, generators and streams.
#include "abi/bridge.h"
#include "taeda/backend.h"
#include "taeda/ops/cast.h"
#include "taeda/parallel.h"
#include "taeda/stream.h"

namespace taeda::abi {
namespace {

uint32_t flags_of(const TensorImpl& t) {
  static_assert(int(kContiguous) == int(TAEDA_TENSOR_CONTIGUOUS) &&
                int(kChannelsLast) == int(TAEDA_TENSOR_CHANNELS_LAST) && int(kDense) == int(TAEDA_TENSOR_DENSE));
  uint32_t flags = t.layout;
  if (t.flags & kWrappedNumber) flags |= TAEDA_TENSOR_NUMBER;
  if (t.flags & kRequiresGrad) flags |= TAEDA_TENSOR_REQUIRES_GRAD;
  if (t.storage && t.storage->readonly) flags |= TAEDA_TENSOR_READONLY;
  if (t.base) flags |= TAEDA_TENSOR_VIEW;
  return flags;
}

IntSpan span_of(int32_t ndim, const int64_t* items) {
  check(ndim >= 0 && ndim <= TAEDA_MAX_DIMS, ErrorKind::Value, "taeda ABI: ndim must be from 0 to ", TAEDA_MAX_DIMS,
        ", found ", ndim);
  check(items || ndim == 0, ErrorKind::Value, "taeda ABI: sizes or strides are null");
  return {items, size_t(ndim)};
}
void check_sizes(IntSpan sizes) {
  for (int64_t s : sizes)
    check(s >= 0, ErrorKind::Value, "taeda ABI: sizes must not be negative, found ", shape_text(sizes));
}

}  // namespace

int32_t tensor_read(taeda_tensor tensor, taeda_tensor_info* info) {
  if (!tensor || !info || info->size < sizeof(size_t)) [[unlikely]]
    return set_error(TAEDA_E_VALUE, "tensor_read: the tensor is null, or the size of the struct to fill is not set");
  const TensorImpl& t = *reinterpret_cast<TensorImpl*>(tensor);
  taeda_tensor_info all;
  all.size = info->size;
  all.data = t.data;
  all.sizes = t.dims;
  all.strides = t.dims + t.ndim;
  all.numel = t.numel;
  all.ndim = t.ndim;
  all.dtype = int32_t(t.dtype);
  all.device = to_c(t.device);
  all.flags = flags_of(t);
  all.item_size = uint32_t(item_size(t.dtype));
  all.storage = t.storage ? t.storage->data : nullptr;
  all.storage_size = t.storage ? t.storage->nbytes : 0;
  std::memcpy(static_cast<void*>(info), &all, std::min(info->size, sizeof all));
  return TAEDA_OK;
}

void tensor_retain(taeda_tensor tensor) {
  if (tensor) reinterpret_cast<TensorImpl*>(tensor)->retain();
}
void tensor_release(taeda_tensor tensor) { Ref<TensorImpl>::adopt(reinterpret_cast<TensorImpl*>(tensor)); }

int32_t tensor_empty(int32_t ndim, const int64_t* sizes, const int64_t* strides, int32_t dtype, taeda_device device,
                     taeda_tensor* result) {
  return guarded([&] {
    const IntSpan shape = span_of(ndim, sizes);
    check_sizes(shape);
    Tensor made = strides ? empty_strided(shape, span_of(ndim, strides), dtype_from_c(dtype), from_c(device))
                          : empty(shape, dtype_from_c(dtype), from_c(device));
    *result = given_away(std::move(made));
  });
}

int32_t tensor_view(taeda_tensor tensor, int32_t ndim, const int64_t* sizes, const int64_t* strides, int64_t offset,
                    taeda_tensor* result) {
  return guarded([&] {
    const Tensor self = borrowed(tensor);
    const IntSpan shape = span_of(ndim, sizes), steps = span_of(ndim, strides);
    check_sizes(shape);
    // In bytes from the beginning of the storage: the view must stay inside.
    const int64_t item = self.item_bytes();
    int64_t low =
        self.bytes() - static_cast<char*>(self.impl()->storage ? self.impl()->storage->data : nullptr) + offset * item;
    int64_t high = low + item;
    bool any = true;
    for (size_t d = 0; d < shape.size(); ++d) {
      any = any && shape[d] > 0;
      (steps[d] < 0 ? low : high) += (shape[d] - 1) * steps[d] * item;
    }
    const int64_t room = self.impl()->storage ? int64_t(self.impl()->storage->nbytes) : 0;
    check(!any || (low >= 0 && high <= room), ErrorKind::Value, "tensor_view: a view of shape ", shape_text(shape),
          " and strides ", shape_text(steps), " at offset ", offset, " leaves the memory of ", describe(self));
    *result = given_away(alias(self, shape, steps, offset));
  });
}

int32_t tensor_wrap(void* data, size_t nbytes, taeda_device device, int32_t ndim, const int64_t* sizes,
                    const int64_t* strides, int32_t dtype, int32_t readonly, void (*release)(void*, size_t, void*),
                    void* context, taeda_tensor* result) {
  return guarded([&] {
    const IntSpan shape = span_of(ndim, sizes);
    check_sizes(shape);
    const Shape steps = strides ? Shape(span_of(ndim, strides)) : contiguous_strides(shape);
    const DType type = dtype_from_c(dtype);
    int64_t low = 0, high = product(shape) ? item_size(type) : 0;
    for (size_t d = 0; d < shape.size() && high; ++d)
      (steps[d] < 0 ? low : high) += (shape[d] - 1) * steps[d] * item_size(type);
    check(high - low <= int64_t(nbytes), ErrorKind::Value, "tensor_wrap: shape ", shape_text(shape), " and strides ",
          shape_text(steps), " need ", high - low, " bytes, found ", nbytes);
    // The memory starts at its lowest byte, elements may begin further on.
    Ref<Storage> storage = borrow_storage(data, nbytes, from_c(device), readonly != 0, nullptr, nullptr);
    Tensor made = from_storage(storage, shape, steps, -low, type);
    storage->release = release;  // last: an error above leaves the memory with the caller
    storage->context = context;
    *result = given_away(std::move(made));
  });
}

namespace {
Tensor over(void* memory, size_t nbytes, const Tensor& like, bool readonly) {
  const size_t needed = size_t(like.numel() * like.item_bytes());
  check(nbytes == needed && (memory || !needed), ErrorKind::Value, "taeda ABI: elements of ", describe(like), " take ",
        needed, " bytes, found room for ", nbytes);
  return from_storage(borrow_storage(memory, nbytes, Device{}, readonly, nullptr, nullptr), like.sizes(),
                      contiguous_strides(like.sizes()), 0, like.dtype());
}
}  // namespace

int32_t tensor_to_host(taeda_tensor tensor, void* to, size_t nbytes) {
  return guarded([&] {
    const Tensor self = detached_alias(borrowed(tensor));
    ops::copy_(over(to, nbytes, self, false), self);
  });
}
int32_t tensor_from_host(taeda_tensor tensor, const void* from, size_t nbytes) {
  return guarded([&] {
    const Tensor self = borrowed(tensor);
    ops::copy_(self, over(const_cast<void*>(from), nbytes, self, true));
  });
}

int32_t generator_reserve(taeda_generator generator, taeda_device device, uint64_t blocks, uint64_t* seed,
                          uint64_t* offset) {
  return guarded([&] {
    const Generator chosen =
        generator ? Generator::share(reinterpret_cast<GeneratorImpl*>(generator)) : default_generator(from_c(device));
    const PhiloxRange range = reserve(chosen, blocks);
    *seed = range.seed;
    *offset = range.offset;
  });
}

taeda_stream stream_current(taeda_device device) {
  return current_stream_handle({BackendId(device.backend), int8_t(device.index)});
}

void* host_release() { return host_lock.release ? host_lock.release() : nullptr; }
void host_acquire(void* token) {
  if (token) host_lock.acquire(token);
}

}  // namespace taeda::abi
