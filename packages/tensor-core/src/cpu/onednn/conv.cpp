// float32 convolution by oneDNN: descriptors, a cache of primitives, weights brought to the layout each primitive
// wants.
#include "cpu/onednn/conv.h"

#ifdef TAEDA_WITH_ONEDNN
#include <algorithm>
#include <memory>
#include <mutex>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/fork.h"
#include "cpu/onednn/engine.h"
#include "taeda/error.h"
#include "taeda/interrupt.h"
#include "taeda/parallel.h"

namespace taeda::onednn {
namespace {

using cpu::ConvShape;
using dnnl::memory;
using Tag = memory::format_tag;

enum class Pass : uint8_t { Forward, Data, Weights };

struct Key {
  ConvShape shape;
  Pass pass;
  bool bias;
  int threads;
  friend bool operator==(const Key& a, const Key& b) {
    return a.shape == b.shape && a.pass == b.pass && a.bias == b.bias && a.threads == b.threads;
  }
};
struct KeyHash {
  size_t operator()(const Key& key) const noexcept {
    const auto* words = reinterpret_cast<const uint64_t*>(&key.shape);
    uint64_t hash = uint64_t(key.pass) * 4 + key.bias + uint64_t(key.threads) * 64;
    for (size_t i = 0; i < sizeof key.shape / 8; ++i)
      hash = (hash ^ words[i]) * 0x9E3779B97F4A7C15ull, hash ^= hash >> 29;
    return size_t(hash);
  }
};

/// A ready primitive with the layouts it wants.
struct Plan {
  bool fast = false;  // oneDNN's reference routines take minutes
  dnnl::primitive primitive;
  memory::desc x, weights, user_weights, y, bias, scratch;
};

struct Descriptors {
  memory::desc x, weights, user_weights, y, bias;
  memory::dims strides, dilates, padding_low, padding_high;
};

Descriptors describe_conv(const Key& key) {
  const ConvShape& s = key.shape;
  const auto f32 = memory::data_type::f32;
  Descriptors d;
  d.x = memory::desc({s.n, s.c, s.h, s.w}, f32, Tag::nhwc);
  d.y = memory::desc({s.n, s.o, s.oh, s.ow}, f32, Tag::nhwc);
  const memory::dims grouped{s.groups, s.o / s.groups, s.c / s.groups, s.kh, s.kw}, plain{s.o, s.c, s.kh, s.kw};
  d.weights = memory::desc(s.groups > 1 ? grouped : plain, f32, Tag::any);
  d.user_weights = memory::desc(s.groups > 1 ? grouped : plain, f32, s.groups > 1 ? Tag::goihw : Tag::oihw);
  d.bias = key.bias ? memory::desc({s.o}, f32, Tag::x) : memory::desc();
  d.strides = {s.sh, s.sw};
  d.dilates = {s.dh - 1, s.dw - 1};
  d.padding_low = {s.ph, s.pw};
  // oneDNN wants the padding that is really reached on the far side.
  d.padding_high = {(s.oh - 1) * s.sh + (s.kh - 1) * s.dh + 1 - s.h - s.ph,
                    (s.ow - 1) * s.sw + (s.kw - 1) * s.dw + 1 - s.w - s.pw};
  return d;
}

template <class Description>
bool is_fast(const Description& pd) {
  return std::string_view(pd.impl_info_str()).find("ref") == std::string_view::npos;
}

std::shared_ptr<const Plan> make_plan(const Key& key) {
  const std::unique_lock turn = building();
  const Descriptors d = describe_conv(key);
  const auto algorithm = dnnl::algorithm::convolution_direct;
  const dnnl::convolution_forward::primitive_desc forward(
      engine(), key.pass == Pass::Forward ? dnnl::prop_kind::forward_inference : dnnl::prop_kind::forward_training,
      algorithm, d.x, d.weights, key.pass == Pass::Data ? memory::desc() : d.bias, d.y, d.strides, d.dilates,
      d.padding_low, d.padding_high, attributes());
  auto plan = std::make_shared<Plan>();
  plan->x = d.x;
  plan->y = d.y;
  plan->user_weights = d.user_weights;
  plan->bias = d.bias;
  if (key.pass == Pass::Forward) {
    plan->weights = forward.weights_desc();
    plan->scratch = forward.scratchpad_desc();
    plan->fast = is_fast(forward);
    plan->primitive = dnnl::convolution_forward(forward);
  } else if (key.pass == Pass::Data) {
    const dnnl::convolution_backward_data::primitive_desc pd(engine(), algorithm, d.x, d.weights, d.y, d.strides,
                                                             d.dilates, d.padding_low, d.padding_high, forward,
                                                             attributes());
    plan->weights = pd.weights_desc();
    plan->scratch = pd.scratchpad_desc();
    plan->fast = is_fast(pd);
    plan->primitive = dnnl::convolution_backward_data(pd);
  } else {
    const dnnl::convolution_backward_weights::primitive_desc pd(engine(), algorithm, d.x, d.weights, d.bias, d.y,
                                                                d.strides, d.dilates, d.padding_low, d.padding_high,
                                                                forward, attributes());
    plan->weights = pd.diff_weights_desc();
    plan->scratch = pd.scratchpad_desc();
    plan->fast = is_fast(pd);
    plan->primitive = dnnl::convolution_backward_weights(pd);
  }
  return plan;
}

/// Primitives by shape; a network has some dozens. Emptied when programs with ever new shapes overfill it.
class PlanCache {
 public:
  std::shared_ptr<const Plan> find(const Key& key) {
    std::lock_guard guard(lock_);
    const auto at = plans_.find(key);
    return at == plans_.end() ? nullptr : at->second;
  }
  void insert(const Key& key, std::shared_ptr<const Plan> plan) {
    std::lock_guard guard(lock_);
    if (plans_.size() >= 2048) plans_.clear();
    plans_[key] = std::move(plan);
  }

