// The observers of a thread, and which calls they see.
#include "taeda/observer.h"

#include <algorithm>
#include <exception>
#include <vector>

namespace taeda {
namespace {

constexpr uint64_t kBit = KeySet::of(Layer::Observer).bits();

struct Watched {
  std::vector<Observer*> observers;
  const Observation* innermost = nullptr;
};
thread_local Watched watched;

/// Observers may call operators; these are not observed.
class Unobserved {
 public:
  Unobserved() noexcept : saved_(thread_state.excluded) { thread_state.excluded |= kBit; }
  ~Unobserved() { restore_excluded(saved_); }
  Unobserved(const Unobserved&) = delete;

 private:
  uint64_t saved_;
};

}  // namespace

Observer::~Observer() = default;

void add_observer(Observer* observer) {
  if (!watched.innermost) std::erase(watched.observers, nullptr);
  watched.observers.push_back(observer);
  thread_state.included |= kBit;
}

void remove_observer(Observer* observer) noexcept {
  const auto found = std::ranges::find(watched.observers, observer);
  // Calls that it saw begin still run: its place stays theirs.
  if (found != watched.observers.end()) *found = nullptr;
  if (std::ranges::any_of(watched.observers, [](const Observer* o) { return o != nullptr; })) return;
  thread_state.included &= ~kBit;
  if (!watched.innermost) watched.observers.clear();
}

Observation::Observation(const ObservedCall& call) noexcept
    : call_(call), outer_(watched.innermost), excluded_(thread_state.excluded), errors_(std::uncaught_exceptions()) {
  // The same operator straight below, with more layers off: a layer passed the call on.
  const bool passed_on =
      outer_ && &outer_->call_.op == &call.op && (excluded_ & ~outer_->excluded_) && !(outer_->excluded_ & ~excluded_);
  if (!passed_on) {
    const Unobserved unobserved;
    count_ = watched.observers.size();
    for (size_t i = 0; i < count_; ++i)
      if (Observer* observer = watched.observers[i]) observer->begin(call);
  }
  watched.innermost = this;
}

Observation::~Observation() {
  watched.innermost = outer_;
  const Unobserved unobserved;
  const bool failed = std::uncaught_exceptions() > errors_;
  for (size_t i = count_; i-- > 0;)
    if (Observer* observer = watched.observers[i]) observer->end(call_, failed);
}

}  // namespace taeda
