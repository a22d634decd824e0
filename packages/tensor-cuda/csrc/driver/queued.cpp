// Work on its way to the driver (Note [A thread that launches]).
#include "driver/queued.h"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string_view>
#include <vector>

#include "kernels/launch.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace taeda::cuda {
namespace {

using Clock = std::chrono::steady_clock;
/// For so long the thread looks for more work before it sleeps, and one who waits looks before he lets others run.
constexpr auto kLooks = std::chrono::microseconds(100);
constexpr auto kNap = std::chrono::microseconds(20);
constexpr int kLooksAtOnce = 64;

void relax() {
#if defined(__x86_64__)
  _mm_pause();
#else
  std::this_thread::yield();
#endif
}
/// Whether `found` came true within the time that is spent looking for it.
template <class Found>
bool seen_soon(const Found& found) {
  const auto until = Clock::now() + kLooks;
  do
    for (int i = 0; i < kLooksAtOnce; ++i) {
      if (found()) return true;
      relax();
    }
  while (Clock::now() < until);
  return false;
}

std::mutex live_lock;
std::vector<QueuedDriver*>& live() {
  static auto* const drivers = new std::vector<QueuedDriver*>;
  return *drivers;
}
struct Launch {
  int device;
  const Kernel* kernel;
  int64_t items;
  StreamHandle stream;
  // the body lies behind it
};
constexpr size_t kBodyPlace = (sizeof(Launch) + 15) / 16 * 16;

}  // namespace

