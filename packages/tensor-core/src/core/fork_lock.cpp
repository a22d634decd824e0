// All ForkLocks, and what happens to them at a fork.
#include "core/fork_lock.h"

#include <pthread.h>

#include <atomic>

namespace taeda::detail {

struct ForkLocks {
  static inline std::atomic<ForkLock*> newest{nullptr};
  /// The locks that the forking thread took; younger ones came in between.
  static inline ForkLock* taken = nullptr;

  template <class Body>
  static void each(ForkLock::Place place, const Body& body) {
    for (ForkLock* lock = taken; lock; lock = lock->next_)
      if (lock->place_ == place) body(*lock);
  }
  static void take() {
    ForkLock* const all = newest.load(std::memory_order_acquire);
    static std::mutex one_fork;  // two threads may fork at once
    one_fork.lock();
    turn = &one_fork;
    taken = all;
    for (ForkLock::Place place : {ForkLock::Outer, ForkLock::Inner}) each(place, [](ForkLock& l) { l.lock(); });
  }
  static void release() {
    for (ForkLock::Place place : {ForkLock::Inner, ForkLock::Outer}) each(place, [](ForkLock& l) { l.unlock(); });
    turn->unlock();
  }
  static void add(ForkLock* lock) noexcept {
    static const bool handled = pthread_atfork(take, release, release) == 0;
    (void)handled;
    lock->next_ = newest.load(std::memory_order_relaxed);
    while (!newest.compare_exchange_weak(lock->next_, lock, std::memory_order_release, std::memory_order_relaxed)) {
    }
  }

 private:
  static inline std::mutex* turn = nullptr;
};

ForkLock::ForkLock(Place place) noexcept : place_(place) { ForkLocks::add(this); }

}  // namespace taeda::detail
