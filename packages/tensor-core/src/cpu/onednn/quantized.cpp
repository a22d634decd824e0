// Layers of int8 weights by oneDNN.
#include "cpu/onednn/quantized.h"

#ifdef TAEDA_WITH_ONEDNN
#include <algorithm>
#include <memory>
#include <unordered_map>

#include "core/fork.h"
#include "cpu/onednn/engine.h"
#include "cpu/onednn/geometry.h"
#include "cpu/onednn/plan_cache.h"
#include "taeda/error.h"
#include "taeda/interrupt.h"
#include "taeda/parallel.h"

namespace taeda::onednn {
namespace {

using dnnl::memory;
using infer::ConvPlan;
using Tag = memory::format_tag;
using Type = memory::data_type;

Type type_of(DType dtype) {
  switch (dtype) {
    case DType::UInt8: return Type::u8;
    case DType::Int8: return Type::s8;
    case DType::Int32: return Type::s32;
    default: return Type::f32;
  }
}

/// What kind of scaling a primitive is made for; the numbers come with each call.
struct Kind {
  Type from, to;
  bool zero, factors, bias, relu, stored;
  int threads;
  friend bool operator==(const Kind&, const Kind&) = default;
  uint64_t hash() const {
    return uint64_t(from) | uint64_t(to) << 8 | uint64_t(threads) << 16 | uint64_t(zero) << 40 |
           uint64_t(factors) << 41 | uint64_t(bias) << 42 | uint64_t(relu) << 43 | uint64_t(stored) << 44;
  }
};
Kind kind_of(DType from, DType to, const Scaling& s) {
  return {type_of(from),     type_of(to), s.input_zero != 0,    s.factors != nullptr,
          s.bias != nullptr, s.relu,      s.stored.has_value(), num_threads()};
}
/// A ready primitive with the layouts it wants.
struct Plan {
  bool fast = false;
  int64_t outputs = 0;
  dnnl::primitive primitive;
  memory::desc x, weights, user_weights, y, bias, scratch;
};

/// `mask`: the dimensions of the weights along which there is a factor for each output.
dnnl::primitive_attr attributes_of(const Kind& kind, int mask) {
  dnnl::primitive_attr attr = attributes();
  if (kind.factors) attr.set_scales_mask(DNNL_ARG_WEIGHTS, mask);
  if (kind.zero) attr.set_zero_points_mask(DNNL_ARG_SRC, 0);
  if (kind.stored) {
    attr.set_scales_mask(DNNL_ARG_DST, 0);
    attr.set_zero_points_mask(DNNL_ARG_DST, 0);
  }
  if (kind.relu) {
    dnnl::post_ops after;
    after.append_eltwise(dnnl::algorithm::eltwise_relu, 0.f, 0.f);
    attr.set_post_ops(after);
  }
  return attr;
}

struct ConvKey {
  ConvPlan shape;
  Kind kind;
  friend bool operator==(const ConvKey&, const ConvKey&) = default;
};
struct ConvHash {
  size_t operator()(const ConvKey& key) const noexcept { return size_t(mixed(key.kind.hash(), key.shape)); }
};
std::shared_ptr<const Plan> make_conv(const ConvKey& key) {
  const std::unique_lock turn = building();
  const ConvGeometry g = geometry(key.shape);
  const bool grouped = key.shape.groups > 1, deep = key.shape.deep();
  auto plan = std::make_shared<Plan>();
  plan->outputs = key.shape.o;
  plan->x = memory::desc(g.x, key.kind.from, deep ? Tag::ndhwc : Tag::nhwc);
  plan->y = memory::desc(g.y, key.kind.to, deep ? Tag::ndhwc : Tag::nhwc);
  plan->user_weights = memory::desc(g.weights, Type::s8, row_major_weights(key.shape));
  if (key.kind.bias) plan->bias = memory::desc({key.shape.o}, Type::f32, Tag::x);
  const dnnl::convolution_forward::primitive_desc pd(
      engine(), dnnl::prop_kind::forward_inference, dnnl::algorithm::convolution_direct, plan->x,
      memory::desc(g.weights, Type::s8, Tag::any), plan->bias, plan->y, g.strides, g.dilates, g.padding_low,
      g.padding_high, attributes_of(key.kind, grouped ? 3 : 1));
  plan->weights = pd.weights_desc();
  plan->scratch = pd.scratchpad_desc();
  plan->fast = is_fast(pd) && is_right_on_tiles(key.shape, Borders::Half) && may_keep_kernels(pd);
  if (plan->fast) plan->primitive = dnnl::convolution_forward(pd);
  return plan;
}

struct MatmulKey {
  int64_t m, n, k;
  bool turned, plain;  // plain: weights are not laid out before, which takes longer than a product of few rows
  Kind kind;
  friend bool operator==(const MatmulKey&, const MatmulKey&) = default;
};
struct MatmulHash {
  size_t operator()(const MatmulKey& key) const noexcept {
    const uint64_t sizes = mixed(mixed(uint64_t(key.m), uint64_t(key.n)), uint64_t(key.k));
    return size_t(mixed(sizes, key.kind.hash() << 2 | uint64_t(key.turned) << 1 | uint64_t(key.plain)));
  }
};
std::shared_ptr<const Plan> make_matmul(const MatmulKey& key) {
  const std::unique_lock turn = building();
  auto plan = std::make_shared<Plan>();
  plan->outputs = key.n;
  plan->x = memory::desc({key.m, key.k}, key.kind.from, Tag::ab);
  plan->y = memory::desc({key.m, key.n}, key.kind.to, Tag::ab);
  plan->user_weights = memory::desc({key.k, key.n}, Type::s8, key.turned ? Tag::ba : Tag::ab);
  const memory::desc weights = key.plain ? plan->user_weights : memory::desc({key.k, key.n}, Type::s8, Tag::any);
  const dnnl::primitive_attr attr = attributes_of(key.kind, 2);
  if (key.kind.bias) plan->bias = memory::desc({1, key.n}, Type::f32, Tag::ab);
  const auto pd = key.kind.bias ? dnnl::matmul::primitive_desc(engine(), plan->x, weights, plan->bias, plan->y, attr)
                                : dnnl::matmul::primitive_desc(engine(), plan->x, weights, plan->y, attr);
  plan->weights = pd.weights_desc();
  plan->scratch = pd.scratchpad_desc();
  plan->fast = is_fast(pd);
  plan->primitive = dnnl::matmul(pd);
  return plan;
}

void execute(const Plan& plan, const void* x, const memory& weights, const Scaling& s, void* y) {
  static const memory::desc one_float({1}, Type::f32, Tag::x), one_int({1}, Type::s32, Tag::x);
  const Scratch scratch(plan.scratch);
  std::unordered_map<int, memory> arguments{{DNNL_ARG_SRC, wrap(plan.x, x)},
                                            {DNNL_ARG_WEIGHTS, weights},
                                            {DNNL_ARG_DST, wrap(plan.y, y)},
                                            {DNNL_ARG_SCRATCHPAD, scratch.memory()}};
  if (s.bias) arguments.emplace(DNNL_ARG_BIAS, wrap(plan.bias, s.bias));
  if (s.input_zero) arguments.emplace(DNNL_ARG_ATTR_ZERO_POINTS | DNNL_ARG_SRC, wrap(one_int, &s.input_zero));
  if (s.factors)
    arguments.emplace(DNNL_ARG_ATTR_SCALES | DNNL_ARG_WEIGHTS,
                      wrap(memory::desc({plan.outputs}, Type::f32, Tag::x), s.factors));
  if (s.stored) {
    arguments.emplace(DNNL_ARG_ATTR_SCALES | DNNL_ARG_DST, wrap(one_float, &s.stored->scale));
    arguments.emplace(DNNL_ARG_ATTR_ZERO_POINTS | DNNL_ARG_DST, wrap(one_int, &s.stored->zero));
  }
  plan.primitive.execute(stream(), arguments);
}

/// Parts of `count` that each take some tenths of a second at most, between which signals are looked at.
int64_t at_once(int64_t count, int64_t work) {
  const double most = 0x1p36, one = double(work) / double(std::max<int64_t>(count, 1));
  return std::clamp<int64_t>(int64_t(most / std::max(one, 1.0)), 1, std::max<int64_t>(count, 1));
}
const char* moved(const void* data, int64_t elements, DType dtype) {
  return static_cast<const char*>(data) + elements * int64_t(item_size(dtype));
}

auto& conv_plans = *new PlanCache<ConvKey, ConvHash, Plan>;
auto& matmul_plans = *new PlanCache<MatmulKey, MatmulHash, Plan>;

}  // namespace

bool has_int8() {
  return found_out([] { return has_isa(dnnl::cpu_isa::avx512_core_vnni) || has_isa(dnnl::cpu_isa::avx2_vnni); });
}

bool conv_int8(const ConvPlan& shape, DType from, const void* x, Weights& weight, const Scaling& scaling, DType to,
               void* y) {
  return guarded("quantized_conv", [&] {
    const Kind kind = kind_of(from, to, scaling);
    const int64_t step = at_once(shape.n, shape.work());
    for (int64_t n = 0; n < shape.n; n += step) {
      if (n) poll_signals();
      ConvKey key{shape, kind};
      key.shape.n = std::min(step, shape.n - n);
      const auto plan = conv_plans.at(key, make_conv);
      if (!plan->fast) return false;  // the first: others have the same routines
      std::unique_ptr<Scratch> space;
      const memory weights = weight.in_layout(plan->weights, plan->user_weights, space);
      execute(*plan, moved(x, n * shape.pixels() * shape.c, from), weights, scaling,
              const_cast<char*>(moved(y, n * shape.out_pixels() * shape.o, to)));
    }
    return true;
  });
}

bool matmul_int8(int64_t m, int64_t n, int64_t k, DType from, const void* x, Weights& weight, bool turned,
                 const Scaling& scaling, DType to, void* y) {
  return guarded("quantized_linear", [&] {
    const Kind kind = kind_of(from, to, scaling);
    const int64_t step = at_once(m, m * n * k);
    for (int64_t row = 0; row < m; row += step) {
      if (row) poll_signals();
      const auto plan = matmul_plans.at({std::min(step, m - row), n, k, turned, !weight.keeps(), kind}, make_matmul);
      if (!plan->fast) return false;
      std::unique_ptr<Scratch> space;
      const memory weights = weight.in_layout(plan->weights, plan->user_weights, space);
      execute(*plan, moved(x, row * k, from), weights, scaling, const_cast<char*>(moved(y, row * n, to)));
    }
    return true;
  });
}

}  // namespace taeda::onednn

#else
namespace taeda::onednn {
bool has_int8() { return false; }
bool conv_int8(const infer::ConvPlan&, DType, const void*, Weights&, const Scaling&, DType, void*) { return false; }
bool matmul_int8(int64_t, int64_t, int64_t, DType, const void*, Weights&, bool, const Scaling&, DType, void*) {
  return false;
}
}  // namespace taeda::onednn
#endif
