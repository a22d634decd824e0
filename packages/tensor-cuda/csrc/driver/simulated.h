// A driver without hardware: virtual time, limited memory, and failures on request.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string_view>
#include <vector>

#include "driver/driver.h"
#include "driver/simulated_compiler.h"

namespace taeda::cuda {

/// Time in nanoseconds, which passes only while the host waits or by `advance`. The end of work is known when it is
/// queued; its effects take place when time comes to that end.
class SimulatedDriver final : public Driver {
 public:
  SimulatedDriver(int devices, uint64_t bytes_each);
  ~SimulatedDriver() override;

  int device_count() const override { return int(devices_.size()); }
  Status facts(int device, DeviceFacts& facts) override;
  std::string text_of(Status status) const override;
  Status allocate(int device, size_t nbytes, Address& address) override;
  Status release(int device, Address address) override;
  Status room(int device, Room& room) override;
  Status device_of(Address address, int& device) override;
  Status reserve(int device, size_t nbytes, Address& start) override;
  Status unreserve(int device, Address start, size_t nbytes) override;
  Status put(int device, Address at, size_t nbytes) override;
  Status take_away(int device, Address at, size_t nbytes) override;
  Status share(int device, Address address, SharedHandle& handle, uint64_t& offset) override;
  Status open_shared(int device, const SharedHandle& handle, Address& start) override;
  Status close_shared(int device, Address start) override;
  Status allocate_pinned(size_t nbytes, void*& data) override;
  Status release_pinned(void* data) override;
  Status create_stream(int device, int priority, StreamHandle& stream) override;
  Status synchronize_stream(int device, StreamHandle stream) override;
  Status query_stream(int device, StreamHandle stream) override;
  Status synchronize(int device) override;
  Status create_event(int device, bool timing, EventHandle& event) override;
  void destroy_event(int device, EventHandle event) override;
  Status record_event(int device, EventHandle event, StreamHandle stream) override;
  Status wait_event(int device, StreamHandle stream, EventHandle event) override;
  Status synchronize_event(int device, EventHandle event) override;
  Status query_event(int device, EventHandle event) override;
  Status elapsed(EventHandle from, EventHandle to, double& milliseconds) override;
  Status copy_in(int device, Address to, const void* from, size_t nbytes, StreamHandle stream) override;
  Status copy_out(int device, void* to, Address from, size_t nbytes, StreamHandle stream) override;
  Status copy_peer(int to_device, Address to, int from_device, Address from, size_t nbytes,
                   StreamHandle stream) override;
  Status launch(int device, const Kernel& kernel, const void* body, int64_t items, StreamHandle stream) override;
  Status begin_capture(int device, StreamHandle stream, CaptureMode mode) override;
  Status end_capture(int device, StreamHandle stream, GraphHandle& graph) override;
  Status capture_of(int device, StreamHandle stream, uint64_t& number) override;
  Status instantiate(int device, GraphHandle graph, ExecutableHandle& executable) override;
  Status launch_graph(int device, ExecutableHandle executable, StreamHandle stream) override;
  void destroy_graph(int device, GraphHandle graph) override;
  void destroy_executable(int device, ExecutableHandle executable) override;
  Status draw_graph(int device, GraphHandle graph, const char* path) override;
  bool can_multiply(const BlasProduct& product) override;
  bool can_finish(int device, const BlasProduct& product) override;
  Status multiply(int device, const BlasProduct& product, StreamHandle stream) override;
  bool prefers_channels_last(int device) override;
  const ConvolutionPlan* plan(int device, const Convolution& convolution, StreamHandle stream, bool trying) override;
  Status convolve(int device, const ConvolutionPlan& plan, const Convolution& convolution, Address workspace,
                  StreamHandle stream) override;
  SharedRecurrencePlan plan_recurrence(int device, const Recurrence& layers, StreamHandle stream) override;
  Status recur(int device, const SharedRecurrencePlan& plan, const RecurrenceRun& run, StreamHandle stream) override;
  SharedTransformPlan plan_transform(int device, const Transform& transform) override;
  void settle_transforms(int device, PlansKept& asked) override;
  Status transform(int device, const SharedTransformPlan& plan, const Transform& transform, Address workspace,
                   StreamHandle stream) override;
  const FactoringPlan* plan_factoring(int device, const Factoring& factoring, StreamHandle stream) override;
  Status factor(int device, const FactoringPlan& plan, const Factoring& factoring, Address workspace,
                StreamHandle stream) override;
  Nccl* nccl(int device, std::string& why) override;
  Compiler& compiler() override { return compiler_; }
  void start_activities(uint64_t most) override;
  std::string stop_activities(bool may_wait, std::vector<Activity>& noted, uint64_t& dropped) override;
  std::string libraries() override;

