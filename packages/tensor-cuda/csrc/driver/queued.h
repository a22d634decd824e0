// A driver whose work is put into its streams by a thread of its own, in the order in which it was asked for.
//
// Note [A thread that launches]
// The driver takes about 3 us of the host for each launch, which is most of what an operator costs there. Here a call
// that puts work into a stream writes it down in a ring of memory, and a thread hands it to the driver below:
//   * There is one ring for all streams and devices, so work reaches the driver in the order of the calls, whichever
//     threads they came from. What does not depend on that order (memory, streams, handles) goes straight through.
//   * Calls that wait, that ask how far a stream has come, or that touch memory of the host first wait until what was
//     asked for before has reached the driver. An event is asked for once its record has reached it.
//   * What the driver refuses then is kept, with what it was, for whoever waits next and asks (`late_failure`).
//   * While work is recorded for a graph, and in the child of a fork, nothing is written down: recordings belong to
//     threads.
// Work that others put into the same streams by the driver itself is not in this order, so the thread is there on
// request alone (TAEDA_CUDA_LAUNCH_THREAD=1).
#pragma once
#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>

#include "driver/driver.h"

namespace taeda::cuda {

class QueuedDriver final : public Driver {
 public:
  explicit QueuedDriver(std::unique_ptr<Driver> below);
  ~QueuedDriver() override;

  void issue() override;
  Status late_failure(std::string& text) override;
  int device_count() const override { return below_->device_count(); }
  Status facts(int device, DeviceFacts& facts) override { return below_->facts(device, facts); }
  std::string text_of(Status status) const override { return below_->text_of(status); }

  Status allocate(int device, size_t nbytes, Address& address) override {
    return below_->allocate(device, nbytes, address);
  }
  Status release(int device, Address address) override {
    return after_all([&] { return below_->release(device, address); });
  }
  Status room(int device, Room& room) override { return below_->room(device, room); }
  Status device_of(Address address, int& device) override { return below_->device_of(address, device); }
  Status reserve(int device, size_t nbytes, Address& start) override { return below_->reserve(device, nbytes, start); }
  Status unreserve(int device, Address start, size_t nbytes) override {
    return below_->unreserve(device, start, nbytes);
  }
  Status put(int device, Address at, size_t nbytes) override { return below_->put(device, at, nbytes); }
  Status take_away(int device, Address at, size_t nbytes) override {
    return after_all([&] { return below_->take_away(device, at, nbytes); });
  }
  Status share(int device, Address address, SharedHandle& handle, uint64_t& offset) override {
    return after_all([&] { return below_->share(device, address, handle, offset); });
  }
  Status open_shared(int device, const SharedHandle& handle, Address& start) override {
    return below_->open_shared(device, handle, start);
  }
  Status close_shared(int device, Address start) override {
    return after_all([&] { return below_->close_shared(device, start); });
  }
  Status allocate_pinned(size_t nbytes, void*& data) override { return below_->allocate_pinned(nbytes, data); }
  Status release_pinned(void* data) override {
    return after_all([&] { return below_->release_pinned(data); });
  }

  Status create_stream(int device, int priority, StreamHandle& stream) override {
    return below_->create_stream(device, priority, stream);
  }
  Status synchronize_stream(int device, StreamHandle stream) override {
    return after_all([&] { return below_->synchronize_stream(device, stream); });
  }
  Status query_stream(int device, StreamHandle stream) override {
    return after_all([&] { return below_->query_stream(device, stream); });
  }
  Status synchronize(int device) override {
    return after_all([&] { return below_->synchronize(device); });
  }
  Status create_event(int device, bool timing, EventHandle& event) override {
    return below_->create_event(device, timing, event);
  }
  void destroy_event(int device, EventHandle event) override;
  Status record_event(int device, EventHandle event, StreamHandle stream) override;
  Status wait_event(int device, StreamHandle stream, EventHandle event) override;
  Status synchronize_event(int device, EventHandle event) override;
  Status query_event(int device, EventHandle event) override;
  Status elapsed(EventHandle from, EventHandle to, double& milliseconds) override {
    return after_all([&] { return below_->elapsed(from, to, milliseconds); });
  }

  Status copy_in(int device, Address to, const void* from, size_t nbytes, StreamHandle stream) override {
    return after_all([&] { return below_->copy_in(device, to, from, nbytes, stream); });
  }
  Status copy_out(int device, void* to, Address from, size_t nbytes, StreamHandle stream) override {
    return after_all([&] { return below_->copy_out(device, to, from, nbytes, stream); });
  }
  Status copy_peer(int to_device, Address to, int from_device, Address from, size_t nbytes,
                   StreamHandle stream) override;
  Status launch(int device, const Kernel& kernel, const void* body, int64_t items, StreamHandle stream) override;

  Status begin_capture(int device, StreamHandle stream, CaptureMode mode) override;
  Status end_capture(int device, StreamHandle stream, GraphHandle& graph) override;
  Status capture_of(int device, StreamHandle stream, uint64_t& number) override {
    return below_->capture_of(device, stream, number);
  }
  Status instantiate(int device, GraphHandle graph, ExecutableHandle& executable) override {
    return below_->instantiate(device, graph, executable);
  }
  Status launch_graph(int device, ExecutableHandle executable, StreamHandle stream) override;
  void destroy_graph(int device, GraphHandle graph) override { below_->destroy_graph(device, graph); }
  void destroy_executable(int device, ExecutableHandle executable) override {
    issue();
    below_->destroy_executable(device, executable);
  }
  Status draw_graph(int device, GraphHandle graph, const char* path) override {
    return below_->draw_graph(device, graph, path);
  }

