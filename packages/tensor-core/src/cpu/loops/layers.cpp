// Inner loops of network layers for one instruction set.
#include "cpu/loops/layers.h"

#include "cpu/loops/cells.h"
#include "cpu/loops/losses.h"
#include "cpu/loops/norm.h"
#include "cpu/loops/pool.h"

namespace taeda::loops::TAEDA_ISA {
namespace {

template <class T>
constexpr LayerLoops make() {
  LayerLoops t{};
  t.max_pool = max_pool<T>;
  t.max_pool_planes = max_pool_planes<T>;
  t.avg_pool = avg_pool<T>;
  t.avg_pool_planes = avg_pool_planes<T>;
  t.max_pool_backward = max_pool_backward<T>;
  t.avg_pool_backward = avg_pool_backward<T>;
  t.channel_moments = channel_moments<T>;
  t.channel_products = channel_products<T>;
  t.channel_affine = channel_affine<T>;
  t.channel_combine = channel_combine<T>;
  t.plane_moments = plane_moments<T>;
  t.plane_products = plane_products<T>;
  t.plane_affine = plane_affine<T>;
  t.plane_combine = plane_combine<T>;
  t.layer_norm = layer_norm<T>;
  t.layer_norm_backward = layer_norm_backward<T>;
  t.pair[kMse] = pair_loops<Mse, T>();
  t.pair[kL1] = pair_loops<L1, T>();
  t.pair[kSmoothL1] = pair_loops<SmoothL1, T>();
  t.pair[kHuber] = pair_loops<Huber, T>();
  t.pair[kBce] = pair_loops<Bce, T>();
  t.pair[kBceWithLogits] = pair_loops<BceWithLogits, T>();
  t.outside_unit = outside_unit<T>;
  t.log_sum_exp = log_sum_exp<T>;
  t.row_sum = row_sum<T>;
  t.softmax_scaled = softmax_scaled<T>;
  t.plane_log_sum_exp = plane_log_sum_exp<T>;
  t.plane_softmax_scaled = plane_softmax_scaled<T>;
  t.all_classes = all_classes;
  t.gated = gated<T>;
  t.gated_backward = gated_backward<T>;
  t.lstm_gates = lstm_gates<T>;
  t.lstm_gates_backward = lstm_gates_backward<T>;
  t.gru_gates = gru_gates<T>;
  t.gru_gates_backward = gru_gates_backward<T>;
  return t;
}

}  // namespace

const LayerLoops layers_float = make<float>();
const LayerLoops layers_double = make<double>();

#define TAEDA_MAXIMA(T) \
  template void max_pool_planes<T>(const Windows&, const void*, void*, uint8_t*, int64_t*, int64_t, int64_t);
TAEDA_MAXIMA(int8_t)
TAEDA_MAXIMA(int16_t)
TAEDA_MAXIMA(int32_t)
TAEDA_MAXIMA(int64_t)
TAEDA_MAXIMA(uint8_t)
TAEDA_MAXIMA(uint16_t)
TAEDA_MAXIMA(uint32_t)
TAEDA_MAXIMA(uint64_t)
#undef TAEDA_MAXIMA

}  // namespace taeda::loops::TAEDA_ISA
