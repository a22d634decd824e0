// Chooses the copy of the inner loops that this machine's vector instructions allow.
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <cstdlib>
#include <string_view>

#include "cpu/loops/bags.h"
#include "cpu/loops/cast.h"
#include "cpu/loops/depthwise.h"
#include "cpu/loops/distance.h"
#include "cpu/loops/fft.h"
#include "cpu/loops/first.h"
#include "cpu/loops/gemm.h"
#include "cpu/loops/layers.h"
#include "cpu/loops/moments.h"
#include "cpu/loops/network.h"
#include "cpu/loops/optim.h"
#include "cpu/loops/random.h"
#include "cpu/loops/reduce.h"
#include "cpu/loops/rows.h"
#include "cpu/loops/select.h"
#include "cpu/loops/softmax.h"
#include "cpu/loops/spatial.h"
#include "cpu/loops/turned.h"
#include "isas.h"

namespace taeda::loops {

/// Declares the rows of the element-wise families for one instruction set.
#define TAEDA_FAMILY_ROWS(ISA)                                                                           \
  namespace ISA {                                                                                        \
  extern const ElementRow activation_rows[], arith_rows[], compare_rows[], special_rows[], unary_rows[]; \
  }

TAEDA_EACH_ISA(TAEDA_FAMILY_ROWS)
TAEDA_EACH_ISA(TAEDA_BAG_LOOPS)
TAEDA_EACH_ISA(TAEDA_CAST_LOOPS)
TAEDA_EACH_ISA(TAEDA_DEPTHWISE_LOOPS)
TAEDA_EACH_ISA(TAEDA_DISTANCE_LOOPS)
TAEDA_EACH_ISA(TAEDA_FFT_LOOPS)
TAEDA_EACH_ISA(TAEDA_FIRST_LOOPS)
TAEDA_EACH_ISA(TAEDA_GEMM_LOOPS)
TAEDA_EACH_ISA(TAEDA_LAYER_LOOPS)
TAEDA_EACH_ISA(TAEDA_MOMENT_LOOPS)
TAEDA_EACH_ISA(TAEDA_NETWORK_LOOPS)
TAEDA_EACH_ISA(TAEDA_OPTIM_LOOPS)
TAEDA_EACH_ISA(TAEDA_RANDOM_LOOPS)
TAEDA_EACH_ISA(TAEDA_REDUCE_LOOPS)
TAEDA_EACH_ISA(TAEDA_SELECT_LOOPS)
TAEDA_EACH_ISA(TAEDA_SOFTMAX_LOOPS)
TAEDA_EACH_ISA(TAEDA_SPATIAL_LOOPS)
TAEDA_EACH_ISA(TAEDA_TURNED_LOOPS)

namespace {

struct Copy {
  std::string_view name;
  const ElementRow *activation, *arith, *compare, *special, *unary;
  const BagTable& bags;
  const CastTable& cast;
  const DepthwiseTable& depthwise;
  const DistanceTable& distance;
  const FftTable& fft;
  const FirstTable& first;
  const GemmTable& gemm;
  LayerTables layers;
  const MomentTable& moments;
  const NetworkTable& network;
  const OptimTable& optim;
  const RandomTable& random;
  const ReduceTable& reduce;
  const SelectTable& select;
  const SoftmaxTable& softmax;
  const SpatialTable& spatial;
  const TurnedTable& turned;
};

#define TAEDA_COPY(ISA)                         \
  Copy{#ISA,                                    \
       ISA::activation_rows,                    \
       ISA::arith_rows,                         \
       ISA::compare_rows,                       \
       ISA::special_rows,                       \
       ISA::unary_rows,                         \
       ISA::bags,                               \
       ISA::cast,                               \
       ISA::depthwise,                          \
       ISA::distance,                           \
       ISA::fft,                                \
       ISA::first,                              \
       ISA::gemm,                               \
       {ISA::layers_float, ISA::layers_double}, \
       ISA::moments,                            \
       ISA::network,                            \
       ISA::optim,                              \
       ISA::random,                             \
       ISA::reduce,                             \
       ISA::select,                             \
       ISA::softmax,                            \
       ISA::spatial,                            \
       ISA::turned},
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
  unsigned a, b, c = 0, d;
  const bool f16c = __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);  // has no name that all compilers know
  const bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi") &&
                  __builtin_cpu_supports("bmi2") && f16c;
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

bool fuses() noexcept { return &chosen() != &kCopies[0]; }
FamilyRows activation_rows() noexcept { return {chosen().activation, kCopies[0].activation}; }
FamilyRows arith_rows() noexcept { return {chosen().arith, kCopies[0].arith}; }
FamilyRows compare_rows() noexcept { return {chosen().compare, kCopies[0].compare}; }
FamilyRows special_rows() noexcept { return {chosen().special, kCopies[0].special}; }
FamilyRows unary_rows() noexcept { return {chosen().unary, kCopies[0].unary}; }
const BagTable& bag_table() noexcept { return chosen().bags; }
const FirstTable& first_table() noexcept { return chosen().first; }
const CastTable& cast_table() noexcept { return chosen().cast; }
const CastTable& least_cast_table() noexcept { return kCopies[0].cast; }
const DepthwiseTable& depthwise_table() noexcept { return chosen().depthwise; }
const DistanceTable& distance_table() noexcept { return chosen().distance; }
const FftTable& fft_table() noexcept { return chosen().fft; }
const GemmTable& gemm_table() noexcept { return chosen().gemm; }
const LayerTables& layer_tables() noexcept { return chosen().layers; }
const MomentTable& moment_table() noexcept { return chosen().moments; }
const NetworkTable& network_table() noexcept { return chosen().network; }
const OptimTable& optim_table() noexcept { return chosen().optim; }
const RandomTable& random_table() noexcept { return chosen().random; }
const ReduceTable& reduce_table() noexcept { return chosen().reduce; }
const SelectTable& select_table() noexcept { return chosen().select; }
const SoftmaxTable& softmax_table() noexcept { return chosen().softmax; }
const SpatialTable& spatial_table() noexcept { return chosen().spatial; }
const TurnedTable& turned_table() noexcept { return chosen().turned; }

}  // namespace taeda::loops
