// What went wrong on devices: index errors, divisions by zero and weights that are none are found by kernels, and told
// at the next wait.
#include "backend/trouble.h"

#include <array>
#include <atomic>
#include <map>
#include <mutex>
#include <new>
#include <string>

#include "backend/machine.h"
#include "ops/call.h"

namespace taeda::cuda {
namespace {

constexpr size_t kMost = 128;
std::array<std::atomic<Trouble*>, kMost> troubles;
std::mutex lock;
// What was found out beside the device's work.
std::atomic<bool> any_later = false;
auto& later = *new std::map<int, std::string>;  // threads may wait while the process ends

/// See Weights::check.
std::string weights_text(const Trouble& trouble) {
  const std::string found = std::to_string(trouble.found);
  if (trouble.limit < 0)
    return "argument 'self' must hold finite, non-negative weights: those of row " + found + " are not";
  if (trouble.limit == 0) return "argument 'self' has a row whose weights sum up to 0: row " + found;
  return "cannot draw " + std::to_string(trouble.limit) + " samples without replacement from " + found +
         " non-zero weights";
}
std::string text_of(const Trouble& trouble) {
  const std::string name = operation_name(trouble.kernel);
  switch (trouble.status) {
    case TAEDA_E_INDEX:
      return name + ": index " + std::to_string(trouble.found) + " is out of range for size " +
             std::to_string(trouble.limit);
    case TAEDA_E_RUNTIME: return name + ": " + weights_text(trouble);
    case TAEDA_E_VALUE:  // see DescribeBags
      return name + ": argument 'offsets' has " + std::to_string(trouble.found) +
             ", expected 0 and then numbers that do not fall, up to the " + std::to_string(trouble.limit) + " indices";
    case TAEDA_E_ZERO_DIVISION: return name + ": integer division by zero";
    default:
      return name + ": found " + std::to_string(trouble.found) + ", expected less than " +
             std::to_string(trouble.limit);
  }
}

}  // namespace

Trouble* trouble_of(int device) {
  std::atomic<Trouble*>& place = troubles[size_t(device)];
  if (Trouble* found = place.load(std::memory_order_acquire)) return found;
  const std::lock_guard held(lock);
  if (Trouble* found = place.load(std::memory_order_acquire)) return found;
  void* data = nullptr;
  if (own_machine()->driver().allocate_pinned(sizeof(Trouble), data) != Status::Ok) throw std::bad_alloc();
  Trouble* const made = new (data) Trouble{};
  place.store(made, std::memory_order_release);
  return made;
}
void fail_later(int device, const std::string& text) {
  const std::lock_guard held(lock);
  later.emplace(device, text);
  any_later = true;
}
int32_t trouble_found(int device) {
  if (any_later.load(std::memory_order_relaxed)) {
    const std::lock_guard held(lock);
    const auto found = later.extract(device);
    any_later = !later.empty();
    if (!found.empty()) return api->set_error(TAEDA_E_RUNTIME, found.mapped().c_str());
  }
  Trouble* const found = troubles[size_t(device)].load(std::memory_order_acquire);
  if (!found) return TAEDA_OK;
  std::atomic_ref<uint32_t> state(found->state);
  if (state.load(std::memory_order_acquire) != 2) return TAEDA_OK;
  const std::lock_guard held(lock);
  if (state.load(std::memory_order_acquire) != 2) return TAEDA_OK;
  const Trouble copy = *found;
  state.store(0, std::memory_order_release);
  return api->set_error(copy.status, text_of(copy).c_str());
}
int32_t trouble_found() {
  for (size_t i = 0; i < kMost; ++i)
    if (const int32_t status = trouble_found(int(i)); status != TAEDA_OK) return status;
  return TAEDA_OK;
}

}  // namespace taeda::cuda
