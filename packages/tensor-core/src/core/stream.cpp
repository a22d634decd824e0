// Streams and events, which stream a thread works on, and pinned memory.
#include "taeda/stream.h"

#include <memory>
#include <mutex>
#include <vector>

#include "core/fork.h"
#include "taeda/backend.h"
#include "taeda/exported.h"
#include "taeda/ops/cast.h"
#include "taeda/thread_end.h"

namespace taeda {
namespace {

/// Streams that this thread has chosen, one per device at most; empty on nearly every thread.
constinit thread_local std::vector<Stream>* chosen __attribute__((tls_model("initial-exec"))) = nullptr;

void forget_chosen() noexcept { delete std::exchange(chosen, nullptr); }

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
  if (!owner.has_streams()) [[unlikely]]
    fail(ErrorKind::NotImplemented, "Stream: device '", to_string(device), "' has no streams");
  return wrap(device, owner.stream_create(device, priority), priority);
}
Stream default_stream(Device device) { return wrap(device, nullptr, 0); }

Event new_event(Device device, bool timing) {
  if (timing && !backend(device.backend).has_event_timing()) [[unlikely]]
    fail(ErrorKind::NotImplemented, "Event: device '", to_string(device),
         "' does not measure the time between events (enable_timing=True)");
  auto* event = new EventImpl;
  Event owner = Event::adopt(event);
  event->device = device;
  event->timing = timing;
  event->handle = backend(device.backend).event_create(device, timing);
  return owner;
}

namespace {
Backend& owner_of(const Event& event) { return backend(event->device.backend); }

void check_recorded(const Event& event, const char* which) {
  check(event->recorded, ErrorKind::Value, "Event.elapsed_time: the ", which, " event was never recorded");
  check(event_done(event), ErrorKind::Runtime, "Event.elapsed_time: the ", which,
        " event has not been reached yet; call its synchronize() first");
}
}  // namespace

void record_event(const Event& event, const Stream& stream) {
  if (event->device != stream->device) [[unlikely]]
    fail(ErrorKind::Runtime, "Event.record: the event is of device '", to_string(event->device), "', the stream of '",
         to_string(stream->device), "'");
  owner_of(event).event_record(event->device, event->handle, stream->handle);
  event->recorded = true;
}
void wait_event(const Event& event, const Stream& stream) {
  if (event->device.backend != stream->device.backend) [[unlikely]]
    fail(ErrorKind::Runtime, "Event.wait: the event is of device '", to_string(event->device), "', the stream of '",
         to_string(stream->device), "'");
  if (event->recorded) owner_of(event).event_wait(stream->device, event->handle, stream->handle);
}
void synchronize_event(const Event& event) {
  if (event->recorded) owner_of(event).event_synchronize(event->device, event->handle);
}
bool event_done(const Event& event) {
  return !event->recorded || owner_of(event).event_query(event->device, event->handle);
}
double elapsed_time(const Event& from, const Event& to) {
  check(from->timing && to->timing, ErrorKind::Value,
        "Event.elapsed_time: both events must be made with enable_timing=True; the ", from->timing ? "end" : "start",
        " event was not");
  if (from->device != to->device) [[unlikely]]
    fail(ErrorKind::Runtime, "Event.elapsed_time: the start event is of device '", to_string(from->device),
         "', the end event of '", to_string(to->device), "'");
  check_recorded(from, "start");
  check_recorded(to, "end");
  return owner_of(from).event_elapsed(from->device, from->handle, to->handle);
}

Stream current_stream(Device device) {
  const StreamImpl* found = find_chosen(device);
  return found ? Stream::share(const_cast<StreamImpl*>(found)) : default_stream(device);
}

void set_current_stream(const Stream& stream) {
  if (!at_thread_end<forget_chosen>()) return;
  if (!chosen) chosen = new std::vector<Stream>;
  std::erase_if(*chosen, [&](const Stream& s) { return s->device == stream->device; });
  if (stream->handle) chosen->push_back(stream);
}

void* current_stream_handle(Device device) noexcept {
  const StreamImpl* found = find_chosen(device);
  return found ? found->handle : nullptr;
}

// --- pinned memory ---

namespace {

/// Memory that a backend pinned, with a mark behind each copy that may still use it.
struct PinnedBlock {
  Backend* owner;
  void* data;
  size_t nbytes;
  std::mutex lock;  // of the marks; never held while a backend is asked
  std::vector<Event> marks;
  HeldAtFork held{lock};
};

bool passed(const Event& mark) noexcept {
  try {
    return event_done(mark);
  } catch (...) {
    return false;  // nobody knows: the memory stays
  }
}

void give_back(PinnedBlock* block) noexcept {
  if (block->data) block->owner->pinned_release(block->data, block->nbytes);
  delete block;
}

/// Blocks that nobody refers to any more, while copies wait that use them.
struct Waiting {
  std::mutex lock;
  HeldAtFork held{lock};
  std::vector<PinnedBlock*> blocks;
  std::atomic<bool> any = false;
};
Waiting& waiting() {
  static auto* instance = new Waiting;
  return *instance;
}
[[maybe_unused]] const auto* const made_at_load = &waiting();
void wait_with(PinnedBlock* block) {
  std::lock_guard guard(waiting().lock);
  waiting().blocks.push_back(block);
  waiting().any = true;
}

bool all_passed(PinnedBlock* block) noexcept {
  std::erase_if(block->marks, passed);
  return block->marks.empty();
}

void release_pinned(void*, size_t, void* context) {
  auto* block = static_cast<PinnedBlock*>(context);
  all_passed(block) ? give_back(block) : wait_with(block);
  release_passed_pinned();
}

PinnedBlock* block_of(const Tensor& tensor) noexcept {
  return is_pinned(tensor) ? static_cast<PinnedBlock*>(origin_of(*tensor.impl()->storage).context) : nullptr;
}

/// A mark of the block that the device has passed, taken out of it, or a new one.
Event spare_mark(PinnedBlock& block, Device device) {
  std::vector<Event> marks;
  {
    std::lock_guard guard(block.lock);
    marks.swap(block.marks);
  }
  Event found;
  std::erase_if(marks, [&](const Event& mark) {
    if (!passed(mark)) return false;
    if (mark->device == device) found = mark;
    return true;
  });
  {
    std::lock_guard guard(block.lock);
    block.marks.insert(block.marks.end(), marks.begin(), marks.end());
  }
  return found ? found : new_event(device, false);
}

}  // namespace

void release_passed_pinned() noexcept {
  if (!waiting().any) return;
  std::vector<PinnedBlock*> blocks;
  {
    std::lock_guard guard(waiting().lock);
    blocks.swap(waiting().blocks);
    waiting().any = false;
  }
  for (PinnedBlock* block : blocks) all_passed(block) ? give_back(block) : wait_with(block);
}

bool is_pinned(const Tensor& tensor) noexcept {
  return tensor.impl()->storage && origin_of(*tensor.impl()->storage).release == release_pinned;
}
bool copies_later(const Tensor& host, Device device) noexcept {
  const PinnedBlock* block = block_of(host);
  return block && block->owner == &backend(device.backend) && block->owner->has_events();
}

PinnedUse::PinnedUse(const Tensor& host, Device device)
    : host_(host), device_(device), mark_(spare_mark(*block_of(host), device)) {}

void PinnedUse::queued() {
  const Stream stream = current_stream(device_);
  try {
    record_event(mark_, stream);
  } catch (...) {
    backend(device_.backend).stream_synchronize(device_, stream->handle);  // the memory may go any time
    throw;
  }
  PinnedBlock& block = *block_of(host_);
  std::lock_guard guard(block.lock);
  block.marks.push_back(mark_);
}

Tensor pinned_copy(const Tensor& tensor, BackendId id) {
  if (tensor.device().backend != kCPU) [[unlikely]]
    fail(ErrorKind::Runtime, "pin_memory: expected a tensor on cpu, found ", describe(tensor));
  if (is_pinned(tensor)) return tensor;
  Backend& owner = backend(id);
  check(owner.has_pinned_memory(), ErrorKind::NotImplemented, "pin_memory: device '", owner.name(),
        "' has no pinned memory");
  release_passed_pinned();
  const size_t nbytes = size_t(tensor.numel() * tensor.item_bytes());
  auto block = std::make_unique<PinnedBlock>();
  block->owner = &owner;
  block->nbytes = nbytes;
  block->data = nbytes ? owner.pinned_allocate(nbytes) : nullptr;
  void* const data = block->data;
  // Copies of bytes are quickest between what lies alike.
  const Shape strides = tensor.dense() ? Shape(tensor.strides()) : contiguous_strides(tensor.sizes());
  const Tensor made = from_storage(borrow_storage(data, nbytes, Device{}, false, release_pinned, block.release()),
                                   tensor.sizes(), strides, 0, tensor.dtype());
  ops::copy_(made, tensor);
  return made;
}

}  // namespace taeda