  // What tests do beside it.
  /// Where the bytes of an address lie with the host.
  char* place_of(int device, Address address) { return bytes_at(device, address); }
  int64_t now() const;
  void advance(int64_t nanoseconds);
  /// Queues work of a length and gives the time of its end; null: it has no effect.
  Status work(int device, StreamHandle stream, int64_t nanoseconds, int64_t& end, std::function<void()> effect = {},
              const Handed& handed = {});
  /// The nth call of a kind from now on fails: "allocate", "pinned", "copy", "event", "synchronize", "product",
  /// "convolution", "graph" (its launch), "transform", "factor", "recurrence", or the next "kernel" when it runs, after
  /// which the device is unusable. 0 takes it back. False: no such kind.
  bool fail(std::string_view kind, int64_t nth);
  /// Other processes hold so many bytes of a device's memory.
  void hold(int device, uint64_t nbytes);
  /// Bytes that this process has taken of a device, and of pinned memory.
  uint64_t taken(int device) const;
  uint64_t pinned() const;
  /// How often the device's memory was asked for and given back.
  std::pair<uint64_t, uint64_t> traffic(int device) const;

 private:
  struct Recorded;
  struct Capture;
  struct Stream;
  struct Event;
  struct Device;
  struct Pending {
    int64_t end;
    uint64_t number;
    std::function<void()> effect;
  };
  struct Earlier {
    bool operator()(const Pending& a, const Pending& b) const {
      return a.end != b.end ? a.end < b.end : a.number < b.number;
    }
  };

  bool fails(int kind);
  bool fails_graph();
  bool fails_allocation();
  Stream& stream_of(int device, StreamHandle handle);
  Status queue(int device, StreamHandle handle, int64_t nanoseconds, std::function<void()> effect, int64_t* end,
               const Handed& handed = {});
  /// Asks where the work comes from, so no lock may be held.
  Handed handed(const char* name, int kind = 0, int64_t bytes = 0) const;
  /// With the lock held: work ends at a time.
  void note(int device, StreamHandle stream, int64_t nanoseconds, int64_t end, const Handed& handed);
  void run_until(int64_t time);
  bool is_pinned(const void* data) const;
  // Recordings; the lock is held.
  Status record(Stream& stream, int64_t nanoseconds, std::function<void()> effect, int64_t* end, const Handed& handed);
  Status mark(Event& event, const Stream& stream);
  Status join(int device, Stream& waiting, const Event& event);
  /// What is called may not be called in a recording, which is broken by it.
  bool breaks(const std::shared_ptr<Capture>& capture);
  /// Whether what may not be called anywhere while work is recorded breaks a recording.
  bool forbidden();
  char* bytes_at(int device, Address address);

  mutable std::mutex lock_;
  int64_t now_ = 0;
  uint64_t queued_ = 0;
  std::set<Pending, Earlier> pending_;
  std::vector<std::unique_ptr<Device>> devices_;
  std::vector<std::unique_ptr<Stream>> streams_;
  std::map<void*, uint64_t> pinned_;
  std::vector<int64_t> countdown_;
  std::vector<std::shared_ptr<Capture>> captures_;
  uint64_t captured_ = 0;
  Activities activities_;
  SimulatedCompiler compiler_;
  std::map<int, Recent<Transform, TransformPlan>> transforms_;  // by device
  int64_t behind_host_ =
      0;  // how far virtual time is behind the host's, so that no work is told of before it was asked
};

}  // namespace taeda::cuda
