// When a thread looks at signals: the process's first thread alone, at intervals of the processor's clock.
#include "taeda/interrupt.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/ticks.h"
#include "taeda/work.h"

namespace taeda {

void (*host_signals)() = nullptr;

Interrupted::~Interrupted() = default;

namespace {

constexpr uint64_t kNever = ~uint64_t(0);

// Note [Looking at signals]
// The host's handlers need its lock, so a long kernel cannot look at every piece. It reads the processor's clock, which
// costs no system call, and takes the lock some ten times a second. Only the thread that the process began with looks
// (in a child of fork, the one that forked): others never run handlers and are left alone after their first question.
constexpr uint64_t kInterval = 100 * kTicksPerMillisecond;

constinit thread_local uint64_t next_look __attribute__((tls_model("initial-exec"))) = 0;

const bool fork_handler = [] {
  pthread_atfork(nullptr, nullptr, [] { next_look = 0; });
  return true;
}();

bool first_thread() noexcept { return syscall(SYS_gettid) == getpid(); }

[[gnu::noinline]] void look(uint64_t now) {
  next_look = first_thread() ? now + kInterval : kNever;
  if (next_look != kNever && host_signals) host_signals();
}

}  // namespace

void poll_signals() {
  if (host_ended.load(std::memory_order_relaxed)) [[unlikely]]
    leave_work();
  if (const uint64_t now = ticks(); now >= next_look) [[unlikely]]
    look(now);
}

Uninterrupted::Uninterrupted(bool wanted) noexcept : wanted_(wanted), before_(next_look) {
  if (wanted_) next_look = kNever;
}
Uninterrupted::~Uninterrupted() {
  if (wanted_) next_look = before_;
}

}  // namespace taeda
