// What devices did, between the backends that note it and the profilers that ask.
#include <unistd.h>

#include <algorithm>
#include <map>
#include <vector>

#include "abi/bridge.h"
#include "core/fork.h"
#include "taeda/backend.h"
#include "taeda/parallel.h"
#include "taeda/spans.h"

namespace taeda::abi {
namespace {

/// A backend that notes activities.
struct Source {
  BackendId id;
  std::string name;
  taeda_backend c;
  void start(uint64_t most) const {
    const Unlocked unlocked(true);
    if (const int32_t status = c.activities_start(c.context, most); status != TAEDA_OK)
      throw_error(status, name + ": activities_start");
  }
};

/// The lock is not held while a backend is called.
struct Noting {
  ForkLock lock;
  std::vector<Source> sources;
  uint64_t most = 0;
  pid_t process = 0;  // that has started it; 0: nobody. A child of a fork has not.
  bool on() const { return process != 0 && process == getpid(); }
};
Noting& noting() {
  static auto* instance = new Noting;
  return *instance;
}
[[maybe_unused]] const auto* const made_at_load = &noting();

std::vector<Source> begin_noting(uint64_t most) {
  Noting& all = noting();
  const std::lock_guard guard(all.lock);
  check(!all.on(), ErrorKind::Runtime, "activities_start: activities are being noted for somebody else already");
  all.process = getpid();
  all.most = most;
  return all.sources;
}
std::vector<Source> end_noting() {
  Noting& all = noting();
  const std::lock_guard guard(all.lock);
  check(all.on(), ErrorKind::Runtime, "activities_stop: nobody has started to note activities");
  all.process = 0;
  return all.sources;
}

using Tell = void (*)(void*, const taeda_activity*);

/// Of all sources what they have noted; the first error comes last.
uint64_t stop_all(const std::vector<Source>& sources, Tell tell, void* to) {
  uint64_t dropped = 0;
  std::exception_ptr first;
  for (const Source& source : sources) try {
      const Unlocked unlocked(true);
      uint64_t own = 0;
      if (const int32_t status = source.c.activities_stop(source.c.context, tell, to, &own); status != TAEDA_OK)
        throw_error(status, source.name + ": activities_stop");
      dropped += own;
    } catch (...) {
      if (!first) first = std::current_exception();
    }
  if (first) std::rethrow_exception(first);
  return dropped;
}

void ignore(void*, const taeda_activity*) {}

}  // namespace

void add_activities(BackendId id, const taeda_backend& backend) {
  if (!backend.activities_start) return;
  const Source made{id, backend.name, backend};
  uint64_t most;
  {
    Noting& all = noting();
    const std::lock_guard guard(all.lock);
    all.sources.push_back(made);
    if (!all.on()) return;
    most = all.most;
  }
  made.start(most);
}

void remove_activities(BackendId id) {
  Noting& all = noting();
  const std::lock_guard guard(all.lock);
  std::erase_if(all.sources, [id](const Source& source) { return source.id == id; });
}

uint64_t activity_origin() { return tell_work(); }

int32_t activities_start(uint64_t most) {
  return guarded([&] {
    std::vector<Source> started;
    const std::vector<Source> sources = begin_noting(most);
    try {
      for (const Source& source : sources) {
        source.start(most);
        started.push_back(source);
      }
    } catch (...) {
      const std::exception_ptr failure = std::current_exception();
      end_noting();
      stop_all(started, ignore, nullptr);
      std::rethrow_exception(failure);
    }
  });
}

int32_t activities_stop(Tell tell, void* to, uint64_t* dropped) {
  return guarded([&] {
    check(tell != nullptr, ErrorKind::Value, "activities_stop: the function to tell is null");
    const uint64_t lost = stop_all(end_noting(), tell, to);
    if (dropped) *dropped = lost;
  });
}

struct BackendNames {
  ForkLock lock;
  std::map<int32_t, std::string> by_number;
};
BackendNames& backend_names = *new BackendNames;  // given out for ever

const char* backend_name(int32_t number) {
  if (number < 0 || number >= backend_count()) return nullptr;
  try {
    const std::lock_guard guard(backend_names.lock);
    return backend_names.by_number.try_emplace(number, backend(BackendId(number)).name()).first->second.c_str();
  } catch (...) {
    return nullptr;
  }
}

}  // namespace taeda::abi