QueuedDriver::QueuedDriver(std::unique_ptr<Driver> below) : below_(std::move(below)), ring_(std::make_unique<Ring>()) {
  static const bool once = [] {
    pthread_atfork(before_fork, after_fork_here, after_fork_in_child);
    return std::atexit(at_exit) == 0;
  }();
  static_cast<void>(once);
  sigset_t all, before;  // signals are for the program's threads
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { hand_over(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  const std::lock_guard held(live_lock);
  live().push_back(this);
}
QueuedDriver::~QueuedDriver() {
  {
    const std::lock_guard held(live_lock);
    std::erase(live(), this);
  }
  stop();
}
void QueuedDriver::stop() {
  const std::lock_guard held(lock_);
  wait_until(written_);
  straight_ = true;
  if (!thread_.joinable()) return;
  ends_ = true;
  sleeps_ = false;
  sleeps_.notify_one();
  thread_.join();
}

// --- forks, and the end of the process ---

void QueuedDriver::before_fork() {
  live_lock.lock();
  for (QueuedDriver* const driver : live()) {
    driver->lock_.lock();
    driver->wait_until(driver->written_);
  }
}
void QueuedDriver::after_fork_here() {
  for (QueuedDriver* const driver : live()) driver->lock_.unlock();
  live_lock.unlock();
}
void QueuedDriver::after_fork_in_child() {
  for (QueuedDriver* const driver : live()) {
    driver->straight_ = true;
    new (&driver->thread_) std::thread;  // the parent's is not here to be joined
    driver->lock_.unlock();
  }
  live_lock.unlock();
}
/// The driver's own end comes after this: it was started before.
void QueuedDriver::at_exit() {
  const std::lock_guard held(live_lock);
  for (QueuedDriver* const driver : live()) driver->stop();
}

// --- the ring ---

template <class Write>
bool QueuedDriver::put_down(const char* what, const char* name, size_t nbytes, Status (*run)(Driver&, void*),
                            const Write& write) {
  const uint64_t origin = notes_.load(std::memory_order_relaxed) ? work_origin() : 0;
  const std::lock_guard held(lock_);
  if (straight_ || captures_ > 0) return false;
  const uint64_t size = (sizeof(Entry) + nbytes + kAlignment - 1) / kAlignment * kAlignment;
  uint64_t at = written_.load(std::memory_order_relaxed);
  const uint64_t left = kRing - at % kRing, skipped = size > left ? left : 0;
  if (at + skipped + size > kRing) wait_until(at + skipped + size - kRing);
  if (skipped) new (&ring_->bytes[at % kRing]) Entry{uint32_t(skipped), nullptr, nullptr, nullptr, 0};
  at += skipped;
  char* const place = &ring_->bytes[at % kRing];
  new (place) Entry{uint32_t(size), what, name, run, origin};
  write(place + sizeof(Entry), at + size);
  written_.store(at + size, std::memory_order_seq_cst);
  if (sleeps_.load(std::memory_order_seq_cst)) {
    sleeps_.store(false, std::memory_order_relaxed);
    sleeps_.notify_one();
  }
  return true;
}
template <class Work, class Then>
Status QueuedDriver::later(const char* what, const Work& work, const Then& then) {
  static_assert(std::is_trivially_destructible_v<Work> && alignof(Work) <= alignof(Entry));
  const auto run = [](Driver& below, void* place) { return (*static_cast<Work*>(place))(below); };
  const auto write = [&](void* place, uint64_t end) {
    new (place) Work(work);
    then(end);
  };
  return put_down(what, "", sizeof(Work), run, write) ? Status::Ok : work(*below_);
}
/// The thread.
void QueuedDriver::hand_over() {
  for (;;) {
    const uint64_t at = done_.load(std::memory_order_relaxed);
    const auto has_more = [&] { return written_.load(std::memory_order_acquire) != at; };
    if (!has_more()) {
      if (ends_) return;
      if (seen_soon([&] { return has_more() || ends_; })) continue;
      sleeps_.store(true, std::memory_order_seq_cst);
      if (written_.load(std::memory_order_seq_cst) == at && !ends_) sleeps_.wait(true);
      sleeps_.store(false, std::memory_order_relaxed);
      continue;
    }
    char* const place = &ring_->bytes[at % kRing];
    const Entry& entry = *reinterpret_cast<Entry*>(place);
    const HandedOn from(entry.origin);
    const Status status = entry.run ? entry.run(*below_, place + sizeof(Entry)) : Status::Ok;
    if (status != Status::Ok) {
      const std::lock_guard held(late_lock_);
      if (late_ == Status::Ok) {
        late_text_ = std::string(entry.what) + entry.name + ", queued before: " + below_->text_of(status);
        late_ = status;
      }
    }
    done_.store(at + entry.size, std::memory_order_release);
  }
}
void QueuedDriver::wait_until(uint64_t place) {
  const auto is_there = [&] { return done_.load(std::memory_order_acquire) >= place; };
  if (is_there() || seen_soon(is_there)) return;
  while (!is_there()) std::this_thread::sleep_for(kNap);
}
void QueuedDriver::issue() { wait_until(written_.load(std::memory_order_acquire)); }
Status QueuedDriver::late_failure(std::string& text) {
  if (late_ == Status::Ok) return Status::Ok;
  const std::lock_guard held(late_lock_);
  text = std::move(late_text_);
  late_text_.clear();
  return late_.exchange(Status::Ok);
}

// --- work for streams ---

Status QueuedDriver::launch(int device, const Kernel& kernel, const void* body, int64_t items, StreamHandle stream) {
  const auto run = [](Driver& below, void* place) {
    const auto& work = *static_cast<const Launch*>(place);
    return below.launch(work.device, *work.kernel, static_cast<char*>(place) + kBodyPlace, work.items, work.stream);
  };
  const auto write = [&](char* place, uint64_t) {
    new (place) Launch{device, &kernel, items, stream};
    std::memcpy(place + kBodyPlace, body, kernel.size);
  };
  if (put_down("launch of ", kernel.name, kBodyPlace + kernel.size, run, write)) return Status::Ok;
  return below_->launch(device, kernel, body, items, stream);
}
Status QueuedDriver::launch_graph(int device, ExecutableHandle executable, StreamHandle stream) {
  return later("run of a graph", [=](Driver& below) { return below.launch_graph(device, executable, stream); });
}
Status QueuedDriver::multiply(int device, const BlasProduct& product, StreamHandle stream) {
  return later("product", [=](Driver& below) { return below.multiply(device, product, stream); });
}
Status QueuedDriver::convolve(int device, const ConvolutionPlan& plan, const Convolution& convolution,
                              Address workspace, StreamHandle stream) {
  return later("convolution", [=, plan = &plan](Driver& below) {
    return below.convolve(device, *plan, convolution, workspace, stream);
  });
}
template <class Work>
Status QueuedDriver::later_with(const char* what, std::shared_ptr<const void> plan, const Work& work) {
  return later(what, work, [&](uint64_t end) {
    const uint64_t done = done_.load(std::memory_order_acquire);
    while (!used_.empty() && used_.front().first <= done) used_.pop_front();
    used_.emplace_back(end, std::move(plan));
  });
}
Status QueuedDriver::transform(int device, const SharedTransformPlan& plan, const Transform& transform,
                               Address workspace, StreamHandle stream) {
  return later_with("transform", plan, [=, plan = plan.get()](Driver& below) {
    // Without an owner: `used_` has one.
    return below.transform(device, SharedTransformPlan(SharedTransformPlan(), plan), transform, workspace, stream);
  });
}
Status QueuedDriver::recur(int device, const SharedRecurrencePlan& plan, const RecurrenceRun& run,
                           StreamHandle stream) {
  return later_with("recurrence", plan, [=, plan = plan.get()](Driver& below) {
    return below.recur(device, SharedRecurrencePlan(SharedRecurrencePlan(), plan), run, stream);
  });
}
Status QueuedDriver::factor(int device, const FactoringPlan& plan, const Factoring& factoring, Address workspace,
                            StreamHandle stream) {
  return later("factors of matrices",
               [=, plan = &plan](Driver& below) { return below.factor(device, *plan, factoring, workspace, stream); });
}
Status QueuedDriver::copy_peer(int to_device, Address to, int from_device, Address from, size_t nbytes,
                               StreamHandle stream) {
  return later("copy between devices",
               [=](Driver& below) { return below.copy_peer(to_device, to, from_device, from, nbytes, stream); });
}

// --- events ---

void QueuedDriver::destroy_event(int device, EventHandle event) {
  later(
      "end of an event", [=](Driver& below) { return below.destroy_event(device, event), Status::Ok; },
      [&](uint64_t) { recorded_.erase(event); });
}
Status QueuedDriver::record_event(int device, EventHandle event, StreamHandle stream) {
  return later(
      "record of an event", [=](Driver& below) { return below.record_event(device, event, stream); },
      [&](uint64_t end) { recorded_[event] = end; });
}
Status QueuedDriver::wait_event(int device, StreamHandle stream, EventHandle event) {
  return later("wait for an event", [=](Driver& below) { return below.wait_event(device, stream, event); });
}
uint64_t QueuedDriver::end_of_record(EventHandle event) {
  const std::lock_guard held(lock_);
  const auto found = recorded_.find(event);
  if (found == recorded_.end()) return 0;
  const uint64_t end = found->second;
  if (end <= done_.load(std::memory_order_acquire)) recorded_.erase(found);
  return end;
}
Status QueuedDriver::synchronize_event(int device, EventHandle event) {
  wait_until(end_of_record(event));
  return below_->synchronize_event(device, event);
}
Status QueuedDriver::query_event(int device, EventHandle event) {
  const bool is_there = end_of_record(event) <= done_.load(std::memory_order_acquire);
  return is_there ? below_->query_event(device, event) : Status::NotReady;
}

// --- recordings ---

Status QueuedDriver::begin_capture(int device, StreamHandle stream, CaptureMode mode) {
  {
    const std::lock_guard held(lock_);
    wait_until(written_.load(std::memory_order_relaxed));
    ++captures_;
  }
  const Status status = below_->begin_capture(device, stream, mode);
  if (status == Status::Ok) return status;
  const std::lock_guard held(lock_);
  --captures_;
  return status;
}
Status QueuedDriver::end_capture(int device, StreamHandle stream, GraphHandle& graph) {
  const Status status = below_->end_capture(device, stream, graph);
  const bool goes_on = status == Status::CaptureWrongThread || status == Status::CaptureUnmatched;
  const std::lock_guard held(lock_);
  if (!goes_on) --captures_;
  return status;
}

std::unique_ptr<Driver> with_launch_thread(std::unique_ptr<Driver> driver) {
  const char* const wanted = std::getenv("TAEDA_CUDA_LAUNCH_THREAD");
  if (!wanted || std::string_view(wanted) != "1") return driver;
  return std::make_unique<QueuedDriver>(std::move(driver));
}

}  // namespace taeda::cuda
