// Generators: seeds, counters, the default stream of each device.
#include "taeda/generator_state.h"

#include <map>

#include "taeda/backend.h"

namespace taeda {

void destroy(GeneratorImpl* generator) noexcept { delete generator; }

Generator new_generator(uint64_t seed, Device device) {
  auto* generator = new GeneratorImpl;
  generator->seed = seed;
  generator->device = device;
  return Generator::adopt(generator);
}

Generator default_generator(Device device) {
  static std::mutex lock;
  static auto* defaults = new std::map<std::pair<int, int>, Generator>;
  std::lock_guard guard(lock);
  Generator& slot = (*defaults)[{device.backend, device.index}];
  if (!slot) slot = new_generator(0x7aeda5eedull, device);
  return slot;
}

namespace {
/// The backend that keeps a state of its own for this generator, or null.
Backend* keeper(const Generator& generator) {
  return default_generator(generator->device) == generator ? &backend(generator->device.backend) : nullptr;
}
}  // namespace

void set_generator(const Generator& generator, uint64_t seed, uint64_t offset) {
  Backend* const own = keeper(generator);
  std::lock_guard guard(generator->lock);
  generator->seed = seed;
  generator->offset = offset;
  if (own) own->random_set(generator->device, *generator);
}

PhiloxRange generator_position(const Generator& generator) {
  Backend* const own = keeper(generator);
  std::lock_guard guard(generator->lock);
  if (own) own->random_get(generator->device, *generator);
  return {generator->seed, generator->offset};
}

PhiloxRange reserve(const Generator& generator, uint64_t blocks) {
  const Generator chosen = generator ? generator : default_generator();
  std::lock_guard guard(chosen->lock);
  const PhiloxRange range{chosen->seed, chosen->offset};
  chosen->offset += blocks;
  return range;
}

}  // namespace taeda
