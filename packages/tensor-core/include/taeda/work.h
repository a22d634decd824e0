// Which threads compute with the host's lock given up: the process's end waits for them.
#pragma once
#include <atomic>

#include "taeda/export.h"

namespace taeda {

/// Threads inside of kernels that have given the lock up, and those that help them.
extern TAEDA_API std::atomic<int> threads_at_work;
/// Set once the host's interpreter is gone: nobody wants results any more.
extern TAEDA_API std::atomic<bool> host_ended;

/// Leaves a kernel that nobody waits for, for good: what it uses may now be taken down.
[[noreturn]] TAEDA_API void leave_work() noexcept;

}  // namespace taeda
