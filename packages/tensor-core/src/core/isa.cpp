// Detects the processor's vector instructions.
#include "taeda/isa.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace taeda {
namespace {

Isa detect() noexcept {
#if defined(__x86_64__)
  __builtin_cpu_init();
  const bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") &&
                  __builtin_cpu_supports("f16c");
  const bool v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512cd") &&
                  __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  return v4 ? Isa::AVX512 : v3 ? Isa::AVX2 : Isa::Base;
#else
  return Isa::Base;
#endif
}

Isa choose() noexcept {
  Isa best = detect();
  if (const char* wanted = std::getenv("TAEDA_ISA")) {
    if (!std::strcmp(wanted, "base")) best = Isa::Base;
    if (!std::strcmp(wanted, "avx2")) best = std::min(best, Isa::AVX2);
  }
#ifndef TAEDA_HAVE_ISA_avx512
  best = std::min(best, Isa::AVX2);
#endif
#ifndef TAEDA_HAVE_ISA_avx2
  if (best == Isa::AVX2) best = Isa::Base;
#endif
  return best;
}

}  // namespace

Isa isa() noexcept {
  static const Isa chosen = choose();
  return chosen;
}

}  // namespace taeda
