// MT19937: seeding, renewal of the state, tempering; saved states.
#include "taeda/twister.h"

#include <cstring>

namespace taeda {
namespace {

constexpr int kMiddle = 397;

uint32_t twisted(uint32_t high, uint32_t low) {
  const uint32_t joined = (high & 0x80000000u) | (low & 0x7fffffffu);
  return joined >> 1 ^ (low & 1 ? 0x9908b0dfu : 0);
}
uint32_t tempered(uint32_t y) {
  y ^= y >> 11;
  y ^= y << 7 & 0x9d2c5680u;
  y ^= y << 15 & 0xefc60000u;
  return y ^ y >> 18;
}

/// A state as PyTorch lays it out in memory.
struct Saved {
  uint64_t seed;
  int32_t left;  // words before the state is renewed, counting the one after the last
  int32_t seeded;
  uint64_t next;
  uint64_t words[624];
  double unused_before, spare, unused_behind;
  int32_t has_spare, padding;
  float single_spare;
  int32_t has_single_spare;
};
static_assert(sizeof(Saved) == Twister::kStateBytes);

}  // namespace

Twister::Twister(uint64_t seed) noexcept : seed_(seed) {
  state_[0] = uint32_t(seed);
  for (uint32_t i = 1; i < kWords; ++i) state_[i] = 1812433253u * (state_[i - 1] ^ state_[i - 1] >> 30) + i;
}

void Twister::renew() noexcept {
  uint32_t* const s = state_.data();
  for (int i = 0; i < kWords - kMiddle; ++i) s[i] = s[i + kMiddle] ^ twisted(s[i], s[i + 1]);
  for (int i = kWords - kMiddle; i < kWords - 1; ++i) s[i] = s[i + kMiddle - kWords] ^ twisted(s[i], s[i + 1]);
  s[kWords - 1] = s[kMiddle - 1] ^ twisted(s[kWords - 1], s[0]);
  used_ = 0;
}

void Twister::draw(uint32_t* words, int64_t count) noexcept {
  while (count) {
    if (used_ == kWords) renew();
    const int64_t taken = count < kWords - used_ ? count : kWords - used_;
    for (int64_t i = 0; i < taken; ++i) words[i] = tempered(state_[size_t(used_ + i)]);
    used_ += int(taken);
    words += taken;
    count -= taken;
  }
}

void Twister::save(char* bytes) const noexcept {
  Saved saved{};
  saved.seed = seed_;
  saved.left = kWords - used_ + 1;
  saved.seeded = 1;
  saved.next = uint64_t(used_);
  for (size_t i = 0; i < kWords; ++i) saved.words[i] = state_[i];
  saved.spare = spare.value_or(0);
  saved.has_spare = spare.has_value();
  std::memcpy(bytes, &saved, sizeof saved);
}

bool Twister::restore(const char* bytes) noexcept {
  Saved saved;
  std::memcpy(&saved, bytes, sizeof saved);
  if (!saved.seeded || saved.left < 1 || saved.left > kWords || saved.next > kWords) return false;
  for (const uint64_t word : saved.words)
    if (word >> 32) return false;
  seed_ = saved.seed;
  // A fresh state has one word left, the one after the last.
  used_ = kWords + 1 - saved.left;
  for (size_t i = 0; i < kWords; ++i) state_[i] = uint32_t(saved.words[i]);
  spare = saved.has_spare ? std::optional(saved.spare) : std::nullopt;
  return true;
}

}  // namespace taeda
