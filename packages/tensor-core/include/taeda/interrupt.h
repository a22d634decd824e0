// Signals in long work: loops look from time to time whether the host language has something to run.
#pragma once
#include <algorithm>
#include <cstdint>

#include "taeda/export.h"

namespace taeda {

/// Base of what is thrown when the handler of a signal ends a call (Python's KeyboardInterrupt). A tensor that the call
/// was writing to is then partly written.
struct TAEDA_API Interrupted {
  virtual ~Interrupted();
};

/// Runs the handlers of signals that have come; throws a subclass of Interrupted when one of them raises. Set by the
/// binding, called on the process's first thread, possibly with the host lock given up.
extern TAEDA_API void (*host_signals)();

/// To be called between pieces of long work: asks the host some ten times a second, otherwise some nanoseconds.
TAEDA_API void poll_signals();

/// Scope of work that is never left half done.
class TAEDA_API Uninterrupted {
 public:
  explicit Uninterrupted(bool wanted = true) noexcept;
  ~Uninterrupted();
  Uninterrupted(const Uninterrupted&) = delete;

 private:
  bool wanted_;
  uint64_t before_;
};

/// A serial loop over [0, count) as `body(begin, end)`, with a look at signals between blocks.
template <class Body>
void in_blocks(int64_t count, const Body& body, int64_t block = int64_t(1) << 18) {
  for (int64_t i = 0; i < count; i += block) {
    if (i) poll_signals();
    body(i, std::min(count, i + block));
  }
}

/// A look at signals at some of many cheap calls: comparisons of a sort, rows of a walk.
class Patience {
 public:
  void operator()() {
    if ((++calls_ & 0xffff) == 0) [[unlikely]]
      poll_signals();
  }

 private:
  uint32_t calls_ = 0;
};

}  // namespace taeda
