// The CPU allocator: small blocks by thread, large ones from one bounded cache, and when memory goes back to the
// system.
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>

#include "core/block_cache.h"
#include "core/small_cache.h"
#include "taeda/backend.h"
#include "taeda/error.h"
#include "taeda/exported.h"

namespace taeda {
namespace {

// Note [CPU memory]
// Blocks up to kSmall are rounded to a power of two and cached per thread without a lock: what a training step on small
// tensors frees, the next step takes. Larger blocks are rounded to pages and kept in one shared cache (Note [How much
// is kept]), so that a loop does not fault the same pages in at every step. Everything is aligned to 64 bytes.
constexpr size_t kAlign = 64;
constexpr size_t kPage = 4096;
constexpr size_t kWorthwhile = size_t(64) << 20;  // less than this is not given back by itself

std::atomic<int64_t> live_bytes{0};

detail::BlockCache& large_cache() {
  static auto* cache = new detail::BlockCache;  // never destroyed: tensors may outlive static destruction
  return *cache;
}
[[maybe_unused]] const auto* const made_at_load = &large_cache();

[[noreturn]] void no_memory(size_t nbytes) {
  // The first words are those by which programs tell this error from others.
  fail(ErrorKind::Memory, "DefaultCPUAllocator: can't allocate memory: you tried to allocate ", nbytes, " bytes; ",
       cpu_live_bytes(), " bytes are in use by tensors");
}

size_t round_large(size_t nbytes) {
  // Coarse steps (1/16 of the size) let slightly different sizes share blocks.
  size_t step = kPage;
  while (step * 16 < nbytes) step <<= 1;
  return (nbytes + step - 1) / step * step;
}

/// A thread that lives while much is kept, and gives it back when nobody has used it for some seconds.
class Janitor {
 public:
  /// Called when much is kept.
  void call() noexcept {
    if (!at_work_.load(std::memory_order_relaxed) && !at_work_.exchange(true)) start();
  }
  /// A small block went back to the heap, which keeps it for the process.
  void spill(size_t nbytes) noexcept {
    if (spilled_.fetch_add(nbytes, std::memory_order_relaxed) + nbytes > kWorthwhile) call();
  }
  /// All spilled blocks are given back.
  void forget() noexcept { spilled_ = 0; }

 private:
  static constexpr int kQuietSeconds = 4;

  static void end_in_child() noexcept;
  void start() noexcept {
    static const bool handled = pthread_atfork(nullptr, nullptr, &Janitor::end_in_child) == 0;
    (void)handled;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);  // signals are for the program's own threads
    pthread_t thread;
    if (pthread_create(
            &thread, &attributes,
            [](void* self) -> void* {
              static_cast<Janitor*>(self)->work();
              return nullptr;
            },
            this) != 0)
      at_work_ = false;
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    pthread_attr_destroy(&attributes);
  }
  void work() noexcept {
    uint64_t last = 0;
    for (int quiet = 0; quiet < kQuietSeconds;) {
      sleep(1);
      const uint64_t now = large_cache().uses() + spilled_.load(std::memory_order_relaxed);
      quiet = now == last ? quiet + 1 : 0;
      last = now;
    }
    at_work_ = false;
    empty_cpu_cache();
  }

  std::atomic<bool> at_work_{false};
  std::atomic<size_t> spilled_{0};
};
constinit Janitor janitor;
void Janitor::end_in_child() noexcept { janitor.at_work_ = false; }

void free_small(void* data, size_t nbytes, void*) {
  live_bytes.fetch_sub(int64_t(nbytes), std::memory_order_relaxed);
  if (detail::give_small(data, nbytes)) [[unlikely]]
    janitor.spill(nbytes);
}
void free_large(void* data, size_t nbytes, void*) {
  live_bytes.fetch_sub(int64_t(nbytes), std::memory_order_relaxed);
  if (large_cache().give(data, round_large(nbytes)) > kWorthwhile) janitor.call();
}

void* make_small(size_t nbytes) {
  void* block = detail::take_small(nbytes);
  if (!block) [[unlikely]] {
    empty_cpu_cache();
    block = detail::take_small(nbytes);
    if (!block) no_memory(nbytes);
  }
  return block;
}
void* make_large(size_t nbytes) {
  const size_t size = round_large(nbytes);
  void* block = large_cache().take(size);
  if (!block) block = detail::BlockCache::make(size);
  if (!block) [[unlikely]] {
    empty_cpu_cache();
    block = detail::BlockCache::make(size);
    if (!block) {
      large_cache().fail(size);
      no_memory(nbytes);
    }
  }
  return block;
}

#ifdef __SANITIZE_ADDRESS__
void free_exact(void* data, size_t nbytes, void*) {
  live_bytes.fetch_sub(int64_t(nbytes), std::memory_order_relaxed);
  std::free(data);
}

/// Neither rounded nor cached: a byte beyond the end, or a use after the end of its life, must not hit memory of ours.
void allocate_exact(Storage& storage, size_t nbytes) {
  void* block = nullptr;
  if (posix_memalign(&block, kAlign, nbytes) != 0) no_memory(nbytes);
  storage.data = block;
  storage.release = free_exact;
  live_bytes.fetch_add(int64_t(nbytes), std::memory_order_relaxed);
}
#endif

}  // namespace

namespace detail {
void cpu_allocate(Storage& storage, size_t nbytes) {
#ifdef __SANITIZE_ADDRESS__
  allocate_exact(storage, nbytes);
  return;
#endif
  if (nbytes <= kSmall) {
    storage.data = make_small(nbytes);
    storage.release = free_small;
  } else {
    storage.data = make_large(nbytes);
    storage.release = free_large;
  }
  live_bytes.fetch_add(int64_t(nbytes), std::memory_order_relaxed);
}
void cpu_release(void* data, size_t nbytes) noexcept {
#ifdef __SANITIZE_ADDRESS__
  return free_exact(data, nbytes, nullptr);
#endif
  (nbytes <= kSmall ? free_small : free_large)(data, nbytes, nullptr);
}
void cpu_discard(const Storage& storage, size_t kept) noexcept {
  if (origin_of(storage).release != free_large) return;
  const auto begin = (reinterpret_cast<uintptr_t>(storage.data) + kept + kPage - 1) / kPage * kPage;
  const auto end = (reinterpret_cast<uintptr_t>(storage.data) + storage.nbytes) / kPage * kPage;
  if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}
void count_inline_bytes(int64_t delta) { live_bytes.fetch_add(delta, std::memory_order_relaxed); }
}  // namespace detail

size_t cpu_cached_bytes() { return large_cache().cached(); }
size_t cpu_live_bytes() { return size_t(live_bytes.load()); }
void set_cpu_cache_limit(size_t bytes) { large_cache().set_limit(bytes); }
void empty_cpu_cache() {
  janitor.forget();
  large_cache().clear();
  detail::clear_small();
  malloc_trim(0);  // the heap keeps what was freed between blocks that live
}

}  // namespace taeda
