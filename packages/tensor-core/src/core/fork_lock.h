// ForkLock: a mutex that is free in the child of a fork, whatever other threads did.
#pragma once
#include <mutex>

namespace taeda::detail {

/// Note [Locks and fork]
/// fork() copies the locks that other threads hold, and in the child nobody is left to open them. A lock that a thread may
/// hold without Python's lock is therefore taken before each fork and released behind it, in both processes. An Outer one
/// may be held while others are taken, the Inner ones are never held together. Lives as long as the process.
class ForkLock {
 public:
  enum Place { Outer, Inner };
  explicit ForkLock(Place place = Inner) noexcept;
  ForkLock(const ForkLock&) = delete;
  void lock() { mutex_.lock(); }
  void unlock() { mutex_.unlock(); }

 private:
  friend struct ForkLocks;
  std::mutex mutex_;
  Place place_;
  ForkLock* next_ = nullptr;
};

}  // namespace taeda::detail
