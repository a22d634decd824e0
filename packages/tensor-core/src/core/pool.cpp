// The pool's threads: a queue of teams, waiting by looking and by sleeping, children of fork.
#include "core/pool.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <mutex>
#include <new>

#include "core/quiet.h"
#include "core/ticks.h"
#include "taeda/work.h"

namespace taeda {

namespace {

constinit thread_local Place here __attribute__((tls_model("initial-exec")));
constinit thread_local int alone_here __attribute__((tls_model("initial-exec"))) = 0;

constexpr uint32_t kCallerSleeps = uint32_t(1) << 31;
// How long threads look before they sleep, in peace and in company: helpers for their next part, callers for the last
// one of others. A look that took longer than kPause was none but a time in which others ran; so will they for some
// times as long.
constexpr uint64_t kInPeace = 3 * kTicksPerMillisecond / 2, kHelperInCompany = kTicksPerMillisecond / 30,
                   kCallerInCompany = kTicksPerMillisecond / 200, kPause = kTicksPerMillisecond / 10, kMemory = 12,
                   kLongestMemory = 100 * kTicksPerMillisecond, kCallersMemory = 50 * kTicksPerMillisecond;

void pause_briefly() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

constexpr long kMillisecond = 1'000'000;  // in nanoseconds

/// Sleeps until it is woken, for the given number of nanoseconds at most (0: for ever).
void sleep_while(std::atomic<uint32_t>& word, uint32_t value, long longest = 0) {
  const timespec limit{longest / 1'000'000'000, longest % 1'000'000'000};
  syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, value, longest == 0 ? nullptr : &limit, nullptr, 0);
}
void wake(std::atomic<uint32_t>* word, int count) {
  syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, count, nullptr, nullptr, 0);
}

#if defined(__x86_64__)
unsigned float_control() noexcept { return __builtin_ia32_stmxcsr() & ~0x3fu; }  // without what has happened
void set_float_control(unsigned value) noexcept { __builtin_ia32_ldmxcsr(value); }
#else
unsigned float_control() noexcept { return 0; }
void set_float_control(unsigned) noexcept {}
#endif

long nanoseconds(clockid_t clock) noexcept {
  timespec now;
  clock_gettime(clock, &now);
  return now.tv_sec * 1'000'000'000 + now.tv_nsec;
}

/// Keeps the calling thread, a helper, off its caller's core.
class Elsewhere {
 public:
  /// Leaves that core, though not again and again: whoever shares it may have no other.
  void leave(int caller) noexcept {
    caller_ = caller;
    if (sched_getcpu() != caller || ticks() < next_) return;
    next_ = ticks() + 2 * kTicksPerMillisecond;
    if (forbid()) allow();
  }

  /// Has the thread wake on another core. False when it may only be on this one.
  bool forbid() noexcept {
    if (caller_ < 0 || caller_ >= CPU_SETSIZE || sched_getaffinity(0, sizeof all_, &all_) != 0) return false;
    others_ = all_;
    CPU_CLR(caller_, &others_);
    return CPU_COUNT(&others_) > 0 && !CPU_EQUAL(&others_, &all_) &&
           sched_setaffinity(0, sizeof others_, &others_) == 0;
  }

  /// The thread may be everywhere again, unless somebody else has decided that meanwhile.
  void allow() noexcept {
    cpu_set_t found;
    if (sched_getaffinity(0, sizeof found, &found) == 0 && CPU_EQUAL(&found, &others_))
      sched_setaffinity(0, sizeof all_, &all_);
  }

 private:
  int caller_ = -1;
  uint64_t next_ = 0;
  cpu_set_t all_, others_;
};

/// How much of the time in which it wanted a core a thread had one, and how many cores its process had then.
class Attendance {
 public:
  /// Goes on after a sleep.
  void begin() {
    looked_ = ticks();
    from_ = now();
  }

  /// For how many nanoseconds the thread had better stay away, since others have its core; 0 when it is its own.
  /// `callers`: whether several threads have offered work at the same time.
  long away(bool callers) {
    if (ticks() - looked_ < kTicksPerMillisecond / 2) return 0;  // asking the system takes long
    looked_ = ticks();
    const Times at = now();
    wanted_ += at.passed - from_.passed;
    had_ += at.computed - from_.computed;
    process_had_ += at.process - from_.process;
    from_ = at;
    if (wanted_ < 8 * kMillisecond) return 0;
    // Threads of this very process may have the core. If they are callers, each does its own work best. Those of
    // another OpenMP library look for work for some milliseconds after their last region, and nobody computes faster
    // for our staying away from them.
    const bool by_others = callers || process_had_ < wanted_ / 10 * 9 * process_cores();
    const bool enough = had_ >= wanted_ / 4 * 3;
    wanted_ = had_ = process_had_ = 0;
    if (enough) span_ = 0;
    if (enough || !by_others) return 0;
    // Who comes back to find the same stays longer each time. Others that come and go, as a loader's workers do, which
    // read a batch for each step, are met anew each time.
    const bool again = span_ > 0 && at.passed - last_ < 2 * span_ + 100 * kMillisecond;
    span_ = again ? std::min(2 * span_, 400 * kMillisecond) : 15 * kMillisecond;
    last_ = at.passed;
    return span_;
  }

