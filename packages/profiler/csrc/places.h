// Threads of Python join a recording.
#pragma once
#include "recorder.h"

namespace profiler {

/// All other threads of Python join at the next thing that they do in Python. Needs Python's lock.
void invite(const std::shared_ptr<Session>& session);
/// Those that have done nothing since will not.
void invite_no_more() noexcept;

}  // namespace profiler
