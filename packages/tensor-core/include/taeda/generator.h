// Generator: a counter-based Philox 4x32-10 stream (Salmon et al., SC 2011), one per device by default; or, on the cpu
// where it is asked for, a Mersenne twister, whose numbers are PyTorch's.
#pragma once
#include <array>
#include <memory>
#include <optional>

#include "taeda/device.h"
#include "taeda/intrusive.h"
#include "taeda/twister.h"

namespace taeda {

struct GeneratorImpl : Counted {
  uint64_t seed = 0x5eed5eed5eedull;
  uint64_t offset = 0;  // in blocks of four 32-bit words
  Device device;
  std::unique_ptr<Twister> twister;  // then seed and offset stand for nothing
  void* python = nullptr;
};
TAEDA_API void destroy(GeneratorImpl*) noexcept;
using Generator = Ref<GeneratorImpl>;

TAEDA_API Generator default_generator(Device device = {});
TAEDA_API Generator new_generator(uint64_t seed, Device device = {});
/// Reserves `blocks` counter values and returns the seed and the first: kernels then fill in any order, any thread
/// count.
struct PhiloxRange {
  uint64_t seed, offset;
};
TAEDA_API PhiloxRange reserve(const Generator& generator, uint64_t blocks);

/// Whether the generator, by default the cpu's own, is a Mersenne twister. Of one, `reserve` makes each range from the
/// stream's next two words.
TAEDA_API bool is_twister(const Generator& generator);
/// The twister's next words.
TAEDA_API void draw_words(const Generator& generator, uint32_t* words, int64_t count);
/// Takes the twister's spare normal number, if there is one, and leaves another or none.
TAEDA_API std::optional<double> exchange_spare(const Generator& generator, std::optional<double> left);

/// Four random words for counter value `offset`.
inline std::array<uint32_t, 4> philox(uint64_t seed, uint64_t offset, uint64_t subsequence = 0) noexcept {
  uint32_t k0 = uint32_t(seed), k1 = uint32_t(seed >> 32);
  uint32_t c0 = uint32_t(offset), c1 = uint32_t(offset >> 32), c2 = uint32_t(subsequence),
           c3 = uint32_t(subsequence >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = uint64_t(0xD2511F53u) * c0, p1 = uint64_t(0xCD9E8D57u) * c2;
    const uint32_t n0 = uint32_t(p1 >> 32) ^ c1 ^ k0, n2 = uint32_t(p0 >> 32) ^ c3 ^ k1;
    c1 = uint32_t(p1);
    c3 = uint32_t(p0);
    c0 = n0;
    c2 = n2;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return {c0, c1, c2, c3};
}

}  // namespace taeda
