// The observers of a thread, and which calls they see.
#include "taeda/observer.h"

#include <algorithm>
#include <atomic>
#include <utility>
#include <vector>

#include "taeda/thread_end.h"

namespace taeda {

constinit thread_local uint64_t recorded_sequence __attribute__((tls_model("initial-exec"))) = 0;

namespace {

constexpr uint64_t kBit = KeySet::of(Layer::Observer).bits();

struct Watched {
  std::vector<Observer*> observers;
  Observer* only = nullptr;  // where there is one alone
  bool memory = false;       // somebody watches memory
  const Observation* innermost = nullptr;

  void count() noexcept {
    only = observers.size() == 1 ? observers[0] : nullptr;
    memory = std::ranges::any_of(observers, [](const Observer* o) { return o && o->watches_memory(); });
  }
};
// Only pointers and numbers are thread-local, in the static TLS block, so that calls reach them by one load.
constinit thread_local Watched* watched __attribute__((tls_model("initial-exec"))) = nullptr;
constinit thread_local uint64_t ended_sequence __attribute__((tls_model("initial-exec"))) = 0;

/// What still runs on a thread that ends is not observed.
void drop() noexcept {
  thread_state.included &= ~kBit;
  delete std::exchange(watched, nullptr);
}

/// Observers may call operators; these are not observed.
class Unobserved {
 public:
  Unobserved() noexcept : saved_(thread_state.excluded) { thread_state.excluded |= kBit; }
  ~Unobserved() { restore_excluded(saved_); }
  Unobserved(const Unobserved&) = delete;

 private:
  uint64_t saved_;
};

template <class Tell>
void tell_all(const Tell& tell) noexcept {
  if (!observed() || !watched) return;
  const Unobserved unobserved;
  if (watched->only) return tell(*watched->only);
  for (size_t i = 0; watched && i < watched->observers.size(); ++i)
    if (Observer* observer = watched->observers[i]) tell(*observer);
}

}  // namespace

Observer::~Observer() = default;

void tell_begin(const Span& span) noexcept {
  tell_all([&](Observer& observer) { observer.span_begin(span); });
}
void tell_end(const Span& span) noexcept {
  tell_all([&](Observer& observer) { observer.span_end(span); });
}
void tell_memory(const MemoryUse& use) noexcept {
  if (watched && watched->memory) tell_all([&](Observer& observer) { observer.memory(use); });
}
uint64_t tell_work() noexcept {
  static constinit std::atomic<uint64_t> last = 0;
  if (!observed()) return 0;
  const uint64_t origin = last.fetch_add(1, std::memory_order_relaxed) + 1;
  tell_all([&](Observer& observer) { observer.work(origin); });
  return origin;
}

uint64_t call_sequence() noexcept { return ended_sequence; }

void add_observer(Observer* observer) {
  if (!at_thread_end<drop>()) return;
  if (!watched) watched = new Watched;
  if (!watched->innermost) std::erase(watched->observers, nullptr);
  watched->observers.push_back(observer);
  watched->count();
  thread_state.included |= kBit;
}

void remove_observer(Observer* observer) noexcept {
  if (!watched) return;
  const auto found = std::ranges::find(watched->observers, observer);
  // Calls that it saw begin still run: its place stays theirs.
  if (found != watched->observers.end()) *found = nullptr;
  watched->count();
  if (std::ranges::any_of(watched->observers, [](const Observer* o) { return o != nullptr; })) return;
  thread_state.included &= ~kBit;
  if (!watched->innermost) watched->observers.clear();
}

Observation::Observation(const ObservedCall& call) noexcept
    : call_(call),
      outer_(watched->innermost),
      excluded_(thread_state.excluded),
      sequence_(std::exchange(recorded_sequence, 0)) {
  // The same operator straight below, with more layers off: a layer passed the call on.
  const bool passed_on =
      outer_ && &outer_->call_.op == &call.op && (excluded_ & ~outer_->excluded_) && !(outer_->excluded_ & ~excluded_);
  if (!passed_on) {
    const Unobserved unobserved;
    count_ = watched->observers.size();
    for (size_t i = 0; i < count_; ++i)
      if (Observer* observer = watched->observers[i]) observer->begin(call);
  }
  watched->innermost = this;
}

Observation::~Observation() {
  watched->innermost = outer_;
  const uint64_t recorded = std::exchange(recorded_sequence, sequence_);
  if (count_ == 0) {  // a call that was passed on: what it has recorded belongs to the one around it
    if (recorded) recorded_sequence = recorded;
    return;
  }
  ended_sequence = recorded;
  const Unobserved unobserved;
  for (size_t i = count_; i-- > 0;)
    if (Observer* observer = watched->observers[i]) observer->end(call_, failed_);
}

}  // namespace taeda
