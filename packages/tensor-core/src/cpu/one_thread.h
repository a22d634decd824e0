// A scope in which parallel code called from this thread stays on it.
#pragma once
#include "core/pool.h"

namespace taeda::cpu {

/// Vendor routines then neither use other threads nor split sums by their number.
class OneThread {
 public:
  OneThread() { ++alone(); }
  ~OneThread() { --alone(); }
  OneThread(const OneThread&) = delete;
};

}  // namespace taeda::cpu
