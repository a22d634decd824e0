// One pool of threads; work cut into pieces whose borders do not depend on the number of threads.
#pragma once
#include <cstdint>

#include "taeda/export.h"

namespace taeda {

TAEDA_API int num_threads();
TAEDA_API void set_num_threads(int count);

/// Runs `body(context, begin, end)` over [0, count) in pieces of `grain`; serial when one piece or nested.
TAEDA_API void parallel_pieces(int64_t count, int64_t grain, void (*body)(void*, int64_t, int64_t), void* context);

template <class Body>
void parallel_for(int64_t count, int64_t grain, const Body& body) {
  if (count <= 0) return;
  if (count <= grain) return body(int64_t(0), count);
  parallel_pieces(
      count, grain, [](void* b, int64_t begin, int64_t end) { (*static_cast<const Body*>(b))(begin, end); },
      const_cast<void*>(static_cast<const void*>(&body)));
}

/// The host language's lock (Python's GIL), given up around long work. Set by the binding.
struct HostLock {
  void* (*release)() = nullptr;  // null result: this thread did not hold it
  void (*acquire)(void* token) = nullptr;
  void* turns = nullptr;  // Note [Turns] in python_lock.h
};
extern TAEDA_API HostLock host_lock;

/// Scope in which other Python threads may run; `worth` false makes it free of cost.
class Unlocked {
 public:
  explicit Unlocked(bool worth) : token_(worth && host_lock.release ? host_lock.release() : nullptr) {}
  ~Unlocked() {
    if (token_) host_lock.acquire(token_);
  }
  Unlocked(const Unlocked&) = delete;

 private:
  void* token_;
};

}  // namespace taeda
