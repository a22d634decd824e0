// Streams and events, which stream a thread works on, and pinned memory.
#include "taeda/stream.h"

#include <vector>

#include "taeda/backend.h"
#include "taeda/ops/cast.h"

namespace taeda {
namespace {

/// Streams that this thread has chosen, one per device at most; empty on nearly every thread.
thread_local std::vector<Stream>* chosen = nullptr;

struct AtExit {
  ~AtExit() { delete std::exchange(chosen, nullptr); }
};

const StreamImpl* find_chosen(Device device) noexcept {
  if (chosen)
    for (const Stream& s : *chosen)
      if (s->device == device) return s.get();
  return nullptr;
}

Stream wrap(Device device, void* handle, int priority) {
  auto* stream = new StreamImpl;
  stream->device = device;
  stream->handle = handle;
  stream->priority = priority;
  return Stream::adopt(stream);
}

}  // namespace

void destroy(StreamImpl* stream) noexcept {
  if (stream->handle) backend(stream->device.backend).stream_destroy(stream->device, stream->handle);
  delete stream;
}
void destroy(EventImpl* event) noexcept {
  if (event->handle) backend(event->device.backend).event_destroy(event->device, event->handle);
  delete event;
}

Stream new_stream(Device device, int priority) {
  Backend& owner = backend(device.backend);
  check(owner.has_streams(), ErrorKind::NotImplemented, "Stream: device '", to_string(device), "' has no streams");
  return wrap(device, owner.stream_create(device, priority), priority);
}
Stream default_stream(Device device) { return wrap(device, nullptr, 0); }

Event new_event(Device device, bool timing) {
  auto* event = new EventImpl;
  Event owner = Event::adopt(event);
  event->device = device;
  event->timing = timing;
  event->handle = backend(device.backend).event_create(device, timing);
  return owner;
}

Stream current_stream(Device device) {
  const StreamImpl* found = find_chosen(device);
  return found ? Stream::share(const_cast<StreamImpl*>(found)) : default_stream(device);
}

void set_current_stream(const Stream& stream) {
  static thread_local AtExit at_exit;
  if (!chosen) chosen = new std::vector<Stream>;
  std::erase_if(*chosen, [&](const Stream& s) { return s->device == stream->device; });
  if (stream->handle) chosen->push_back(stream);
}

void* current_stream_handle(Device device) noexcept {
  const StreamImpl* found = find_chosen(device);
  return found ? found->handle : nullptr;
}

namespace {
void release_pinned(void* data, size_t nbytes, void* owner) {
  static_cast<Backend*>(owner)->pinned_release(data, nbytes);
}
}  // namespace

bool is_pinned(const Tensor& tensor) noexcept {
  return tensor.impl()->storage && tensor.impl()->storage->release == release_pinned;
}

Tensor pinned_copy(const Tensor& tensor, BackendId id) {
  check(tensor.device().backend == kCPU, ErrorKind::Runtime, "pin_memory: expected a tensor on cpu, found ",
        describe(tensor));
  if (is_pinned(tensor)) return tensor;
  Backend& owner = backend(id);
  check(owner.has_pinned_memory(), ErrorKind::NotImplemented, "pin_memory: device '", owner.name(),
        "' has no pinned memory");
  const size_t nbytes = size_t(tensor.numel() * tensor.item_bytes());
  void* data = nbytes ? owner.pinned_allocate(nbytes) : nullptr;
  const Tensor made = from_storage(borrow_storage(data, nbytes, Device{}, false, release_pinned, &owner),
                                   tensor.sizes(), contiguous_strides(tensor.sizes()), 0, tensor.dtype());
  ops::copy_(made, tensor);
  return made;
}

}  // namespace taeda
