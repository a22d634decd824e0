// Number of threads, and fixed pieces that they take from each other.
#include "taeda/parallel.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>

#include "core/pool.h"
#include "taeda/error.h"
#include "taeda/interrupt.h"

namespace taeda {

HostLock host_lock;

namespace {

std::atomic<int> thread_count{0};

/// Children of fork are workers more often than not, one beside the other; set_num_threads() says otherwise.
const bool fork_handler = [] {
  pthread_atfork(nullptr, nullptr, [] { thread_count = 1; });
  return true;
}();

/// Pieces [begin, end) that one thread takes from the front and others from the back.
class Share {
 public:
  void set(uint32_t begin, uint32_t end) { range_.store(uint64_t(end) << 32 | begin, std::memory_order_relaxed); }

  int64_t front() {
    return take([](uint32_t& begin, uint32_t&) { return begin++; });
  }
  int64_t back() {
    return take([](uint32_t&, uint32_t& end) { return --end; });
  }

 private:
  template <class Which>
  int64_t take(const Which& which) {
    uint64_t range = range_.load(std::memory_order_relaxed);
    for (;;) {
      uint32_t begin = uint32_t(range), end = uint32_t(range >> 32);
      if (begin == end) return -1;
      const int64_t piece = which(begin, end);
      if (range_.compare_exchange_weak(range, uint64_t(end) << 32 | begin, std::memory_order_relaxed)) return piece;
    }
  }

  alignas(64) std::atomic<uint64_t> range_;
};

constexpr int kMostShares = 64;
constexpr int64_t kMostPieces = int64_t(1) << 31;

/// One call of parallel_pieces.
struct Region {
  int64_t count, grain;
  void (*body)(void*, int64_t, int64_t);
  void* context;
  int shares;
  Share share[kMostShares];
  std::atomic<bool> failed{false};
  std::mutex lock;
  std::exception_ptr failure;

  /// What a thread does: its own share, then what is left of others'.
  void run(int part) {
    for (int i = 0; i < shares; ++i) {
      Share& from = share[(part + i) % shares];
      const bool own = i == 0 && part < shares;
      for (int64_t p; (p = own ? from.front() : from.back()) >= 0;)
        if (!run_piece(p)) return;
    }
  }

  bool run_piece(int64_t p) {
    if (failed.load(std::memory_order_relaxed)) return false;
    try {
      poll_signals();
      body(context, p * grain, std::min(count, (p + 1) * grain));
      return true;
    } catch (...) {  // carried to the caller, who rethrows it
      std::lock_guard guard(lock);
      failure = std::current_exception();
      failed.store(true, std::memory_order_relaxed);
      return false;
    }
  }
};

void run_together(int64_t count, int64_t grain, int64_t pieces, int threads, void (*body)(void*, int64_t, int64_t),
                  void* context) {
  Region region{count, grain, body, context, std::min(threads, kMostShares)};
  for (int i = 0; i < region.shares; ++i)
    region.share[i].set(uint32_t(pieces * i / region.shares), uint32_t(pieces * (i + 1) / region.shares));
  Team team{[](void* r, int part) { static_cast<Region*>(r)->run(part); }, &region, threads};
  const Place before = place();
  offer(team);
  place() = {&team, 0, threads};
  region.run(0);
  place() = before;
  withdraw(team);
  wait_for(team);
  if (region.failure) std::rethrow_exception(region.failure);
}

}  // namespace

int num_threads() {
  int count = thread_count.load(std::memory_order_relaxed);
  if (count == 0) {
    count = available_cores();
    thread_count = count;
  }
  return count;
}

void set_num_threads(int count) {
  check(count >= 1, ErrorKind::Value, "set_num_threads: argument 'count' must be at least 1, got ", count);
  thread_count = count;
}

void parallel_pieces(int64_t count, int64_t grain, void (*body)(void*, int64_t, int64_t), void* context) {
  const int64_t pieces = (count + grain - 1) / grain;
  const int threads = int(std::min<int64_t>(num_threads(), pieces));
  if (threads > 1 && !place().team && pieces < kMostPieces)
    return run_together(count, grain, pieces, threads, body, context);
  for (int64_t p = 0; p < pieces; ++p) {
    poll_signals();
    body(context, p * grain, std::min(count, (p + 1) * grain));
  }
}

}  // namespace taeda
