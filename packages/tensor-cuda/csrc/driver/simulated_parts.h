// What the simulated driver's handles stand for.
#pragma once
#include <sys/mman.h>

#include <algorithm>
#include <new>
#include <thread>

#include "driver/simulated.h"
#include "driver/simulated_sharing.h"

namespace taeda::cuda {

/// Work to be done again and again: effects, with the times of their ends after a run begins.
struct SimulatedDriver::Recorded {
  struct Work {
    int64_t end;
    std::function<void()> effect;
    int64_t length;
    Handed handed;
  };
  std::vector<Work> work;
  int64_t length = 0;
};
/// A recording that goes on, or that events still know.
struct SimulatedDriver::Capture {
  uint64_t number;
  CaptureMode mode;
  std::thread::id thread;
  Stream* origin;
  bool broken = false;
  std::vector<Stream*> streams;  // whose work is recorded
  Recorded recorded;
};
struct SimulatedDriver::Stream {
  int64_t end = 0;  // of all that is in it
  std::shared_ptr<Capture> capture;
  // Of the recording: as `end`, how much was put here, and how much of each other stream comes before what is next.
  int64_t recorded_end = 0;
  uint64_t recorded = 0;
  std::map<const Stream*, uint64_t> behind;
};
struct SimulatedDriver::Event {
  int64_t time = 0;
  std::shared_ptr<Capture> capture;
  std::map<const Stream*, uint64_t> behind;
};
struct SimulatedDriver::Device {
  uint64_t capacity;
  Address base;
  char* bytes;
  uint64_t used = 0, others = 0, allocations = 0, releases = 0;
  Status failed = Status::Ok;                // for good
  std::map<Address, uint64_t> free, blocks;  // address to size
  SharedPages shared;
  Stream default_stream;
  std::vector<Stream*> streams;
  // Addresses behind those of shared memory: what was reserved, and where pieces lie.
  static constexpr uint64_t kReservable = 8;  // times the capacity
  std::map<Address, uint64_t> reserved;
  std::set<Address> pieces;

  uint64_t span() const { return (2 + kReservable) * capacity; }
  Device(uint64_t capacity, Address base) : capacity(capacity), base(base), free{{base, capacity}} {
    // What other processes share comes behind the device's own.
    void* const mapped =
        mmap(nullptr, span(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapped == MAP_FAILED) throw std::bad_alloc();
    bytes = static_cast<char*>(mapped);
    shared.start(bytes + capacity, capacity);
    mprotect(bytes + 2 * capacity, kReservable * capacity, PROT_NONE);
  }
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
  ~Device() { munmap(bytes, span()); }

  int64_t end() const {
    int64_t last = default_stream.end;
    for (const Stream* stream : streams) last = std::max(last, stream->end);
    return last;
  }
};

}  // namespace taeda::cuda
