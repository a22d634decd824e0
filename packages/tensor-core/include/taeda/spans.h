// What observers of a thread are told beside calls: spans of time with a name, and memory that is taken and given back.
// Where nobody observes, each of it costs one look at the thread's state.
#pragma once
#include "taeda/device.h"
#include "taeda/keys.h"

namespace taeda {

enum class SpanKind : int32_t {
  User = 0,         // a block of a program
  Backward = 1,     // the backward of one node
  Module = 2,       // the forward of a module
  Step = 3,         // a step of an optimizer
  Wait = 4,         // for data
  Function = 5,     // a function of Python
  Synchronize = 6,  // the host waits for a device
};

/// A stretch of time on one thread. Spans and calls nest.
struct Span {
  const char* name;
  SpanKind kind = SpanKind::User;
  uint64_t sequence = 0;  // of backwards: the number that the node was recorded under
};

/// Bytes of a storage: positive when they were taken, negative when they were given back.
struct MemoryUse {
  const void* data;
  int64_t bytes;
  Device device;
};

/// Whether somebody watches this thread.
inline bool observed() noexcept { return active(KeySet{}).has(Layer::Observer); }

TAEDA_API void tell_begin(const Span& span) noexcept;
TAEDA_API void tell_end(const Span& span) noexcept;
TAEDA_API void tell_memory(const MemoryUse& use) noexcept;
/// A number for work that this thread hands to a device, told to those who watch; 0 where nobody does.
TAEDA_API uint64_t tell_work() noexcept;

/// A span around a scope.
class Within {
 public:
  explicit Within(const Span& span, bool worth = true) noexcept : span_(span), told_(worth && observed()) {
    if (told_) [[unlikely]]
      tell_begin(span_);
  }
  ~Within() {
    if (told_) [[unlikely]]
      tell_end(span_);
  }
  Within(const Within&) = delete;

 private:
  Span span_;
  bool told_;
};

/// The number of the node that this thread recorded last; set by whoever records, so that observers can link a call to
/// its backward.
extern constinit thread_local uint64_t recorded_sequence TAEDA_API __attribute__((tls_model("initial-exec")));

}  // namespace taeda