 private:
  struct Times {
    long passed, computed, process;
  };
  static Times now() noexcept {
    return {nanoseconds(CLOCK_MONOTONIC), nanoseconds(CLOCK_THREAD_CPUTIME_ID), nanoseconds(CLOCK_PROCESS_CPUTIME_ID)};
  }

  Times from_ = now();
  uint64_t looked_ = ticks();
  long wanted_ = 0, had_ = 0, process_had_ = 0, span_ = 0, last_ = 0;  // span_: 0 once the core was the thread's own
};

class Pool {
 public:
  void offer(Team& team) {
    team.float_control = float_control();
    team.cpu = sched_getcpu();
    {
      Guard guard(lock_);
      start_threads(team.parts - 1);
      if (first_) callers_until_.store(ticks() + kCallersMemory, std::memory_order_relaxed);
      *end_ = &team;
      end_ = &team.following;
    }
    published_.fetch_add(1);
    if (sleeping_.load() > 0) wake(&published_, team.parts - 1);
    if (team.together) call(team);
  }

  /// Fetches helpers that stay away, too, where the others do not suffice.
  void call(Team& team) {
    called_.fetch_add(1);
    if (threads_.load() - away_.load() < team.parts - 1) wake(&called_, team.parts - 1);
  }

  /// The parts of a team turn out to wait for each other.
  void gather(Team& team) {
    {
      Guard guard(lock_);
      if (team.together) return;
      team.together = true;
    }
    call(team);
  }

  /// Threads that there are, after `wanted` were asked for.
  int start(int wanted) {
    if (const int there = threads_.load(std::memory_order_relaxed); there >= wanted) return there;
    Guard guard(lock_);
    return start_threads(wanted);
  }

  int take(Team& team) {
    if (team.next.load(std::memory_order_acquire) == team.parts) return -1;
    Guard guard(lock_);
    return next_of(team);
  }

  void withdraw(Team& team) {
    if (team.next.load(std::memory_order_acquire) == team.parts) return;
    Guard guard(lock_);
    if (team.next.load(std::memory_order_relaxed) == team.parts) return;
    team.next.store(team.parts, std::memory_order_relaxed);
    unlink(team);
  }

  /// Whether threads were put aside lately.
  bool in_company() const { return ticks() < company_until_.load(std::memory_order_relaxed); }

  /// Whether a caller lately found work of another one still to be taken.
  bool several_callers() const { return ticks() < callers_until_.load(std::memory_order_relaxed); }

  /// Looks until `done`, for as long as it is worth it; says whether it is.
  template <class Done>
  bool look(uint64_t in_company, const Done& done) {
    uint64_t before = ticks();
    const uint64_t end = before + (this->in_company() ? in_company : kInPeace);
    for (;;) {
      for (int i = 0; i < 8; ++i) {
        if (done()) return true;
        pause_briefly();
      }
      const uint64_t now = ticks();
      if (now - before > kPause) {
        company_until_.store(now + std::min(kMemory * (now - before), kLongestMemory), std::memory_order_relaxed);
        return done();
      }
      if (now > end) return false;
      before = now;
    }
  }

  /// The only thread of a child of fork is the one that forked.
  void begin_anew() { new (this) Pool; }

 private:
  /// Held for some nanoseconds; sleeping for it would take a thousand times as long.
  class Guard {
   public:
    explicit Guard(std::mutex& lock) : lock_(lock) {
      for (int i = 0; i < 100; ++i) {
        if (lock_.try_lock()) return;
        pause_briefly();
      }
      lock_.lock();
    }
    ~Guard() { lock_.unlock(); }
    Guard(const Guard&) = delete;

   private:
    std::mutex& lock_;
  };

  int next_of(Team& team) {
    const int part = team.next.load(std::memory_order_relaxed);
    if (part == team.parts) return -1;
    team.next.store(part + 1, std::memory_order_release);
    if (part + 1 == team.parts) unlink(team);
    return part;
  }

  void unlink(Team& team) {
    Team** link = &first_;
    while (*link != &team) link = &(*link)->following;
    *link = team.following;
    if (end_ == &team.following) end_ = link;
  }

  int start_threads(int wanted) {
    while (threads_.load(std::memory_order_relaxed) < wanted && start_thread()) {
    }
    return threads_.load(std::memory_order_relaxed);
  }

