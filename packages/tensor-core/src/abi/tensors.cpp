// The ABI's functions on tensors, generators and streams.
#include "abi/bridge.h"
#include "taeda/lent.h"
#include "taeda/reach.h"
#include "taeda/backend.h"
#include "taeda/checked.h"
#include "taeda/ops/cast.h"
#include "taeda/ops/shape.h"
#include "taeda/parallel.h"
#include "taeda/python_api.h"
#include "taeda/stream.h"

namespace taeda::abi {
namespace {

uint32_t flags_of(const TensorImpl& t) {
  static_assert(int(kContiguous) == int(TAEDA_TENSOR_CONTIGUOUS) &&
                int(kChannelsLast) == int(TAEDA_TENSOR_CHANNELS_LAST) && int(kDense) == int(TAEDA_TENSOR_DENSE));
  uint32_t flags = t.layout;
  if (t.flags & kWrappedNumber) flags |= TAEDA_TENSOR_NUMBER;
  if (t.flags & kRequiresGrad) flags |= TAEDA_TENSOR_REQUIRES_GRAD;
  if (t.storage && is_fixed(*t.storage)) flags |= TAEDA_TENSOR_READONLY;
  if (t.base) flags |= TAEDA_TENSOR_VIEW;
  return flags;
}

IntSpan span_of(int32_t ndim, const int64_t* items) {
  check(ndim >= 0 && ndim <= TAEDA_MAX_DIMS, ErrorKind::Value, "taeda ABI: ndim must be from 0 to ", TAEDA_MAX_DIMS,
        ", found ", ndim);
  check(items || ndim == 0, ErrorKind::Value, "taeda ABI: sizes or strides are null");
  return {items, size_t(ndim)};
}
IntSpan sizes_of(int32_t ndim, const int64_t* items) {
  const IntSpan sizes = span_of(ndim, items);
  for (int64_t s : sizes)
    check(s >= 0, ErrorKind::Value, "taeda ABI: sizes must not be negative, found ", shape_text(sizes));
  count_of(sizes, "taeda ABI");
  return sizes;
}

}  // namespace

int32_t tensor_read(taeda_tensor tensor, taeda_tensor_info* info) {
  if (!tensor || !info || info->size < sizeof(size_t)) [[unlikely]]
    return set_error(TAEDA_E_VALUE, "tensor_read: the tensor is null, or the size of the struct to fill is not set");
  const TensorImpl& t = *reinterpret_cast<TensorImpl*>(tensor);
  constexpr size_t geometry = offsetof(taeda_tensor_info, device);  // what most callers look at
  taeda_tensor_info all;
  taeda_tensor_info& first = info->size >= geometry ? *info : all;
  first.data = t.data;
  first.sizes = t.dims;
  first.strides = t.dims + t.ndim;
  first.numel = t.numel;
  first.ndim = t.ndim;
  first.dtype = int32_t(t.dtype);
  if (info->size == geometry) return TAEDA_OK;
  all.device = to_c(t.device);
  all.flags = flags_of(t);
  all.item_size = uint32_t(item_size(t.dtype));
  all.storage = t.storage ? t.storage->data : nullptr;
  all.storage_size = t.storage ? t.storage->nbytes : 0;
  // Sizes that are known here are copied by a few moves, others by a call.
  const auto copy = [&](size_t from, size_t to) {
    std::memcpy(reinterpret_cast<char*>(info) + from, reinterpret_cast<const char*>(&all) + from, to - from);
  };
  if (info->size >= sizeof all) copy(geometry, sizeof all);
  else if (info->size > geometry) copy(geometry, info->size);
  else copy(sizeof all.size, info->size);
  return TAEDA_OK;
}

void tensor_retain(taeda_tensor tensor) {
  if (tensor) reinterpret_cast<TensorImpl*>(tensor)->retain();
}
void tensor_release(taeda_tensor tensor) { Ref<TensorImpl>::adopt(reinterpret_cast<TensorImpl*>(tensor)); }

int32_t tensor_empty(int32_t ndim, const int64_t* sizes, const int64_t* strides, int32_t dtype, taeda_device device,
                     taeda_tensor* result) {
  return guarded([&] {
    const IntSpan shape = sizes_of(ndim, sizes);
    Tensor made = strides ? empty_strided(shape, span_of(ndim, strides), dtype_from_c(dtype), from_c(device))
                          : empty(shape, dtype_from_c(dtype), from_c(device));
    place(result, "tensor_empty") = given_away(std::move(made));
  });
}

int32_t tensor_view(taeda_tensor tensor, int32_t ndim, const int64_t* sizes, const int64_t* strides, int64_t offset,
                    taeda_tensor* result) {
  return guarded([&] {
    const Tensor self = borrowed(tensor);
    const IntSpan shape = sizes_of(ndim, sizes);
    const Shape steps = settled_strides(shape, span_of(ndim, strides));
    taeda_tensor& out = place(result, "tensor_view");
    const Storage* storage = self.impl()->storage.get();
    const int64_t item = self.item_bytes();
    const Reach reach = reach_of("tensor_view", shape, steps, item);
    // In bytes from the beginning of the storage: the view must stay inside.
    const int64_t before = storage ? self.bytes() - static_cast<char*>(storage->data) : 0;
    const int64_t room = storage ? int64_t(storage->nbytes) : 0;
    const Count first = Count(offset) * item + before, low = first + reach.low, high = first + reach.high;
    const bool inside = low.fits() && high.fits() && low.of("tensor_view") >= 0 && high.of("tensor_view") <= room;
    if (!inside && reach.high != 0) [[unlikely]]
      fail(ErrorKind::Value, "tensor_view: a view of shape ", shape_text(shape), " and strides ", shape_text(steps),
           " at offset ", offset, " leaves the memory of ", describe(self));
    // By the operator, so that it is differentiated.
    const bool plain = !self.keys().has_layers() || !storage || before % item != 0;
    out = given_away(plain ? alias(self, shape, steps, offset)
                           : ops::as_strided(self, shape, steps, self.storage_offset() + offset));
  });
}

int32_t tensor_wrap(void* data, size_t nbytes, taeda_device device, int32_t ndim, const int64_t* sizes,
                    const int64_t* strides, int32_t dtype, int32_t readonly, void (*release)(void*, size_t, void*),
                    void* context, taeda_tensor* result) {
  return guarded([&] {
    const IntSpan shape = sizes_of(ndim, sizes);
    taeda_tensor& out = place(result, "tensor_wrap");
    const Shape steps = strides ? settled_strides(shape, span_of(ndim, strides)) : contiguous_strides(shape);
    const DType type = dtype_from_c(dtype);
    const Reach reach = reach_of("tensor_wrap", shape, steps, item_size(type));
    const int64_t needed = (Count(reach.high) - reach.low).of("tensor_wrap", "the bytes of shape ", shape_text(shape));
    check(uint64_t(needed) <= nbytes && (data || !nbytes), ErrorKind::Value, "tensor_wrap: shape ", shape_text(shape),
          " and strides ", shape_text(steps), " need ", needed, " bytes, found ", data ? nbytes : 0);
    // The memory starts at its lowest byte, elements may begin further on.
    Ref<Storage> storage = borrow_storage(data, nbytes, from_c(device), readonly != 0, nullptr, nullptr);
    Tensor made = from_storage(storage, shape, steps, -reach.low, type);
    storage->release = release;  // last: an error above leaves the memory with the caller
    storage->context = context;
    out = given_away(std::move(made));
  });
}

namespace {
Tensor over(void* memory, size_t nbytes, const Tensor& like, bool readonly) {
  const size_t needed = size_t(like.numel() * like.item_bytes());
  if (nbytes != needed || (!memory && needed)) [[unlikely]]
    fail(ErrorKind::Value, "taeda ABI: elements of ", describe(like), " take ", needed, " bytes, found room for ",
         nbytes);
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

int32_t object_tensor(void* object, taeda_tensor* result) {
  return guarded([&] {
    check(python_api.tensor_of != nullptr, ErrorKind::Runtime, "object_tensor: Python has not loaded taeda");
    check(object && python_api.is_tensor(object), ErrorKind::Type, "object_tensor: the object is no tensor");
    place(result, "object_tensor") = given_away(*python_api.tensor_of(object));
  });
}
int32_t tensor_object(taeda_tensor tensor, void** result) {
  return guarded([&] {
    check(python_api.wrap != nullptr, ErrorKind::Runtime, "tensor_object: Python has not loaded taeda");
    place(result, "tensor_object") = python_api.wrap(tensor ? borrowed(tensor) : Tensor());
  });
}

int32_t generator_reserve(taeda_generator generator, taeda_device device, uint64_t blocks, uint64_t* seed,
                          uint64_t* offset) {
  return guarded([&] {
    const Generator chosen =
        generator ? Generator::share(reinterpret_cast<GeneratorImpl*>(generator)) : default_generator(from_c(device));
    uint64_t &first = place(seed, "generator_reserve"), &second = place(offset, "generator_reserve");
    const PhiloxRange range = reserve(chosen, blocks);
    first = range.seed;
    second = range.offset;
  });
}

taeda_stream stream_current(taeda_device device) {
  if (device.backend < 0 || device.backend >= kMaxBackends || device.index < 0 || device.index > 127) return nullptr;
  return current_stream_handle({BackendId(device.backend), int8_t(device.index)});
}

void* host_release() { return host_lock.release ? host_lock.release() : nullptr; }
void host_acquire(void* token) {
  if (token) host_lock.acquire(token);
}

}  // namespace taeda::abi
