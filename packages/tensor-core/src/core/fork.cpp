// Takes the library's locks around fork; see Note [Locks and fork].
#include "core/fork.h"

#include <pthread.h>

#include <chrono>
#include <mutex>
#include <thread>

namespace taeda {

struct ForkLocks {
  std::mutex lock;
  HeldAtFork* first = nullptr;

  /// The first lock that another thread has, with those before it taken; null when all are.
  HeldAtFork* take() {
    for (HeldAtFork* item = first; item; item = item->next_)
      if (!item->try_lock_(item->lock_)) return item;
    return nullptr;
  }
  void give_back(const HeldAtFork* end) {
    for (HeldAtFork* item = first; item != end; item = item->next_) item->unlock_(item->lock_);
  }
  void before() {
    using namespace std::chrono;
    lock.lock();
    const auto limit = steady_clock::now() + seconds(1);
    for (HeldAtFork* busy = take(); busy; busy = take()) {
      give_back(busy);
      held = false;
      if (steady_clock::now() > limit) return;
      std::this_thread::sleep_for(microseconds(50));
    }
    held = true;
  }
  void in_parent() {
    if (held) give_back(nullptr);
    lock.unlock();
  }
  void in_child() {
    for (HeldAtFork* item = first; item; item = item->next_) item->renew_(item->lock_);
    new (&lock) std::mutex;
  }
  bool held = false;
};

namespace {

ForkLocks& locks() {
  static auto* instance = new ForkLocks;  // locks of static objects come and go at any time
  return *instance;
}

const bool fork_handler = [] {
  pthread_atfork([] { locks().before(); }, [] { locks().in_parent(); }, [] { locks().in_child(); });
  return true;
}();

}  // namespace

void HeldAtFork::enlist() {
  std::lock_guard guard(locks().lock);
  next_ = locks().first;
  if (next_) next_->previous_ = this;
  locks().first = this;
}

HeldAtFork::~HeldAtFork() {
  std::lock_guard guard(locks().lock);
  (previous_ ? previous_->next_ : locks().first) = next_;
  if (next_) next_->previous_ = previous_;
}

}  // namespace taeda
