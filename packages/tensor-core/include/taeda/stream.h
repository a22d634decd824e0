// Streams and events of devices: counted handles over what a backend makes, each thread's current stream, and pinned
// memory.
#pragma once
#include "taeda/device.h"
#include "taeda/intrusive.h"
#include "taeda/tensor.h"

namespace taeda {

struct StreamImpl : Counted {
  Device device;
  void* handle = nullptr;  // null: the device's default stream
  int priority = 0;
};
TAEDA_API void destroy(StreamImpl* stream) noexcept;
using Stream = Ref<StreamImpl>;

struct EventImpl : Counted {
  Device device;
  void* handle = nullptr;
  bool timing = false;
};
TAEDA_API void destroy(EventImpl* event) noexcept;
using Event = Ref<EventImpl>;

/// NotImplementedError where the device has none.
TAEDA_API Stream new_stream(Device device, int priority = 0);
TAEDA_API Stream default_stream(Device device);
TAEDA_API Event new_event(Device device, bool timing);

/// The calling thread's. Kernels, copies and allocations of a device go to its current stream.
TAEDA_API Stream current_stream(Device device);
TAEDA_API void set_current_stream(const Stream& stream);
/// Handle of the current stream, without counting.
TAEDA_API void* current_stream_handle(Device device) noexcept;

/// Host memory from which a device copies without blocking: made by that device's backend.
TAEDA_API Tensor pinned_copy(const Tensor& tensor, BackendId backend);
TAEDA_API bool is_pinned(const Tensor& tensor) noexcept;

}  // namespace taeda