  bool can_multiply(const BlasProduct& product) override { return below_->can_multiply(product); }
  bool can_finish(int device, const BlasProduct& product) override { return below_->can_finish(device, product); }
  Status multiply(int device, const BlasProduct& product, StreamHandle stream) override;
  bool prefers_channels_last(int device) override { return below_->prefers_channels_last(device); }
  const ConvolutionPlan* plan(int device, const Convolution& convolution, StreamHandle stream, bool trying) override {
    if (trying) issue();
    return below_->plan(device, convolution, stream, trying);
  }
  Status convolve(int device, const ConvolutionPlan& plan, const Convolution& convolution, Address workspace,
                  StreamHandle stream) override;
  SharedRecurrencePlan plan_recurrence(int device, const Recurrence& layers, StreamHandle stream) override {
    return below_->plan_recurrence(device, layers, stream);
  }
  Status recur(int device, const SharedRecurrencePlan& plan, const RecurrenceRun& run, StreamHandle stream) override;
  SharedTransformPlan plan_transform(int device, const Transform& transform) override {
    return below_->plan_transform(device, transform);
  }
  void settle_transforms(int device, PlansKept& asked) override { below_->settle_transforms(device, asked); }
  Status transform(int device, const SharedTransformPlan& plan, const Transform& transform, Address workspace,
                   StreamHandle stream) override;
  const FactoringPlan* plan_factoring(int device, const Factoring& factoring, StreamHandle stream) override {
    return below_->plan_factoring(device, factoring, stream);
  }
  Status factor(int device, const FactoringPlan& plan, const Factoring& factoring, Address workspace,
                StreamHandle stream) override;
  Nccl* nccl(int device, std::string& why) override {
    issue();
    return below_->nccl(device, why);
  }
  Compiler& compiler() override { return below_->compiler(); }
  void start_activities(uint64_t most) override {
    issue();
    below_->start_activities(most);
    notes_ = true;
  }
  std::string stop_activities(bool may_wait, std::vector<Activity>& noted, uint64_t& dropped) override {
    notes_ = false;
    issue();
    return below_->stop_activities(may_wait, noted, dropped);
  }
  std::string libraries() override { return below_->libraries(); }

 private:
  /// What lies in the ring before a piece of work.
  struct Entry {
    uint32_t size;                             // with this
    const char *what, *name;                   // for the text of a failure: "launch of ", "taeda_add_f"
    Status (*run)(Driver& below, void* work);  // null: the rest of the ring is left out
    uint64_t origin;                           // of the call, for profilers
  };
  static constexpr uint64_t kRing = 1 << 20, kAlignment = 64;

  /// Writes `nbytes` of work down by `write`, with the lock held; false: it is to be done at once instead.
  template <class Write>
  bool put_down(const char* what, const char* name, size_t nbytes, Status (*run)(Driver&, void*), const Write& write);
  /// Writes `work(below)` down, or does it; it is plain data. With the lock held `then` is told where it ends.
  template <class Work, class Then>
  Status later(const char* what, const Work& work, const Then& then);
  template <class Work>
  Status later(const char* what, const Work& work) {
    return later(what, work, [](uint64_t) {});
  }
  template <class Call>
  Status after_all(const Call& call) {
    issue();
    return call();
  }
  /// As `later`, of work that uses a plan, which is kept until it is done.
  template <class Work>
  Status later_with(const char* what, std::shared_ptr<const void> plan, const Work& work);
  void wait_until(uint64_t place);
  /// Where the last record of an event ends in the ring; 0: it is behind us.
  uint64_t end_of_record(EventHandle event);
  void hand_over();
  void stop();
  // Around a fork: nothing is on its way, and the child has no thread.
  static void before_fork();
  static void after_fork_here();
  static void after_fork_in_child();
  static void at_exit();

  struct alignas(kAlignment) Ring {
    char bytes[kRing];
  };
  const std::unique_ptr<Driver> below_;
  const std::unique_ptr<Ring> ring_;
  std::mutex lock_;  // of those who write
  bool straight_ = false;
  std::atomic<bool> notes_ = false;
  int captures_ = 0;
  std::deque<std::pair<uint64_t, std::shared_ptr<const void>>>
      used_;                                            // plans, until the ring is done with what uses them
  std::unordered_map<EventHandle, uint64_t> recorded_;  // the end of an event's last record in the ring
  std::mutex late_lock_;
  std::atomic<Status> late_ = Status::Ok;  // the first one
  std::string late_text_;
  alignas(64) std::atomic<uint64_t> written_ = 0;  // bytes so far
  alignas(64) std::atomic<uint64_t> done_ = 0;     // bytes so far
  alignas(64) std::atomic<bool> sleeps_ = false;
  std::atomic<bool> ends_ = false;
  std::thread thread_;
};

/// The driver itself, or behind a thread that launches where TAEDA_CUDA_LAUNCH_THREAD=1 asks for it.
std::unique_ptr<Driver> with_launch_thread(std::unique_ptr<Driver> driver);

}  // namespace taeda::cuda
