// A scope in which no signal interrupts the calling thread.
#pragma once
#include <signal.h>

namespace taeda {

/// Signals that come meanwhile are delivered afterwards, or to another thread at once.
class Quiet {
 public:
  Quiet() {
    sigset_t all;
    sigfillset(&all);
    for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT}) sigdelset(&all, fault);
    pthread_sigmask(SIG_BLOCK, &all, &before_);
  }
  ~Quiet() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  Quiet(const Quiet&) = delete;

 private:
  sigset_t before_;
};

}  // namespace taeda
