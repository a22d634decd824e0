// The processor's clock: cheap enough to be read in loops.
#pragma once
#include <cstdint>
#if defined(__x86_64__)
#include <x86intrin.h>
#else
#include <chrono>
#endif

namespace taeda {

#if defined(__x86_64__)
inline uint64_t ticks() noexcept { return __rdtsc(); }
constexpr uint64_t kTicksPerMillisecond = 2'700'000;  // give or take a half
#else
inline uint64_t ticks() noexcept { return uint64_t(std::chrono::steady_clock::now().time_since_epoch().count()); }
constexpr uint64_t kTicksPerMillisecond = 1'000'000;
#endif

}  // namespace taeda
