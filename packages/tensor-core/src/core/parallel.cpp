// The OpenMP pool: thread count, fork safety, fixed pieces.
#include "taeda/parallel.h"

#include <omp.h>
#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>

#include "taeda/error.h"
#include "taeda/interrupt.h"
#include "taeda/work.h"

namespace taeda {

HostLock host_lock;

namespace {

int available_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  const int by_affinity = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
  return std::max(1, std::min(by_affinity, omp_get_max_threads()));
}

std::atomic<int> thread_count{0};
/// libgomp's pool does not survive fork(): a child computes serially.
std::atomic<bool> forked{false};
const bool fork_handler = [] {
  pthread_atfork(nullptr, nullptr, [] {
    forked = true;
    omp_set_num_threads(1);
  });
  return true;
}();

}  // namespace

int num_threads() {
  if (forked.load(std::memory_order_relaxed)) return 1;
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
  omp_set_num_threads(count);
}

void parallel_pieces(int64_t count, int64_t grain, void (*body)(void*, int64_t, int64_t), void* context) {
  const int64_t pieces = (count + grain - 1) / grain;
  const int threads = int(std::min<int64_t>(num_threads(), pieces));
  if (threads <= 1 || omp_in_parallel()) {
    for (int64_t p = 0; p < pieces; ++p) {
      poll_signals();
      body(context, p * grain, std::min(count, (p + 1) * grain));
    }
    return;
  }
  std::exception_ptr failure;
  std::atomic<bool> failed{false};
  std::mutex lock;
  threads_at_work.fetch_add(threads - 1);
#pragma omp parallel num_threads(threads)
  {
#pragma omp for schedule(static) nowait
    for (int64_t p = 0; p < pieces; ++p) {
      if (failed.load(std::memory_order_relaxed)) continue;
      try {
        poll_signals();
        body(context, p * grain, std::min(count, (p + 1) * grain));
      } catch (...) {  // carried out of the parallel region, rethrown below
        std::lock_guard guard(lock);
        failure = std::current_exception();
        failed.store(true, std::memory_order_relaxed);
      }
    }
    if (omp_get_thread_num() > 0) threads_at_work.fetch_sub(1);
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace taeda