  bool start_thread() {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    const Quiet quiet;  // which the new thread inherits: signals are for the program's threads
    pthread_t thread;
    const bool made = pthread_create(
                          &thread, &attributes,
                          [](void* pool) -> void* {
                            static_cast<Pool*>(pool)->help();
                            return nullptr;
                          },
                          this) == 0;
    pthread_attr_destroy(&attributes);
    threads_.fetch_add(made, std::memory_order_relaxed);
    return made;
  }

  /// What a thread of the pool does all its life.
  [[noreturn]] void help() {
    Elsewhere elsewhere;
    for (Attendance attendance;;) {
      const uint32_t seen = published_.load();
      const bool helped = help_one(elsewhere, false);
      if (const long away = attendance.away(several_callers()); away > 0) {
        stay_away(elsewhere, away);
        attendance.begin();
        continue;
      }
      if (helped || look(kHelperInCompany, [&] { return published_.load(std::memory_order_acquire) != seen; }))
        continue;
      const bool moves = !in_company() && elsewhere.forbid();
      sleeping_.fetch_add(1);
      sleep_while(published_, seen);
      sleeping_.fetch_sub(1);
      if (moves) elsewhere.allow();
      attendance.begin();
    }
  }

  /// For some nanoseconds helps only where it is needed.
  void stay_away(Elsewhere& elsewhere, long duration) {
    away_.fetch_add(1);
    const long end = nanoseconds(CLOCK_MONOTONIC) + duration;
    for (long left = duration; left > 0; left = end - nanoseconds(CLOCK_MONOTONIC)) {
      const uint32_t seen = called_.load();
      if (!help_one(elsewhere, true)) sleep_while(called_, seen, left);
    }
    away_.fetch_sub(1);
  }

  /// Takes a part of the oldest team, or of the oldest whose parts wait for each other.
  bool help_one(Elsewhere& elsewhere, bool together) {
    Team* team;
    int part;
    {
      Guard guard(lock_);
      team = first_;
      while (team && together && !team->together) team = team->following;
      if (!team) return false;
      team->running.fetch_add(1, std::memory_order_relaxed);  // before the caller can see that no part is left
      part = next_of(*team);
    }
    threads_at_work.fetch_add(1);
    if (host_ended) leave_work();
    elsewhere.leave(team->cpu);
    if (team->float_control != float_control()) set_float_control(team->float_control);
    here = {team, part, team->parts};
    team->body(team->context, part);
    here = {};
    threads_at_work.fetch_sub(1);
    std::atomic<uint32_t>* const running = &team->running;
    if (running->fetch_sub(1, std::memory_order_acq_rel) == kCallerSleeps + 1) wake(running, 1);
    return true;
  }

  std::mutex lock_;
  Team* first_ = nullptr;  // with parts to take, the oldest first
  Team** end_ = &first_;
  std::atomic<int> threads_{0};  // changes under the lock
  std::atomic<uint32_t> published_{0};
  std::atomic<uint32_t> called_{0};  // teams that need all their threads
  std::atomic<int> sleeping_{0}, away_{0};
  std::atomic<uint64_t> company_until_{0}, callers_until_{0};
};

Pool& pool() {
  static auto* only = new Pool;  // its threads outlive static destruction
  return *only;
}

const bool fork_handler = [] {
  pool();  // Note [Locks and fork]
  pthread_atfork(nullptr, nullptr, [] {
    pool().begin_anew();
    here = {};
  });
  return true;
}();

}  // namespace

int threads_together(int wanted) { return std::min(wanted, pool().start(wanted - 1) + 1); }
void offer(Team& team) { pool().offer(team); }
int take_part(Team& team) { return pool().take(team); }
void withdraw(Team& team) { pool().withdraw(team); }

void wait_for(Team& team) {
  while (!pool().look(kCallerInCompany, [&] { return team.running.load(std::memory_order_acquire) == 0; })) {
    const uint32_t left = team.running.fetch_or(kCallerSleeps, std::memory_order_acq_rel) | kCallerSleeps;
    if (left != kCallerSleeps) sleep_while(team.running, left, 50 * kMillisecond);
    team.running.fetch_and(~kCallerSleeps, std::memory_order_acq_rel);
    // A thread that has left its part for good never ends it.
    if (host_ended.load(std::memory_order_relaxed)) leave_work();
  }
}

void meet(Team& team) {
  const uint32_t generation = team.generation.load(std::memory_order_acquire);
  if (team.arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == team.parts) {
    team.arrived.store(0, std::memory_order_relaxed);
    team.generation.fetch_add(1, std::memory_order_acq_rel);
    wake(&team.generation, team.parts);
    return;
  }
  pool().gather(team);
  const auto passed = [&] { return team.generation.load(std::memory_order_acquire) != generation; };
  while (!pool().look(kCallerInCompany, passed)) sleep_while(team.generation, generation);
}

Place& place() noexcept { return here; }
int& alone() noexcept { return alone_here; }

}  // namespace taeda
