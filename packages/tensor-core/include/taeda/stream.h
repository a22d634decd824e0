// Streams and events of devices: counted handles over what a backend makes, each thread's current stream, and pinned
// memory.
#pragma once
#include <atomic>

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
  std::atomic<bool> recorded = false;
};
TAEDA_API void destroy(EventImpl* event) noexcept;
using Event = Ref<EventImpl>;

/// NotImplementedError where the device has none.
TAEDA_API Stream new_stream(Device device, int priority = 0);
TAEDA_API Stream default_stream(Device device);
TAEDA_API Event new_event(Device device, bool timing);

/// An event that was never recorded stands for no work: it is done, and nobody waits for it.
TAEDA_API void record_event(const Event& event, const Stream& stream);
TAEDA_API void wait_event(const Event& event, const Stream& stream);
TAEDA_API void synchronize_event(const Event& event);
TAEDA_API bool event_done(const Event& event);
/// Milliseconds between two events that were recorded with timing and have been reached.
TAEDA_API double elapsed_time(const Event& from, const Event& to);

/// The calling thread's. Kernels, copies and allocations of a device go to its current stream.
TAEDA_API Stream current_stream(Device device);
TAEDA_API void set_current_stream(const Stream& stream);
/// Handle of the current stream, without counting.
TAEDA_API void* current_stream_handle(Device device) noexcept;

/// Host memory from which a device copies without blocking: made by that device's backend.
TAEDA_API Tensor pinned_copy(const Tensor& tensor, BackendId backend);
TAEDA_API bool is_pinned(const Tensor& tensor) noexcept;
/// Whether a copy between `host` and a device may run after the call: its backend pinned the memory and has events.
TAEDA_API bool copies_later(const Tensor& host, Device device) noexcept;
/// Gives back pinned memory that nobody refers to and that no copy waits for any more.
TAEDA_API void release_passed_pinned() noexcept;

/// Around a copy that may run later: pinned memory is not released before the device has come to it.
class TAEDA_API PinnedUse {
 public:
  PinnedUse(const Tensor& host, Device device);
  /// After the copy was put into the device's current stream.
  void queued();

 private:
  const Tensor& host_;
  Device device_;
  Event mark_;
};

}  // namespace taeda
