// Per-thread stacks of small blocks, which other threads may empty.
#include "core/small_cache.h"

#include <linux/membarrier.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <mutex>
#include <utility>

#include "core/fork.h"
#include "taeda/thread_end.h"

namespace taeda::detail {
namespace {

// Note [Emptying another thread's cache]
// A thread works on its own cache without a lock or a locked instruction: it says that it is busy and looks whether
// somebody asked. Who empties it asks, lets every running thread of the process pass a memory barrier (membarrier) and
// waits until the thread is not busy. Either the thread saw the question and leaves its cache alone, or it is seen to
// be busy.

constexpr size_t kAlign = 64;
constexpr int kClasses = 11;   // 64 << 0 ... 64 << 10
constexpr int kPerClass = 64;  // blocks of one class that a thread keeps

struct SmallCache {
  std::atomic<bool> busy{false}, asked{false};
  SmallCache *next = nullptr, *previous = nullptr;
  int count[kClasses] = {};
  void* blocks[kClasses][kPerClass];

  /// Says that the thread is at work; false when it must not be.
  bool enter() noexcept {
    busy.store(true, std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);  // the processor's part is membarrier's
    if (!asked.load(std::memory_order_acquire)) [[likely]]
      return true;
    leave();
    return false;
  }
  void leave() noexcept { busy.store(false, std::memory_order_release); }
  void clear() noexcept {
    for (int c = 0; c < kClasses; ++c)
      while (count[c]) std::free(blocks[c][--count[c]]);
  }
};

/// The thread's cache. Only the pointer is thread-local: static TLS space is scarce, and the library asks for little of
/// it.
thread_local SmallCache* small_cache __attribute__((tls_model("initial-exec"))) = nullptr;

/// The caches of all threads.
struct All {
  ForkLock lock;
  SmallCache* first = nullptr;

  void add(SmallCache* cache) {
    const std::lock_guard guard(lock);
    cache->next = first;
    if (first) first->previous = cache;
    first = cache;
  }
  void remove(SmallCache* cache) {
    const std::lock_guard guard(lock);
    (cache->previous ? cache->previous->next : first) = cache->next;
    if (cache->next) cache->next->previous = cache->previous;
  }
  /// The child of a fork has one thread; what the others kept may have been under change.
  void keep_own() {
    first = small_cache;
    if (first) first->next = first->previous = nullptr;
  }
};
All& all() {
  static auto* caches = [] {
    auto* made = new All;
    pthread_atfork(nullptr, nullptr, [] { all().keep_own(); });
    return made;
  }();
  return *caches;
}

void drop_cache() noexcept {
  SmallCache* cache = std::exchange(small_cache, nullptr);
  if (!cache) return;
  all().remove(cache);
  cache->clear();
  delete cache;
}

/// Creates the thread's cache and its clean-up; null once the thread is ending, when blocks go straight to free().
[[gnu::noinline]] SmallCache* arm_cache() {
  if (!at_thread_end<drop_cache>()) return nullptr;
  small_cache = new SmallCache;
  all().add(small_cache);
  return small_cache;
}

SmallCache* cache_of_thread() { return small_cache ? small_cache : arm_cache(); }

int class_of(size_t nbytes) { return nbytes <= kAlign ? 0 : 64 - __builtin_clzll((nbytes - 1) / kAlign); }

/// A barrier on every running thread of the process; false where the system has none.
bool pass_barriers() noexcept {
#ifdef __SANITIZE_THREAD__
  return false;  // which cannot follow it
#else
  static const bool known = syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
  return known && syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0;
#endif
}

}  // namespace

void* take_small(size_t nbytes) noexcept {
  const int c = class_of(nbytes);
  SmallCache* cache = cache_of_thread();
  if (cache && cache->enter()) [[likely]] {
    void* block = cache->count[c] ? cache->blocks[c][--cache->count[c]] : nullptr;
    cache->leave();
    if (block) return block;
  }
  return std::aligned_alloc(kAlign, kAlign << c);
}

bool give_small(void* block, size_t nbytes) noexcept {
  const int c = class_of(nbytes);
  SmallCache* cache = cache_of_thread();
  if (cache && cache->enter()) [[likely]] {
    const bool kept = cache->count[c] < kPerClass;
    if (kept) cache->blocks[c][cache->count[c]++] = block;
    cache->leave();
    if (kept) return false;
  }
  std::free(block);
  return true;
}

void clear_small() noexcept {
  const std::lock_guard guard(all().lock);
  SmallCache* const own = small_cache;
  if (own) own->clear();
  for (SmallCache* cache = all().first; cache; cache = cache->next)
    if (cache != own) cache->asked.store(true, std::memory_order_release);
  const bool safe = pass_barriers();
  for (SmallCache* cache = all().first; cache; cache = cache->next) {
    if (cache == own) continue;
    while (safe && cache->busy.load(std::memory_order_acquire)) sched_yield();
    if (safe) cache->clear();
    cache->asked.store(false, std::memory_order_release);
  }
}

}  // namespace taeda::detail
