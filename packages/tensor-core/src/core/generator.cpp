// Generators: seeds, counters, the default stream of each device.
#include "taeda/generator.h"

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
  static auto* defaults = new std::array<Generator, kMaxBackends>;
  std::lock_guard guard(lock);
  Generator& slot = (*defaults)[device.backend];
  if (!slot) slot = new_generator(0x7aeda5eedull, device);
  return slot;
}

PhiloxRange reserve(const Generator& generator, uint64_t blocks) {
  const Generator chosen = generator ? generator : default_generator();
  std::lock_guard guard(chosen->lock);
  const PhiloxRange range{chosen->seed, chosen->offset};
  chosen->offset += blocks;
  return range;
}

}  // namespace taeda
