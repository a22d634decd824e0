// Recording work of the simulated device, and running what was recorded.
#include <cstdio>

#include "driver/simulated_parts.h"

namespace taeda::cuda {
namespace {

/// Of two accounts of what comes before, what comes before both.
template <class Account>
void take_over(Account& into, const Account& from) {
  for (const auto& [stream, count] : from) into[stream] = std::max(into[stream], count);
}

}  // namespace

bool SimulatedDriver::is_pinned(const void* data) const {
  const auto after = pinned_.upper_bound(const_cast<void*>(data));
  if (after == pinned_.begin()) return false;
  const auto [start, size] = *std::prev(after);
  return static_cast<const char*>(data) < static_cast<const char*>(start) + size;
}

// --- recording ---

Status SimulatedDriver::begin_capture(int device, StreamHandle handle, CaptureMode mode) {
  const std::lock_guard held(lock_);
  if (devices_[size_t(device)]->failed != Status::Ok) return devices_[size_t(device)]->failed;
  if (!handle) return Status::CaptureUnsupported;  // the default stream's work is not recorded
  Stream& stream = stream_of(device, handle);
  if (stream.capture) return Status::InvalidValue;
  auto capture =
      std::make_shared<Capture>(Capture{++captured_, mode, std::this_thread::get_id(), &stream, false, {}, {}});
  stream.capture = capture;
  stream.recorded_end = 0, stream.recorded = 0, stream.behind.clear();
  capture->streams.push_back(&stream);
  captures_.push_back(std::move(capture));
  return Status::Ok;
}
Status SimulatedDriver::end_capture(int, StreamHandle handle, GraphHandle& graph) {
  const std::lock_guard held(lock_);
  graph = nullptr;
  Stream* const stream = static_cast<Stream*>(handle);
  if (!stream || !stream->capture || stream->capture->origin != stream) return Status::CaptureUnmatched;
  const auto capture = stream->capture;
  if (capture->mode != CaptureMode::Relaxed && capture->thread != std::this_thread::get_id())
    return capture->broken = true, Status::CaptureWrongThread;
  bool joined = true;
  for (Stream* const part : capture->streams) {
    if (part != stream && stream->behind[part] < part->recorded) joined = false;
    part->capture = nullptr;
  }
  std::erase(captures_, capture);
  if (capture->broken) return Status::CaptureInvalidated;
  if (!joined) return Status::CaptureUnjoined;
  graph = new Recorded(std::move(capture->recorded));
  return Status::Ok;
}
Status SimulatedDriver::capture_of(int device, StreamHandle stream, uint64_t& number) {
  const std::lock_guard held(lock_);
  const auto& capture = stream_of(device, stream).capture;
  number = capture ? capture->number : 0;
  return Status::Ok;
}

bool SimulatedDriver::breaks(const std::shared_ptr<Capture>& capture) {
  if (!capture) return false;
  capture->broken = true;
  return true;
}
bool SimulatedDriver::forbidden() {
  bool found = false;
  for (const auto& capture : captures_)
    if (capture->mode == CaptureMode::Global ||
        (capture->mode == CaptureMode::ThreadLocal && capture->thread == std::this_thread::get_id()))
      found = breaks(capture);
  return found;
}
Status SimulatedDriver::record(Stream& stream, int64_t nanoseconds, std::function<void()> effect, int64_t* end,
                               const Handed& handed) {
  Capture& capture = *stream.capture;
  if (capture.broken) return Status::CaptureInvalidated;
  stream.recorded_end += nanoseconds;
  ++stream.recorded;
  capture.recorded.length = std::max(capture.recorded.length, stream.recorded_end);
  if (effect) capture.recorded.work.push_back({stream.recorded_end, std::move(effect), nanoseconds, handed});
  if (end) *end = stream.recorded_end;
  return Status::Ok;
}
Status SimulatedDriver::mark(Event& event, const Stream& stream) {
  event.capture = stream.capture;
  event.time = stream.capture ? stream.recorded_end : std::max(now_, stream.end);
  event.behind = stream.behind;
  if (stream.capture) event.behind[&stream] = stream.recorded;
  return Status::Ok;
}
/// One of the two is recorded.
Status SimulatedDriver::join(int device, Stream& waiting, const Event& event) {
  const bool goes_on = event.capture && event.capture->origin->capture == event.capture;
  if (waiting.capture && event.capture != waiting.capture) return breaks(waiting.capture), Status::CaptureIsolation;
  if (!goes_on || &waiting == &devices_[size_t(device)]->default_stream) {
    breaks(event.capture);
    return Status::CapturedEvent;
  }
  if (!waiting.capture) {
    waiting.capture = event.capture;
    waiting.recorded_end = 0, waiting.recorded = 0, waiting.behind.clear();
    event.capture->streams.push_back(&waiting);
  }
  waiting.recorded_end = std::max(waiting.recorded_end, event.time);
  take_over(waiting.behind, event.behind);
  return Status::Ok;
}

// --- graphs ---

Status SimulatedDriver::instantiate(int device, GraphHandle graph, ExecutableHandle& executable) {
  const std::lock_guard held(lock_);
  executable = new Recorded(*static_cast<Recorded*>(graph));
  return devices_[size_t(device)]->failed;
}
Status SimulatedDriver::launch_graph(int device, ExecutableHandle executable, StreamHandle handle) {
  const Handed run = handed("");
  const std::lock_guard held(lock_);
  Device& at = *devices_[size_t(device)];
  if (at.failed != Status::Ok) return at.failed;
  if (fails_graph()) return Status::LaunchFailed;
  const auto& recorded = *static_cast<Recorded*>(executable);
  Stream& stream = stream_of(device, handle);
  if (stream.capture) {
    for (const auto& work : recorded.work)
      stream.capture->recorded.work.push_back({stream.recorded_end + work.end, work.effect, work.length, work.handed});
    return record(stream, recorded.length, {}, nullptr, {});
  }
  const int64_t begin = std::max(stream.end, now_);
  for (const auto& work : recorded.work) {
    pending_.insert({begin + work.end, queued_++, work.effect});
    Handed told = work.handed;
    told.origin = run.origin;
    note(device, handle, work.length, begin + work.end, told);
  }
  stream.end = begin + recorded.length;
  run_until(now_);
  return at.failed;
}
void SimulatedDriver::destroy_graph(int, GraphHandle graph) { delete static_cast<Recorded*>(graph); }
void SimulatedDriver::destroy_executable(int, ExecutableHandle executable) {
  delete static_cast<Recorded*>(executable);
}
Status SimulatedDriver::draw_graph(int, GraphHandle graph, const char* path) {
  std::FILE* const file = std::fopen(path, "w");
  if (!file) return Status::InvalidValue;
  std::fputs("digraph {\n", file);
  for (size_t i = 0; i < static_cast<Recorded*>(graph)->work.size(); ++i) std::fprintf(file, "  work_%zu\n", i);
  std::fputs("}\n", file);
  return std::fclose(file) == 0 ? Status::Ok : Status::InvalidValue;
}

}  // namespace taeda::cuda
