// Recording and running graphs.
#include "backend/graphs.h"

#include <stdexcept>

#include "backend/guard.h"
#include "backend/machine.h"
#include "kernels/random.h"
#include "ops/call.h"

namespace taeda::cuda {

// --- one graph ---

Status Graph::begin(StreamHandle stream, PoolNumber pool, CaptureMode mode) {
  Driver& driver = machine_.driver();
  if (Status status = driver.begin_capture(device_, stream, mode); status != Status::Ok) return status;
  if (const Status status = driver.capture_of(device_, stream, capture_); status != Status::Ok) {
    GraphHandle none = nullptr;
    driver.end_capture(device_, stream, none);
    return status;
  }
  stream_ = stream, pool_ = pool, recording_ = true;
  machine_.graphs().begun(capture_, this);
  machine_.memory(device_).begin_private(pool, capture_);
  return Status::Ok;
}
Status Graph::end() {
  const Status status = machine_.driver().end_capture(device_, stream_, recorded_);
  if (status == Status::CaptureWrongThread || status == Status::CaptureUnmatched) return status;  // it goes on
  recording_ = false;
  machine_.graphs().over(capture_);
  machine_.memory(device_).end_private(capture_);
  if (status != Status::Ok) reset();
  return status;
}
Status Graph::instantiate() {
  ExecutableHandle made = nullptr;
  if (const Status status = machine_.driver().instantiate(device_, recorded_, made); status != Status::Ok)
    return status;
  if (executable_) machine_.driver().destroy_executable(device_, executable_);
  executable_ = made;
  return Status::Ok;
}
Status Graph::replay(StreamHandle stream) {
  if (state_) {
    SetNumbers body{state_, 0, 0};
    if (api->generator_reserve(nullptr, {backend_number, device_}, numbers_, &body.seed, &body.offset) != TAEDA_OK)
      throw std::runtime_error(api->last_error());
    const Kernel& kernel = kernel_of<SetNumbers>();
    if (const Status status = machine_.driver().launch(device_, kernel, &body, 2, stream); status != Status::Ok)
      return status;
  }
  last_run_ = stream;
  return machine_.driver().launch_graph(device_, executable_, stream);
}
void Graph::drop_recording() {
  if (recorded_) machine_.driver().destroy_graph(device_, recorded_);
  recorded_ = nullptr;
}
void Graph::reset() {
  if (executable_) {
    if (!machine_.graphs().any()) machine_.driver().synchronize_stream(device_, last_run_);
    machine_.driver().destroy_executable(device_, executable_);
  }
  executable_ = nullptr;
  drop_recording();
  if (state_) machine_.memory(device_).release(state_);
  state_ = numbers_ = 0;
  if (!capture_) return;
  machine_.graphs().gone(capture_);
  machine_.memory(device_).let_go(pool_);
  capture_ = 0;
}
Status Graph::draw(const char* path) { return machine_.driver().draw_graph(device_, recorded_, path); }
Status Graph::numbers(uint64_t count, Address& state, uint64_t& offset, std::string& text) {
  if (!state_) {
    constexpr size_t kBytes = 2 * sizeof(uint64_t);
    const Status status = machine_.memory(device_).allocate(kBytes + kGuard, stream_, state_, text);
    if (status != Status::Ok) return status;
    guard_recorded(machine_, device_, state_, kBytes, stream_);
  }
  state = state_;
  offset = numbers_;
  numbers_ += count;
  return Status::Ok;
}

// --- all of them ---

Graph* Graphs::find(int device, StreamHandle stream) {
  uint64_t capture = 0;
  if (machine_.driver().capture_of(device, stream, capture) != Status::Ok || capture == 0) return nullptr;
  const std::lock_guard held(lock_);
  const auto found = recordings_.find(capture);
  return found == recordings_.end() ? nullptr : found->second;
}
bool Graphs::any_on(int device) {
  if (!any()) return false;
  const std::lock_guard held(lock_);
  for (const auto& [capture, graph] : recordings_)
    if (graph->device() == device) return true;
  return false;
}
void Graphs::begun(uint64_t capture, Graph* graph) {
  const std::lock_guard held(lock_);
  recordings_[capture] = graph;
  going_on_ = int(recordings_.size());
}
void Graphs::over(uint64_t capture) {
  const std::lock_guard held(lock_);
  recordings_.erase(capture);
  going_on_ = int(recordings_.size());
}
void Graphs::gone(uint64_t capture) {
  const std::lock_guard held(lock_);
  for (auto& [event, recording] : events_)
    if (recording == capture) recording = 0;
}

void Graphs::event_recorded(int device, EventHandle event, StreamHandle stream) {
  if (!any() && !has_events_) return;
  uint64_t capture = 0;
  if (any()) machine_.driver().capture_of(device, stream, capture);
  const std::lock_guard held(lock_);
  if (capture) events_[event] = capture;
  else events_.erase(event);
  has_events_ = !events_.empty();
}
void Graphs::event_gone(EventHandle event) {
  if (!has_events_) return;
  const std::lock_guard held(lock_);
  events_.erase(event);
  has_events_ = !events_.empty();
}
Graphs::Reached Graphs::reached(EventHandle event) {
  if (!has_events_) return Reached::Ask;
  const std::lock_guard held(lock_);
  const auto found = events_.find(event);
  if (found == events_.end()) return Reached::Ask;
  return found->second ? Reached::No : Reached::Yes;
}

}  // namespace taeda::cuda
