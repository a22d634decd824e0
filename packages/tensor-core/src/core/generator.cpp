// Generators: seeds, counters, the default stream of each device.
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "core/fork.h"
#include "taeda/backend.h"
#include "taeda/generator_state.h"

namespace taeda {
namespace {

/// The default generators made so far, and where those of other devices begin.
struct Defaults {
  ForkLock lock;
  std::map<std::pair<int, int>, Generator> made;
  std::optional<uint64_t> chosen;  // by the user
};
Defaults& defaults() {
  static auto* instance = new Defaults;
  return *instance;
}

/// Of the seed and offset of every generator: held for a few instructions, and free after a fork.
ForkLock& positions() {
  static auto* lock = new ForkLock;
  return *lock;
}

}  // namespace

void destroy(GeneratorImpl* generator) noexcept { delete generator; }

Generator new_generator(uint64_t seed, Device device) {
  auto* generator = new GeneratorImpl;
  generator->seed = seed;
  generator->device = device;
  return Generator::adopt(generator);
}

Generator default_generator(Device device) {
  std::lock_guard guard(defaults().lock);
  Generator& slot = defaults().made[{device.backend, device.index}];
  if (!slot) slot = new_generator(defaults().chosen.value_or(0x7aeda5eedull), device);
  return slot;
}

namespace {
/// The backend that keeps a state of its own for this generator, or null.
Backend* keeper(const Generator& generator) {
  return default_generator(generator->device) == generator ? &backend(generator->device.backend) : nullptr;
}

PhiloxRange place_of(const Generator& generator) {
  const std::lock_guard guard(positions());
  return {generator->seed, generator->offset};
}
void go_to(const Generator& generator, PhiloxRange place) {
  const std::lock_guard guard(positions());
  generator->seed = place.seed;
  generator->offset = place.offset;
}

std::vector<Generator> generators_of(BackendId id) {
  std::vector<Generator> found;
  for (int i = 0; i < backend(id).device_count(); ++i) found.push_back(default_generator(Device{id, int8_t(i)}));
  return found;
}

/// Position of a generator to come back to, as well as its device can tell.
PhiloxRange remembered(const Generator& generator) noexcept {
  try {
    return generator_position(generator);
  } catch (...) {
    return place_of(generator);
  }
}
void go_back(const Generator& generator, PhiloxRange place) noexcept {
  try {
    set_generator(generator, place.seed, place.offset);
  } catch (...) {
    go_to(generator, place);
  }
}

std::optional<uint64_t> choose(std::optional<uint64_t> seed) {
  std::lock_guard guard(defaults().lock);
  return std::exchange(defaults().chosen, seed);
}

}  // namespace

// A backend is asked without the lock: it may reserve numbers in the same generator.
void set_generator(const Generator& generator, uint64_t seed, uint64_t offset) {
  if (Backend* const own = keeper(generator)) own->random_set(generator->device, {seed, offset});
  go_to(generator, {seed, offset});
}

PhiloxRange generator_position(const Generator& generator) {
  const PhiloxRange before = place_of(generator);
  PhiloxRange place = before;
  Backend* const own = keeper(generator);
  if (!own) return place;
  own->random_get(generator->device, place);
  const std::lock_guard guard(positions());
  // Numbers that another thread has reserved meanwhile are not given out again.
  if (generator->seed == before.seed && generator->offset == before.offset) {
    generator->seed = place.seed;
    generator->offset = place.offset;
  }
  return place;
}

void seed_all(uint64_t seed) {
  const std::optional<uint64_t> before = choose(seed);  // first: a device may register meanwhile
  std::vector<std::pair<Generator, PhiloxRange>> changed;
  try {
    for (int b = 0; b < backend_count(); ++b)
      for (const Generator& generator : generators_of(BackendId(b))) {
        const PhiloxRange place = remembered(generator);
        set_generator(generator, seed, 0);
        changed.emplace_back(generator, place);
      }
  } catch (...) {
    for (const auto& [generator, place] : changed) go_back(generator, place);
    choose(before);
    throw;
  }
}

void seed_backend(BackendId id) {
  std::optional<uint64_t> seed;
  {
    std::lock_guard guard(defaults().lock);
    seed = defaults().chosen;
  }
  if (!seed) return;
  for (const Generator& generator : generators_of(id)) set_generator(generator, *seed, 0);
}

PhiloxRange reserve(const Generator& generator, uint64_t blocks) {
  const Generator chosen = generator ? generator : default_generator();
  const std::lock_guard guard(positions());
  const PhiloxRange range{chosen->seed, chosen->offset};
  chosen->offset += blocks;
  return range;
}

}  // namespace taeda
