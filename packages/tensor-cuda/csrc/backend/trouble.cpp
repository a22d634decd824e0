// What went wrong on devices: index errors, divisions by zero and weights that are none are found by kernels, and told
// at the next wait.
#include "backend/trouble.h"

#include <array>
#include <atomic>
#include <bit>
#include <map>
#include <mutex>
#include <new>
#include <sstream>
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

int32_t status_of(Wrong what) {
  switch (what) {
    case Wrong::Index: return TAEDA_E_INDEX;
    case Wrong::Zero: return TAEDA_E_ZERO_DIVISION;
    default: return TAEDA_E_RUNTIME;
  }
}
/// As the core writes numbers.
std::string number_text(int64_t bits) {
  std::ostringstream text;
  text << std::bit_cast<double>(bits);
  return text.str();
}
std::string text_of(const Trouble& trouble) {
  const std::string found = std::to_string(trouble.found), limit = std::to_string(trouble.limit),
                    last = std::to_string(trouble.limit - 1);
  const auto told = [&]() -> std::string {
    switch (trouble.what) {
      case Wrong::Index: return "index " + found + " is out of range for size " + limit;
      case Wrong::Zero: return "integer division by zero";
      case Wrong::Weights:
        return "argument 'self' must hold finite, non-negative weights: those of row " + found + " are not";
      case Wrong::NoWeights: return "argument 'self' has a row whose weights sum up to 0: row " + found;
      case Wrong::Offsets:
        return "argument 'offsets' has " + found + ", expected 0 and then numbers that do not fall, up to the " +
               limit + " indices";
      case Wrong::Pivots:
        return "argument 'pivots' has " + found + ", expected numbers from 1 to " + limit +
               ", as linalg.lu_factor gives them";
      case Wrong::InputLength:
        return "argument 'input_lengths' has " + found + ", expected 0 to " + last + ", the steps of 'log_probs'";
      case Wrong::TargetLength:
        return "argument 'target_lengths' has " + found + ", expected 0 to " + last + ", the length of 'targets'";
      case Wrong::Label: return "argument 'targets' has " + found + ", expected one of the classes, 0 to " + last;
      case Wrong::Probability:
        return "argument 'input' has " + number_text(trouble.found) + ", expected values between 0 and 1";
      case Wrong::TargetProbability:
        return "argument 'target' has " + number_text(trouble.found) +
               ", expected values between 0 and 1: all elements of target should be between 0 and 1";
      case Wrong::Rate: return "argument 'self' must not be negative, found " + number_text(trouble.found);
    }
    return "something that it does not know";
  };
  const std::string name = operation_name(trouble.kernel);
  return (name == "bce_loss" ? "binary_cross_entropy" : name) + ": " + told();
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
  return api->set_error(status_of(copy.what), text_of(copy).c_str());
}
int32_t trouble_found() {
  for (size_t i = 0; i < kMost; ++i)
    if (const int32_t status = trouble_found(int(i)); status != TAEDA_OK) return status;
  return TAEDA_OK;
}

}  // namespace taeda::cuda