 private:
  std::mutex lock_;
  HeldAtFork held_{lock_};
  std::unordered_map<Key, std::shared_ptr<const Plan>, KeyHash> plans_;
};

std::shared_ptr<const Plan> plan_of(const Key& key) {
  static auto* cache = new PlanCache;
  if (auto plan = cache->find(key)) return plan;
  auto plan = make_plan(key);
  cache->insert(key, plan);
  return plan;
}

Key key_of(const ConvShape& shape, Pass pass, bool bias) {
  Key key{};
  key.shape = shape;
  key.pass = pass;
  key.bias = bias;
  key.threads = num_threads();
  return key;
}

memory wrap(const memory::desc& desc, const void* data) { return memory(desc, engine(), const_cast<void*>(data)); }

/// Runs `body`, turning oneDNN's exceptions into the library's.
template <class Body>
bool guarded(const char* op, const Body& body) {
  try {
    return body();
  } catch (const dnnl::error& e) {
    fail(ErrorKind::Runtime, op, ": oneDNN failed: ", e.what());
  }
}

/// Weights in the layout that the primitive wants: the caller's bytes, or a reordered copy in `scratch`.
memory fast_weights(const Plan& plan, const float* weight, const Scratch& scratch) {
  if (plan.weights == plan.user_weights) return wrap(plan.user_weights, weight);
  reorder(plan.user_weights, weight, plan.weights, scratch.data());
  return wrap(plan.weights, scratch.data());
}
memory::desc extra_weights(const Plan& plan) {
  return plan.weights == plan.user_weights ? memory::desc() : plan.weights;
}

/// Calls `body(shape of some images, the first of them)` until all are done or it says false. One primitive takes no more
/// images than some tenths of a second, so that signals are looked at between them.
template <class Body>
bool in_batches(const ConvShape& shape, const Body& body) {
  const double image = double(shape.o) * double(shape.oh) * double(shape.ow) * double(shape.c / shape.groups) *
                       double(shape.kh) * double(shape.kw);
  const int64_t batch = std::clamp<int64_t>(int64_t(0x1p34 / std::max(image, 1.0)), 1, std::max<int64_t>(shape.n, 1));
  for (int64_t first = 0; first < shape.n; first += batch) {
    if (first) poll_signals();
    ConvShape part = shape;
    part.n = std::min(batch, shape.n - first);
    if (!body(part, first)) return false;
  }
  return true;
}
int64_t input_size(const ConvShape& s) { return s.c * s.h * s.w; }
int64_t output_size(const ConvShape& s) { return s.o * s.oh * s.ow; }

bool forward_batch(const ConvShape& shape, const float* x, const float* weight, const float* bias, float* y) {
  return guarded("conv2d", [&] {
    dnnl::stream& queue = stream();
    const auto plan = plan_of(key_of(shape, Pass::Forward, bias != nullptr));
    if (!plan->fast) return false;
    const Scratch scratch(plan->scratch), weight_space(extra_weights(*plan));
    std::unordered_map<int, memory> arguments{{DNNL_ARG_SRC, wrap(plan->x, x)},
                                              {DNNL_ARG_WEIGHTS, fast_weights(*plan, weight, weight_space)},
                                              {DNNL_ARG_DST, wrap(plan->y, y)},
                                              {DNNL_ARG_SCRATCHPAD, scratch.memory()}};
    if (bias) arguments.emplace(DNNL_ARG_BIAS, wrap(plan->bias, bias));
    plan->primitive.execute(queue, arguments);
    return true;
  });
}

bool backward_data_batch(const ConvShape& shape, const float* grad, const float* weight, float* grad_x) {
  return guarded("conv2d_backward", [&] {
    dnnl::stream& queue = stream();
    const auto plan = plan_of(key_of(shape, Pass::Data, false));
    if (!plan->fast) return false;
    const Scratch scratch(plan->scratch), weight_space(extra_weights(*plan));
    plan->primitive.execute(queue, {{DNNL_ARG_DIFF_SRC, wrap(plan->x, grad_x)},
                                    {DNNL_ARG_WEIGHTS, fast_weights(*plan, weight, weight_space)},
                                    {DNNL_ARG_DIFF_DST, wrap(plan->y, grad)},
                                    {DNNL_ARG_SCRATCHPAD, scratch.memory()}});
    return true;
  });
}

bool backward_weights_batch(const ConvShape& shape, const float* x, const float* grad, float* grad_weight,
                            float* grad_bias) {
  return guarded("conv2d_backward", [&] {
    dnnl::stream& queue = stream();
    const auto plan = plan_of(key_of(shape, Pass::Weights, grad_bias != nullptr));
    if (!plan->fast) return false;
    const memory::desc extra = extra_weights(*plan);
    const Scratch scratch(plan->scratch), weight_space(extra);
    void* const target = extra.get_size() ? weight_space.data() : grad_weight;
    std::unordered_map<int, memory> arguments{{DNNL_ARG_SRC, wrap(plan->x, x)},
                                              {DNNL_ARG_DIFF_DST, wrap(plan->y, grad)},
                                              {DNNL_ARG_DIFF_WEIGHTS, wrap(plan->weights, target)},
                                              {DNNL_ARG_SCRATCHPAD, scratch.memory()}};
    if (grad_bias) arguments.emplace(DNNL_ARG_DIFF_BIAS, wrap(plan->bias, grad_bias));
    plan->primitive.execute(queue, arguments);
    if (target != grad_weight) reorder(plan->weights, target, plan->user_weights, grad_weight);
    return true;
  });
}

void add_to(float* sum, const std::vector<float>& part) {
  for (size_t i = 0; i < part.size(); ++i) sum[i] += part[i];
}

}  // namespace

bool conv_forward(const ConvShape& shape, const float* x, const float* weight, const float* bias, float* y) {
  return in_batches(shape, [&](const ConvShape& part, int64_t first) {
    return forward_batch(part, x + first * input_size(shape), weight, bias, y + first * output_size(shape));
  });
}

bool conv_backward_data(const ConvShape& shape, const float* grad, const float* weight, float* grad_x) {
  return in_batches(shape, [&](const ConvShape& part, int64_t first) {
    return backward_data_batch(part, grad + first * output_size(shape), weight, grad_x + first * input_size(shape));
  });
}

bool conv_backward_weights(const ConvShape& shape, const float* x, const float* grad, float* grad_weight,
                           float* grad_bias) {
  return in_batches(shape, [&](const ConvShape& part, int64_t first) {
    const float *const from = x + first * input_size(shape), *const up = grad + first * output_size(shape);
    if (first == 0) return backward_weights_batch(part, from, up, grad_weight, grad_bias);
    std::vector<float> more(size_t(shape.o * (shape.c / shape.groups) * shape.kh * shape.kw));
    std::vector<float> more_bias(grad_bias ? size_t(shape.o) : 0);
    if (!backward_weights_batch(part, from, up, more.data(), grad_bias ? more_bias.data() : nullptr)) return false;
    add_to(grad_weight, more);
    if (grad_bias) add_to(grad_bias, more_bias);
    return true;
  });
}

}  // namespace taeda::onednn

#else
namespace taeda::onednn {
bool conv_forward(const cpu::ConvShape&, const float*, const float*, const float*, float*) { return false; }
bool conv_backward_data(const cpu::ConvShape&, const float*, const float*, float*) { return false; }
bool conv_backward_weights(const cpu::ConvShape&, const float*, const float*, float*, float*) { return false; }
}  // namespace taeda::onednn
#endif
