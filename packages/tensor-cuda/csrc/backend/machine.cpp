// Where the allocators' segments come from, and streams that are used again.
#include "backend/machine.h"

#include <cstdlib>
#include <string_view>

#include "driver/queued.h"

namespace taeda::cuda {
namespace {

class DeviceSource final : public Source {
 public:
  DeviceSource(Driver& driver, int device) : driver_(driver), device_(device) {}
  ~DeviceSource() override {
    for (const EventHandle event : unused_) driver_.destroy_event(device_, event);
  }
  Status take(size_t nbytes, Address& address) override { return driver_.allocate(device_, nbytes, address); }
  Status give(Address address) override { return driver_.release(device_, address); }
  Status settle() override { return driver_.synchronize(device_); }
  std::optional<Room> room() override {
    Room found;
    if (driver_.room(device_, found) != Status::Ok) return std::nullopt;
    return found;
  }
  Status reserve(size_t nbytes, Address& start) override { return driver_.reserve(device_, nbytes, start); }
  Status unreserve(Address start, size_t nbytes) override { return driver_.unreserve(device_, start, nbytes); }
  Status put(Address at, size_t nbytes) override { return driver_.put(device_, at, nbytes); }
  Status take_away(Address at, size_t nbytes) override { return driver_.take_away(device_, at, nbytes); }
  std::string name() const override { return "cuda:" + std::to_string(device_); }
  Status mark(StreamHandle stream, EventHandle& event) override {
    if (!unused_.empty()) event = unused_.back(), unused_.pop_back();
    else if (const Status status = driver_.create_event(device_, false, event); status != Status::Ok) return status;
    const Status status = driver_.record_event(device_, event, stream);
    if (status != Status::Ok) unused_.push_back(event);
    return status;
  }
  Status reached(EventHandle event, bool wait) override {
    return wait ? driver_.synchronize_event(device_, event) : driver_.query_event(device_, event);
  }
  void drop(EventHandle event) override { unused_.push_back(event); }
  uint64_t capture_of(StreamHandle stream) override {
    uint64_t number = 0;
    return driver_.capture_of(device_, stream, number) == Status::Ok ? number : 0;
  }

 private:
  Driver& driver_;
  const int device_;
  std::vector<EventHandle> unused_;
};

class PinnedSource final : public Source {
 public:
  explicit PinnedSource(Driver& driver) : driver_(driver) {}
  Status take(size_t nbytes, Address& address) override {
    void* data = nullptr;
    const Status status = driver_.allocate_pinned(nbytes, data);
    address = Address(reinterpret_cast<uintptr_t>(data));
    return status;
  }
  Status give(Address address) override { return driver_.release_pinned(reinterpret_cast<void*>(uintptr_t(address))); }
  Status settle() override { return Status::Ok; }  // taeda gives back what no copy waits for
  std::optional<Room> room() override { return std::nullopt; }
  std::string name() const override { return "pinned host memory"; }
  Status mark(StreamHandle, EventHandle&) override { return Status::InvalidValue; }
  Status reached(EventHandle, bool) override { return Status::InvalidValue; }
  void drop(EventHandle) override {}

 private:
  Driver& driver_;
};

/// PyTorch's settings of allocators, and one of our own, which goes before.
bool wants_expandable() {
  for (const char* name : {"TAEDA_CUDA_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"})
    if (const char* const told = std::getenv(name))
      return std::string_view(told).find("expandable_segments:True") != std::string_view::npos;
  return false;
}

}  // namespace

Machine::Machine(std::unique_ptr<Driver> driver) : driver_(std::move(driver)), imports_(*driver_), graphs_(*this) {
  for (int i = 0; i < driver_->device_count(); ++i)
    memory_.push_back(std::make_unique<Allocator>(std::make_unique<DeviceSource>(*driver_, i), kDevicePolicy));
  for (const auto& memory : memory_) memory->set_expandable(wants_expandable());
  pinned_ = std::make_unique<Allocator>(std::make_unique<PinnedSource>(*driver_), kPinnedPolicy);
}
std::unique_ptr<Machine> Machine::simulated(int devices, uint64_t bytes_each) {
  auto driver = std::make_unique<SimulatedDriver>(devices, bytes_each);
  SimulatedDriver* const simulation = driver.get();
  auto machine = std::make_unique<Machine>(with_launch_thread(std::move(driver)));
  machine->simulation_ = simulation;
  return machine;
}

Status Machine::create_stream(int device, int priority, StreamHandle& stream) {
  const std::lock_guard held(lock_);
  auto& unused = unused_[{device, priority}];
  if (!unused.empty()) {
    stream = unused.back();
    unused.pop_back();
    return Status::Ok;
  }
  const Status status = driver_->create_stream(device, priority, stream);
  if (status == Status::Ok) priorities_[stream] = priority;
  return status;
}
void Machine::end_stream(int device, StreamHandle stream) {
  const std::lock_guard held(lock_);
  unused_[{device, priorities_[stream]}].push_back(stream);
}

}  // namespace taeda::cuda
