// Generators: seeds, counters, the default stream of each device.
#include <atomic>
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
[[maybe_unused]] const auto* const made_at_load = &defaults();

/// Of new generators of the cpu.
constinit std::atomic<Engine> engine_for_new{Engine::Philox};

/// Of the seed, offset and twister of every generator: held for a few instructions, and free after a fork.
ForkLock& positions() {
  static auto* lock = new ForkLock;
  return *lock;
}
[[maybe_unused]] const auto* const positions_made_at_load = &positions();

}  // namespace

void destroy(GeneratorImpl* generator) noexcept { delete generator; }

Generator new_generator(uint64_t seed, Device device) {
  auto* generator = new GeneratorImpl;
  generator->seed = seed;
  generator->device = device;
  if (device.backend == kCPU && default_engine() == Engine::Twister)
    generator->twister = std::make_unique<Twister>(seed);
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
  return {generator->twister ? generator->twister->seed() : generator->seed, generator->offset};
}
void go_to(const Generator& generator, PhiloxRange place) {
  const std::lock_guard guard(positions());
  generator->seed = place.seed;
  generator->offset = place.offset;
  if (generator->twister) *generator->twister = Twister(place.seed);
}
Generator chosen(const Generator& generator) { return generator ? generator : default_generator(); }

std::vector<Generator> generators_of(BackendId id) {
  std::vector<Generator> found;
  for (int i = 0; i < backend(id).device_count(); ++i) found.push_back(default_generator(Device{id, int8_t(i)}));
  return found;
}

/// Position of a generator to come back to, as well as its device can tell.
struct Remembered {
  PhiloxRange place;
  std::optional<Twister> twister;
};
Remembered remembered(const Generator& generator) {
  Remembered found{place_of(generator), {}};
  try {
    found.place = generator_position(generator);
  } catch (...) {
  }
  const std::lock_guard guard(positions());
  if (generator->twister) found.twister = *generator->twister;
  return found;
}
void go_back(const Generator& generator, const Remembered& before) noexcept {
  try {
    set_generator(generator, before.place.seed, before.place.offset);
  } catch (...) {
    go_to(generator, before.place);
  }
  const std::lock_guard guard(positions());
  if (before.twister && generator->twister) *generator->twister = *before.twister;
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
  std::vector<std::pair<Generator, Remembered>> changed;
  try {
    for (int b = 0; b < backend_count(); ++b)
      for (const Generator& generator : generators_of(BackendId(b))) {
        const Remembered before_it = remembered(generator);
        set_generator(generator, seed, 0);
        changed.emplace_back(generator, before_it);
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
  const Generator source = chosen(generator);
  const std::lock_guard guard(positions());
  if (source->twister) {
    uint32_t words[2];
    source->twister->draw(words, 2);
    return {uint64_t(words[0]) << 32 | words[1], 0};
  }
  const PhiloxRange range{source->seed, source->offset};
  source->offset += blocks;
  return range;
}

bool is_twister(const Generator& generator) {
  const Generator source = chosen(generator);
  const std::lock_guard guard(positions());
  return source->twister != nullptr;
}
void draw_words(const Generator& generator, uint32_t* words, int64_t count) {
  const Generator source = chosen(generator);
  const std::lock_guard guard(positions());
  check(source->twister != nullptr, ErrorKind::Runtime, "the generator was given another engine while it drew numbers");
  source->twister->draw(words, count);
}
std::optional<double> exchange_spare(const Generator& generator, std::optional<double> left) {
  const Generator source = chosen(generator);
  const std::lock_guard guard(positions());
  return source->twister ? std::exchange(source->twister->spare, left) : std::nullopt;
}

Engine default_engine() noexcept { return engine_for_new.load(std::memory_order_relaxed); }
void set_default_engine(Engine engine) {
  engine_for_new.store(engine, std::memory_order_relaxed);
  set_engine(default_generator(), engine);
}
Engine engine_of(const Generator& generator) { return is_twister(generator) ? Engine::Twister : Engine::Philox; }
void set_engine(const Generator& generator, Engine engine) {
  const PhiloxRange place = generator_position(generator);
  auto made = engine == Engine::Twister ? std::make_unique<Twister>(place.seed) : nullptr;
  const std::lock_guard guard(positions());
  generator->twister = std::move(made);
  generator->seed = place.seed;
  generator->offset = 0;
}
std::vector<char> twister_state(const Generator& generator) {
  std::vector<char> bytes(Twister::kStateBytes);
  const std::lock_guard guard(positions());
  if (generator->twister) generator->twister->save(bytes.data());
  return bytes;
}
bool set_twister_state(const Generator& generator, const char* bytes) {
  auto made = std::make_unique<Twister>(0);
  if (!made->restore(bytes)) return false;
  const std::lock_guard guard(positions());
  generator->twister = std::move(made);
  return true;
}

}  // namespace taeda
