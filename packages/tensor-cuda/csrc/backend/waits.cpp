// Whether waits of the host are told.
#include "backend/waits.h"

#include <atomic>

namespace taeda::cuda {
namespace {

std::atomic<Waits> mode{Waits::Silent};
std::atomic<TellOfWait> teller{nullptr};

}  // namespace

void tell_of_waits(Waits wanted, TellOfWait tell) {
  teller = tell;
  mode = wanted;
}
bool may_wait() {
  const Waits now = mode.load(std::memory_order_relaxed);
  if (now == Waits::Silent) [[likely]]
    return true;
  const TellOfWait tell = teller;
  return now == Waits::Told && (!tell || tell() == 0);
}

}  // namespace taeda::cuda
