// Locks that no fork finds held by another thread.
#pragma once
#include <atomic>
#include <cstdint>
#include <mutex>
#include <new>
#include <type_traits>

namespace taeda {

/// Note [Locks and fork]
/// A child of fork has the forking thread alone; a lock that another held stays locked for ever, and what it guards is
/// half changed. So fork takes every lock that stands beside one of these objects first, and both processes have them
/// free afterwards. It waits for the holders, but not for long: one of them may wait for something that the forking
/// thread has. Work that goes on inside a vendor library which locks for itself (oneDNN builds primitives) has a lock
/// of ours around it.
/// The guard of a function's static object is a lock as well, and one that cannot be enlisted. So what has locks is
/// made while the library is loaded (`made_at_load`), and what takes long to find out stands in no static object
/// (`found_out`).
class HeldAtFork {
 public:
  template <class Mutex>
  explicit HeldAtFork(Mutex& lock)
      : lock_(&lock),
        try_lock_([](void* m) { return static_cast<Mutex*>(m)->try_lock(); }),
        unlock_([](void* m) { static_cast<Mutex*>(m)->unlock(); }),
        renew_([](void* m) { new (m) Mutex; }) {
    enlist();
  }
  ~HeldAtFork();
  HeldAtFork(const HeldAtFork&) = delete;

 private:
  friend struct ForkLocks;
  void enlist();

  void* lock_;
  bool (*try_lock_)(void*);
  void (*unlock_)(void*);
  void (*renew_)(void*);                              // in the child: free, whoever held it
  HeldAtFork *next_ = nullptr, *previous_ = nullptr;  // once it has been seen; until then, the one that came before
};

/// A mutex that is enlisted for as long as it lives.
class ForkLock {
 public:
  void lock() { mutex_.lock(); }
  bool try_lock() { return mutex_.try_lock(); }
  void unlock() { mutex_.unlock(); }

 private:
  std::mutex mutex_;
  HeldAtFork held_{mutex_};
};

/// What `find` says, which takes long to find out and is always the same; threads that ask at once may all find it out.
template <class Find>
bool found_out(const Find& find) {
  static_assert(std::is_class_v<Find>, "a lambda, whose type is its own: functions of one type would share one answer");
  static constinit std::atomic<int8_t> known{-1};
  int8_t fact = known.load(std::memory_order_acquire);
  if (fact < 0) known.store(fact = int8_t(bool(find())), std::memory_order_release);
  return fact != 0;
}

}  // namespace taeda
