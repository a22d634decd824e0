// The CPU allocator: size-class free-lists per thread for small blocks, one bounded shared cache for large ones.
#include <atomic>
#include <cstdlib>
#include <mutex>
#include <new>
#include <unordered_map>
#include <utility>
#include <vector>

#include "taeda/backend.h"
#include "taeda/error.h"

namespace taeda {
namespace {

// Note [CPU memory]
// Blocks up to kSmall are rounded to a power of two and cached per thread without a lock: what a training step on small
// tensors frees, the next step takes. Larger blocks are rounded to pages and kept, up to a limit, in one shared cache, so
// that a loop does not fault the same pages in at every step. Everything is aligned to 64 bytes.
constexpr size_t kAlign = 64;
constexpr size_t kSmall = size_t(1) << 16;
constexpr int kClasses = 11;       // 64 << 0 ... 64 << 10
constexpr int kPerClass = 64;      // blocks of one class that a thread keeps
constexpr size_t kPage = 4096;

std::atomic<int64_t> live_bytes{0};

struct SmallCache {
  void* blocks[kClasses][kPerClass];
  int count[kClasses] = {};
  ~SmallCache() {
    for (int c = 0; c < kClasses; ++c)
      for (int i = 0; i < count[c]; ++i) std::free(blocks[c][i]);
  }
};
/// The thread's cache. Only the pointer is thread-local: static TLS space is scarce, and the library asks for little of it.
thread_local SmallCache* small_cache __attribute__((tls_model("initial-exec"))) = nullptr;

/// Creates the thread's cache and its clean-up; null once the thread is ending, when blocks go straight to free().
[[gnu::noinline]] SmallCache* arm_cache() {
  struct AtExit {
    bool gone = false;
    ~AtExit() {
      gone = true;
      delete std::exchange(small_cache, nullptr);
    }
  };
  static thread_local AtExit at_exit;
  if (!at_exit.gone) small_cache = new SmallCache;
  return small_cache;
}

SmallCache* cache_of_thread() { return small_cache ? small_cache : arm_cache(); }

int class_of(size_t nbytes) {
  return nbytes <= kAlign ? 0 : 64 - __builtin_clzll((nbytes - 1) / kAlign);
}

struct LargeCache {
  std::mutex lock;
  std::unordered_map<size_t, std::vector<void*>> free_blocks;
  size_t cached = 0;
  size_t limit = size_t(4) << 30;
};
LargeCache& large_cache() {
  static auto* cache = new LargeCache;  // never destroyed: tensors may outlive static destruction
  return *cache;
}

void* system_alloc(size_t nbytes) {
  void* block = std::aligned_alloc(kAlign, (nbytes + kAlign - 1) / kAlign * kAlign);
  if (!block) {
    empty_cpu_cache();
    block = std::aligned_alloc(kAlign, (nbytes + kAlign - 1) / kAlign * kAlign);
  }
  check(block != nullptr, ErrorKind::Memory, "cpu allocator: cannot allocate ", nbytes, " bytes; ", cpu_live_bytes(),
        " bytes are in use by tensors");
  return block;
}

size_t round_large(size_t nbytes) {
  // Coarse steps (1/16 of the size) let slightly different sizes share blocks.
  size_t step = kPage;
  while (step * 16 < nbytes) step <<= 1;
  return (nbytes + step - 1) / step * step;
}

void free_small(void* data, size_t nbytes, void*) {
  const int c = class_of(nbytes);
  live_bytes.fetch_sub(int64_t(nbytes), std::memory_order_relaxed);
  SmallCache* cache = cache_of_thread();
  if (cache && cache->count[c] < kPerClass)
    cache->blocks[c][cache->count[c]++] = data;
  else
    std::free(data);
}

void free_large(void* data, size_t nbytes, void*) {
  const size_t size = round_large(nbytes);
  live_bytes.fetch_sub(int64_t(nbytes), std::memory_order_relaxed);
  LargeCache& cache = large_cache();
  {
    std::lock_guard guard(cache.lock);
    if (cache.cached + size <= cache.limit) {
      cache.free_blocks[size].push_back(data);
      cache.cached += size;
      return;
    }
  }
  std::free(data);
}

void* take_large(size_t size) {
  LargeCache& cache = large_cache();
  {
    std::lock_guard guard(cache.lock);
    auto found = cache.free_blocks.find(size);
    if (found != cache.free_blocks.end() && !found->second.empty()) {
      void* block = found->second.back();
      found->second.pop_back();
      cache.cached -= size;
      return block;
    }
  }
  return system_alloc(size);
}

#ifdef __SANITIZE_ADDRESS__
void free_exact(void* data, size_t nbytes, void*) {
  live_bytes.fetch_sub(int64_t(nbytes), std::memory_order_relaxed);
  std::free(data);
}

/// Neither rounded nor cached: a byte beyond the end, or a use after the end of its life, must not hit memory of ours.
void allocate_exact(Storage& storage, size_t nbytes) {
  void* block = nullptr;
  if (posix_memalign(&block, kAlign, nbytes) != 0) block = nullptr;
  check(block != nullptr, ErrorKind::Memory, "cpu allocator: cannot allocate ", nbytes, " bytes; ", cpu_live_bytes(),
        " bytes are in use by tensors");
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
    const int c = class_of(nbytes);
    SmallCache* cache = cache_of_thread();
    storage.data = cache && cache->count[c] ? cache->blocks[c][--cache->count[c]] : system_alloc(kAlign << c);
    storage.release = free_small;
  } else {
    storage.data = take_large(round_large(nbytes));
    storage.release = free_large;
  }
  live_bytes.fetch_add(int64_t(nbytes), std::memory_order_relaxed);
}
void count_inline_bytes(int64_t delta) { live_bytes.fetch_add(delta, std::memory_order_relaxed); }
}  // namespace detail

size_t cpu_cached_bytes() {
  std::lock_guard guard(large_cache().lock);
  return large_cache().cached;
}
size_t cpu_live_bytes() { return size_t(live_bytes.load()); }
void set_cpu_cache_limit(size_t bytes) {
  {
    std::lock_guard guard(large_cache().lock);
    large_cache().limit = bytes;
  }
  if (cpu_cached_bytes() > bytes) empty_cpu_cache();
}
void empty_cpu_cache() {
  LargeCache& cache = large_cache();
  std::lock_guard guard(cache.lock);
  for (auto& [size, blocks] : cache.free_blocks)
    for (void* block : blocks) std::free(block);
  cache.free_blocks.clear();
  cache.cached = 0;
}

}  // namespace taeda
