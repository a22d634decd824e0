// Threads that the end of the host's interpreter finds at work.
#pragma once
#include <cxxabi.h>

#include "taeda/export.h"

namespace taeda {

/// The thread sleeps until the process is gone.
[[noreturn]] TAEDA_API void stay_forever() noexcept;

/// Runs what may wait for the host's lock: its code, or the lock itself. Python throws a daemon thread that asks for
/// the lock of an ending interpreter out by pthread_exit, which unwinds frames whose destructors need that interpreter,
/// and ends the process at a function that is noexcept. Here the thread stays instead, and nothing is unwound.
template <class Call>
decltype(auto) not_unwound(Call&& call) {
  try {
    return call();
  } catch (abi::__forced_unwind&) {
    stay_forever();
  }
}

}  // namespace taeda
