// The threads that help with long work: who takes which part of it, and how all of them wait.
#pragma once
#include <atomic>
#include <cstdint>

#include "taeda/export.h"

namespace taeda {

// Note [Sharing the cores]
// Other programs, loaders and Python threads want the same cores, so nobody waits for a thread that the system has not
// let run. The caller of a team is its part 0; other parts belong to whoever comes first: a thread of the pool, or the
// caller when it has done its own. Only a part that somebody has begun is waited for. Threads that wait look at memory
// for a while, since waking takes as long as much work, but one that finds that it was put aside meanwhile knows that
// there are others, and for some time everybody sleeps at once: the core then goes to whoever was put aside. Parts of a
// team may wait for each other (oneDNN's do). That ends because threads take parts of the oldest team first: a team of
// n parts has n - 1 threads to come, and what they do before is part of older teams.
//
// Linux wakes a thread where its waker runs as often as not, and may leave both there for long, though another core
// idles: two threads then wait for each other in slices of milliseconds. So a helper that finds itself on the caller's
// core leaves it.

/// Work in numbered parts; lives where its caller waits for it.
struct Team {
  void (*body)(void* context, int part);
  void* context;
  int parts;
  bool together = false;  // parts wait for each other: helpers that stay away from others' cores come all the same

  // The pool's own.
  std::atomic<int> next{1};             // first part that nobody has taken; changes under the pool's lock
  std::atomic<uint32_t> running{0};     // parts that other threads are at; the top bit when the caller sleeps
  std::atomic<int> arrived{0};          // at the barrier
  std::atomic<uint32_t> generation{0};  // of the barrier
  unsigned float_control = 0;           // how the caller rounds and flushes
  int cpu = -1;                         // where the caller was
  Team* following = nullptr;            // in the pool's queue
};

/// How many of so many parts can run at the same time; fewer than asked for only when the system makes no more threads.
int threads_together(int wanted);
/// Offers the parts from 1 on to the pool. The caller computes part 0 meanwhile.
void offer(Team& team);
/// A part that nobody has begun, taken by the caller; -1 when there is none.
int take_part(Team& team);
/// Nobody begins a part any more: those that are left have nothing to do.
void withdraw(Team& team);
/// Waits for the parts that others have begun. The team may go afterwards.
void wait_for(Team& team);
/// Waits inside of a part until all parts have come here.
void meet(Team& team);

/// What the calling thread is at.
struct Place {
  Team* team = nullptr;  // null outside of parts
  int part = 0, parts = 1;
};
Place& place() noexcept;

/// How many scopes keep the calling thread's work on it.
int& alone() noexcept;

/// Cores that this process may use: by affinity and by its control groups' quota, which is read once.
int process_cores();
/// Cores for work to be divided among: those, or OMP_NUM_THREADS if that is less.
int available_cores();
/// Cores that a control group's quota allows, 0 for no limit. `groups` is the text of /proc/self/cgroup,
/// `root` the folder in which the groups are mounted.
TAEDA_API double quota_cores(const char* groups, const char* root);

}  // namespace taeda
