// Where threads stay that outlive the host's interpreter.
#include "taeda/host_exit.h"

#include <pthread.h>
#include <unistd.h>

#include "taeda/work.h"

namespace taeda {

std::atomic<int> threads_at_work{0};
std::atomic<bool> host_ended{false};

namespace {

/// A child of fork has none of the threads that were at work: its end does not wait for them.
const bool fork_handler = [] {
  pthread_atfork(nullptr, nullptr, [] { threads_at_work = 0; });
  return true;
}();

}  // namespace

void leave_work() noexcept {
  threads_at_work.fetch_sub(1);
  stay_forever();
}

void stay_forever() noexcept {
  for (;;) pause();
}

}  // namespace taeda
