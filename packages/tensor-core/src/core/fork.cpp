// Takes the library's locks around fork; see Note [Locks and fork].
#include "core/fork.h"

#include <pthread.h>

#include <chrono>
#include <mutex>
#include <thread>

namespace taeda {

struct ForkLocks {
  std::mutex lock;  // of the list; fork holds it from its beginning to its end
  HeldAtFork* first = nullptr;
  // Those that nobody has put into the list yet: who makes a lock does not wait for a fork, which may be waiting for it
  // or leave it, and what it is about to make, behind in the child.
  std::atomic<HeldAtFork*> arrived{nullptr};
  bool held = false;

  void list_arrived() {
    for (HeldAtFork* item = arrived.exchange(nullptr, std::memory_order_acquire); item;) {
      HeldAtFork* const earlier = item->next_;
      item->next_ = first;
      if (first) first->previous_ = item;
      first = item;
      item = earlier;
    }
  }

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
    list_arrived();
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
    list_arrived();
    for (HeldAtFork* item = first; item; item = item->next_) item->renew_(item->lock_);
    new (&lock) std::mutex;
  }
};

namespace {

constinit ForkLocks locks;  // used by static objects that come and go at any time

const bool fork_handler = [] {
  pthread_atfork([] { locks.before(); }, [] { locks.in_parent(); }, [] { locks.in_child(); });
  return true;
}();

}  // namespace

void HeldAtFork::enlist() {
  next_ = locks.arrived.load(std::memory_order_relaxed);
  while (!locks.arrived.compare_exchange_weak(next_, this, std::memory_order_release, std::memory_order_relaxed)) {
  }
}

HeldAtFork::~HeldAtFork() {
  std::lock_guard guard(locks.lock);
  locks.list_arrived();
  (previous_ ? previous_->next_ : locks.first) = next_;
  if (next_) next_->previous_ = previous_;
}

}  // namespace taeda
