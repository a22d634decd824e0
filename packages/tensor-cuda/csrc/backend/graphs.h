// Graphs: recorded work, and what it needs to run again: memory of its own, and where its random numbers begin.
#pragma once
#include <atomic>
#include <map>
#include <mutex>
#include <string>
#include <unordered_map>

#include "driver/driver.h"
#include "memory/allocator.h"

namespace taeda::cuda {

class Machine;

/// One recording. Functions give the driver's status; Python's side sees to it that they are called in order.
class Graph {
 public:
  Graph(Machine& machine, int device) : machine_(machine), device_(device) {}
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  ~Graph() {
    if (recording_) end();
    reset();
  }

  /// From now on the stream's work is recorded.
  Status begin(StreamHandle stream, PoolNumber pool, CaptureMode mode);
  /// After a failure there is no graph, and the stream does its work again.
  Status end();
  /// What was recorded, ready to run.
  Status instantiate();
  Status replay(StreamHandle stream);
  /// Does without what was recorded; waits for its last run unless other work is being recorded.
  void reset();
  Status draw(const char* path);
  /// Without it the graph can be run, and neither be drawn nor be made ready again.
  void drop_recording();

  int device() const { return device_; }
  bool is_recording() const { return recording_; }
  /// Where a kernel that is being recorded finds the seed and the first place of the numbers of a run, and how far
  /// behind it the `count` ones that it takes begin.
  Status numbers(uint64_t count, Address& state, uint64_t& offset, std::string& text);

 private:
  Machine& machine_;
  const int device_;
  StreamHandle stream_ = nullptr, last_run_ = nullptr;
  PoolNumber pool_ = 0;
  uint64_t capture_ = 0;
  bool recording_ = false;
  GraphHandle recorded_ = nullptr;
  ExecutableHandle executable_ = nullptr;
  Address state_ = 0;
  uint64_t numbers_ = 0;  // that a run takes
};

/// Recordings that go on, and events that were recorded.
class Graphs {
 public:
  explicit Graphs(Machine& machine) : machine_(machine) {}

  /// Whether any work is recorded now.
  bool any() const { return going_on_.load(std::memory_order_acquire) > 0; }
  /// The graph that a stream's work is recorded for; null: none.
  Graph* of(int device, StreamHandle stream) { return any() ? find(device, stream) : nullptr; }
  bool any_on(int device);
  PoolNumber new_pool() { return ++pools_; }

  // The host asks for events on behalf of memory that copies read; of recorded ones the driver tells nothing. They
  // count as reached when their graph is gone.
  enum class Reached { Ask, No, Yes };
  void event_recorded(int device, EventHandle event, StreamHandle stream);
  void event_gone(EventHandle event);
  Reached reached(EventHandle event);

 private:
  friend class Graph;
  Graph* find(int device, StreamHandle stream);
  void begun(uint64_t capture, Graph* graph);
  void over(uint64_t capture);
  void gone(uint64_t capture);

  Machine& machine_;
  std::atomic<int> going_on_ = 0;
  std::atomic<bool> has_events_ = false;
  std::atomic<PoolNumber> pools_ = 0;
  std::mutex lock_;
  std::map<uint64_t, Graph*> recordings_;
  std::unordered_map<EventHandle, uint64_t> events_;  // by whose recording; 0: it is gone
};

}  // namespace taeda::cuda
