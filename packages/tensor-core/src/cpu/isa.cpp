// Chooses the copy of the inner loops that this machine's vector instructions allow.
#include <cstdlib>
#include <string_view>

#include "cpu/loops/fft.h"
#include "cpu/loops/layers.h"
#include "cpu/loops/moments.h"
#include "cpu/loops/special.h"
#include "cpu/loops/spatial.h"
#include "cpu/loops/tables.h"
#include "isas.h"

namespace taeda::loops {

TAEDA_EACH_ISA(TAEDA_LOOP_TABLES)
TAEDA_EACH_ISA(TAEDA_LAYER_LOOPS)
TAEDA_EACH_ISA(TAEDA_MOMENT_LOOPS)
TAEDA_EACH_ISA(TAEDA_FFT_LOOPS)
TAEDA_EACH_ISA(TAEDA_SPECIAL_LOOPS)
TAEDA_EACH_ISA(TAEDA_SPATIAL_LOOPS)

namespace {

struct Copy {
  std::string_view name;
  Tables tables;
  LayerTables layers;
  const MomentTable& moments;
  const FftTable& fft;
  const ElementRow* special;
  const SpatialTable& spatial;
};

#define TAEDA_COPY(ISA)                                                                                    \
  Copy{#ISA,                                                                                               \
       {ISA::arith_rows, ISA::unary_rows, ISA::compare_rows, ISA::activation_rows, ISA::select, ISA::cast, \
        ISA::softmax, ISA::reduce, ISA::random, ISA::optim},                                               \
       {ISA::layers_float, ISA::layers_double},                                                            \
       ISA::moments,                                                                                       \
       ISA::fft,                                                                                           \
       ISA::special_rows,                                                                                  \
       ISA::spatial},
constexpr Copy kCopies[] = {TAEDA_EACH_ISA(TAEDA_COPY)};
#undef TAEDA_COPY

/// Each contains the ones before it.
constexpr std::string_view kKnown[] = {"base", "avx2", "avx512"};

size_t rank(std::string_view name) noexcept {
  size_t at = 0;
  while (at < std::size(kKnown) && kKnown[at] != name) ++at;
  return at;
}

size_t rank_of_machine() noexcept {
#if defined(__x86_64__)
  __builtin_cpu_init();
  const bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi") &&
                  __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("f16c");
  const bool v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                  __builtin_cpu_supports("avx512vl");
  return v4 ? 2 : v3 ? 1 : 0;
#else
  return 0;
#endif
}

/// The best copy that was built and that the machine runs; `TAEDA_ISA=base|avx2|avx512` lowers it.
const Copy& choose() noexcept {
  size_t limit = rank_of_machine();
  if (const char* wanted = std::getenv("TAEDA_ISA")) limit = std::min(limit, rank(wanted));
  const Copy* best = &kCopies[0];
  for (const Copy& copy : kCopies)
    if (rank(copy.name) <= limit) best = &copy;
  return *best;
}
const Copy& chosen() noexcept {
  static const Copy& copy = choose();
  return copy;
}

}  // namespace

const Tables& tables() noexcept { return chosen().tables; }
const Tables& least_tables() noexcept { return kCopies[0].tables; }
const LayerTables& layer_tables() noexcept { return chosen().layers; }
const MomentTable& moment_table() noexcept { return chosen().moments; }
const FftTable& fft_table() noexcept { return chosen().fft; }
const ElementRow* special_table() noexcept { return chosen().special; }
const ElementRow* least_special_table() noexcept { return kCopies[0].special; }
const SpatialTable& spatial_table() noexcept { return chosen().spatial; }

}  // namespace taeda::loops
