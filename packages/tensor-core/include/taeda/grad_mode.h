// Whether gradients are recorded: the thread's switch and the autograd layer, which go together.
#pragma once
#include "taeda/keys.h"

namespace taeda {

/// Recording of gradients, and with it the autograd layer, on or off for a scope; both go back to what they were,
/// whatever the scope's code has switched.
class GradMode {
 public:
  explicit GradMode(bool record) noexcept : enabled_(thread_state.grad_enabled), excluded_(thread_state.excluded) {
    set(record);
  }
  ~GradMode() {
    thread_state.grad_enabled = enabled_;
    restore_excluded(excluded_);  // last: its fence holds the store above as well
  }
  GradMode(const GradMode&) = delete;
  static void set(bool record) noexcept {
    constexpr uint64_t bit = KeySet::of(Layer::Autograd).bits();
    thread_state.grad_enabled = record;
    thread_state.excluded = record ? thread_state.excluded & ~bit : thread_state.excluded | bit;
  }

 private:
  bool enabled_;
  uint64_t excluded_;
};

}  // namespace taeda
