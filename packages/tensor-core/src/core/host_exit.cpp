// Where threads stay that outlive the host's interpreter.
#include "taeda/host_exit.h"

#include <unistd.h>

#include "taeda/work.h"

namespace taeda {

std::atomic<int> threads_at_work{0};
std::atomic<bool> host_ended{false};

void leave_work() noexcept {
  threads_at_work.fetch_sub(1);
  stay_forever();
}

void stay_forever() noexcept {
  for (;;) pause();
}

}  // namespace taeda
