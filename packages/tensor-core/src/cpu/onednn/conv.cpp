// Convolution by oneDNN: descriptors, a cache of primitives, and the pieces that they compute.
#include "cpu/onednn/conv.h"

#ifdef TAEDA_WITH_ONEDNN
#include <algorithm>
#include <memory>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "cpu/depthwise.h"
#include "cpu/one_thread.h"
#include "cpu/onednn/engine.h"
#include "cpu/onednn/geometry.h"
#include "cpu/onednn/plan_cache.h"
#include "cpu/onednn/threads.h"
#include "taeda/deterministic.h"
#include "taeda/error.h"
#include "taeda/interrupt.h"
#include "taeda/parallel.h"

namespace taeda::onednn {
namespace {

using dnnl::memory;
using infer::ConvPlan;
using Tag = memory::format_tag;

enum class Pass : uint8_t { Forward, Data, Weights };

struct Key {
  ConvPlan shape;
  Pass pass;
  bool bias;
  memory::data_type type;  // of the activations and weights
  int threads;
  friend bool operator==(const Key& a, const Key& b) {
    return a.shape == b.shape && a.pass == b.pass && a.bias == b.bias && a.type == b.type && a.threads == b.threads;
  }
};
struct KeyHash {
  size_t operator()(const Key& key) const noexcept {
    const uint64_t rest = uint64_t(key.pass) * 4 + key.bias + uint64_t(key.type) * 16 + uint64_t(key.threads) * 1024;
    return size_t(mixed(rest, key.shape));
  }
};

/// A ready primitive with the layouts it wants.
struct Plan {
  bool fast = false;
  dnnl::primitive primitive;
  memory::desc x, weights, user_weights, y, bias, scratch;
};

struct Descriptors {
  memory::desc x, weights, user_weights, y, bias;
  ConvGeometry dims;
};

Descriptors describe_conv(const Key& key) {
  const ConvPlan& s = key.shape;
  Descriptors d;
  d.dims = geometry(s);
  const bool deep = s.deep();
  const memory::dims& weights = d.dims.weights;
  d.x = memory::desc(d.dims.x, key.type, deep ? Tag::ndhwc : Tag::nhwc);
  d.y = memory::desc(d.dims.y, key.type, deep ? Tag::ndhwc : Tag::nhwc);
  // Gradients of parameters are sums over all pixels of all pieces.
  const auto type = key.pass == Pass::Weights ? memory::data_type::f32 : key.type;
  d.weights = memory::desc(weights, type, Tag::any);
  d.user_weights = memory::desc(weights, type, row_major_weights(s));
  d.bias = key.bias ? memory::desc({s.o}, memory::data_type::f32, Tag::x) : memory::desc();
  return d;
}

/// Note [Strided 1x1 convolutions of few channels]
/// For gradients of weights oneDNN's "jit_1x1" copies every stride-th pixel together, into room for the channels that
/// there are, but at distances of a whole vector of them: with fewer channels it writes behind that room, and threads
/// into each other's (found in 2023.2 with 1 to 15 channels and 28 x 28 pixels or more). The next routine is taken.
bool writes_behind_its_room(const ConvPlan& s, const dnnl::convolution_backward_weights::primitive_desc& pd) {
  constexpr int64_t vector = 16;
  return s.c / s.groups < vector && std::max({s.sd, s.sh, s.sw}) > 1 && s.kernel() == 1 &&
         std::string_view(pd.impl_info_str()).find("1x1") != std::string_view::npos;
}

/// Whether a routine is worth it: of many windows of one channel each the general ones take several times as long as
/// the loops of cpu/depthwise.h.
template <class Description>
bool is_worth_it(const Key& key, const Description& pd) {
  return is_fast(pd) &&
         (!cpu::is_depthwise(key.shape) || std::string_view(pd.impl_info_str()).find("dw") != std::string_view::npos) &&
         (key.type == memory::data_type::f32 || may_keep_kernels(pd));
}

/// The primitive of a plan, and what it needs, where it is worth it.
template <class Primitive, class Description>
void complete(Plan& plan, const Key& key, const Description& pd, const memory::desc& weights) {
  plan.weights = weights;
  plan.scratch = pd.scratchpad_desc();
  plan.fast = is_worth_it(key, pd);
  if (plan.fast) plan.primitive = Primitive(pd);
}

std::shared_ptr<const Plan> make_plan(const Key& key) {
  std::optional<cpu::OneThread> alone;
  if (key.threads == 1) alone.emplace();
  const std::unique_lock turn = building();
  const Descriptors d = describe_conv(key);
  const auto algorithm = dnnl::algorithm::convolution_direct;
  const dnnl::convolution_forward::primitive_desc forward(
      engine(), key.pass == Pass::Forward ? dnnl::prop_kind::forward_inference : dnnl::prop_kind::forward_training,
      algorithm, d.x, memory::desc(d.weights.get_dims(), key.type, Tag::any),
      key.pass == Pass::Data ? memory::desc() : d.bias, d.y, d.dims.strides, d.dims.dilates, d.dims.padding_low,
      d.dims.padding_high, attributes());
  auto plan = std::make_shared<Plan>();
  plan->x = d.x;
  plan->y = d.y;
  plan->user_weights = d.user_weights;
  plan->bias = d.bias;
  if (key.pass == Pass::Forward) {
    complete<dnnl::convolution_forward>(*plan, key, forward, forward.weights_desc());
  } else if (key.pass == Pass::Data) {
    const dnnl::convolution_backward_data::primitive_desc pd(engine(), algorithm, d.x, d.weights, d.y, d.dims.strides,
                                                             d.dims.dilates, d.dims.padding_low, d.dims.padding_high,
                                                             forward, attributes());
    complete<dnnl::convolution_backward_data>(*plan, key, pd, pd.weights_desc());
  } else {
    dnnl::convolution_backward_weights::primitive_desc pd(engine(), algorithm, d.x, d.weights, d.bias, d.y,
                                                          d.dims.strides, d.dims.dilates, d.dims.padding_low,
                                                          d.dims.padding_high, forward, attributes());
    while (writes_behind_its_room(key.shape, pd) && pd.next_impl()) {
    }
    complete<dnnl::convolution_backward_weights>(*plan, key, pd, pd.diff_weights_desc());
  }
  return plan;
}

auto& plans = *new PlanCache<Key, KeyHash, Plan>;

std::shared_ptr<const Plan> plan_of(const Key& key) { return plans.at(key, make_plan); }

template <class T>
constexpr memory::data_type type_of = std::is_same_v<T, BFloat16> ? memory::data_type::bf16 : memory::data_type::f32;

/// Some images, and of a single one perhaps some rows: what one primitive computes at a time.
struct Piece {
  ConvPlan plan;
  int64_t x, y;  // where its activations begin, in elements
};

/// Whether borders of a volume are wider than half the kernel, and windows more than a slice apart: oneDNN (3.2) leaves
/// part of the weights' gradient unwritten then.
bool is_unwritten(const ConvPlan& s) { return s.deep() && s.sd > 1 && 2 * s.pd > (s.kd - 1) * s.dd + 1; }

/// Row pieces need windows that reach into the image, which all do but those of a padding beyond the kernel. Volumes
/// are not cut.
bool has_row_pieces(const ConvPlan& s) { return !s.deep() && s.ph <= (s.kh - 1) * s.dh; }

/// Rows of the result, and the rows of the input that they are made of.
Piece result_rows(const ConvPlan& s, int64_t image, int64_t begin, int64_t end) {
  const int64_t first = std::max<int64_t>(0, begin * s.sh - s.ph),
                last = std::min(s.h, (end - 1) * s.sh - s.ph + (s.kh - 1) * s.dh + 1);
  Piece piece{s, (image * s.h + first) * s.w * s.c, (image * s.oh + begin) * s.ow * s.o};
  piece.plan.n = 1, piece.plan.h = last - first, piece.plan.oh = end - begin;
  piece.plan.ph = first - (begin * s.sh - s.ph);
  return piece;
}
/// Rows of the input from that at which window `begin` starts (the first: from row 0) to that of window `end`, and the
/// rows of the result that touch them.
Piece input_rows(const ConvPlan& s, int64_t image, int64_t begin, int64_t end) {
  const int64_t first = std::max<int64_t>(0, begin * s.sh - s.ph),
                last = end * s.sh - s.ph >= s.h || end >= s.oh ? s.h : end * s.sh - s.ph;
  const int64_t top = std::max<int64_t>(0, begin - (s.kh - 1) * s.dh / s.sh), bottom = std::min(s.oh, end);
  Piece piece{s, (image * s.h + first) * s.w * s.c, (image * s.oh + top) * s.ow * s.o};
  piece.plan.n = 1, piece.plan.h = last - first, piece.plan.oh = bottom - top;
  piece.plan.ph = first - (top * s.sh - s.ph);
  return piece;
}

/// Cuts into pieces of at most `images` images, or of `rows` rows of the result where that is less than an image.
std::vector<Piece> cut(const ConvPlan& s, Pass pass, int64_t images, int64_t rows) {
  std::vector<Piece> pieces;
  if (rows >= s.oh || !has_row_pieces(s)) {
    for (int64_t n = 0; n < s.n; n += images) {
      Piece piece{s, n * s.pixels() * s.c, n * s.out_pixels() * s.o};
      piece.plan.n = std::min(images, s.n - n);
      pieces.push_back(piece);
    }
    return pieces;
  }
  for (int64_t n = 0; n < s.n; ++n)
    for (int64_t row = 0; row < s.oh; row += rows) {
      const int64_t end = std::min(s.oh, row + rows);
      const Piece piece = pass == Pass::Data ? input_rows(s, n, row, end) : result_rows(s, n, row, end);
      if (piece.plan.h > 0) pieces.push_back(piece);  // the first windows may begin in the padding
    }
  return pieces;
}

/// Note [Pieces of convolutions]
/// oneDNN cuts the sums of a convolution by the number of threads. Where deterministic algorithms are asked for, pieces
/// that follow from the shape alone run on one thread each, and sums over pieces are added in their order. Otherwise a
/// primitive has all threads and as much as takes some tenths of a second, so that signals are looked at in between.
std::vector<Piece> pieces_of(const ConvPlan& s, Pass pass, bool fixed) {
  const auto share = [](int64_t whole, int64_t parts) { return (whole + parts - 1) / parts; };
  const double image = double(s.work()) / double(s.n);
  if (fixed) {
    const int64_t parts = pass == Pass::Weights ? 8 : 32;  // each part has weights of its own to be added
    if (s.n >= parts / 2) return cut(s, pass, share(s.n, parts), s.oh);
    const auto worth = int64_t(image / 0x1p18);
    return cut(s, pass, 1, share(s.oh, std::clamp<int64_t>(share(parts, s.n), 1, std::max<int64_t>(worth, 1))));
  }
  const double most = 0x1p34;
  if (image <= most) return cut(s, pass, std::clamp<int64_t>(int64_t(most / std::max(image, 1.0)), 1, s.n), s.oh);
  return cut(s, pass, 1, std::max<int64_t>(1, int64_t(double(s.oh) * most / image)));
}

/// The primitive for pieces of one shape, with weights that it takes.
struct Prepared {
  ConvPlan shape;
  std::shared_ptr<const Plan> plan;
  memory weights;
  std::unique_ptr<Scratch> space;
};

/// One pass over all pieces.
class Passage {
 public:
  Passage(const ConvPlan& shape, Pass pass, bool bias, memory::data_type type)
      : shape_(shape),
        pass_(pass),
        bias_(bias),
        type_(type),
        fixed_(deterministic()),
        pieces_(pieces_of(shape, pass, fixed_)) {}
  /// False where oneDNN has no fast routine; nothing is computed then.
  bool prepare(Weights* weights) {
    if (prepare_pieces(weights)) return true;
    if (pieces_.front().plan.oh == shape_.oh || !has_row_pieces(shape_)) return false;
    pieces_ = cut(shape_, pass_, 1, shape_.oh);  // rows that reach far into the padding may be what is slow
    prepared_.clear();
    return prepare_pieces(weights);
  }
  bool fixed() const { return fixed_; }
  /// Calls `body(number of the piece, piece, what is prepared for it)`.
  template <class Body>
  void run(const Body& body) const {
    const auto one = [&](int64_t i) { body(i, pieces_[size_t(i)], *find(pieces_[size_t(i)].plan)); };
    if (fixed_)
      return parallel_for(count(), 1, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) one(i);
      });
    for (int64_t i = 0; i < count(); ++i) {
      if (i) poll_signals();
      one(i);
    }
  }
  /// Runs the primitive, on one thread where pieces are fixed.
  void execute(const Prepared& prepared, std::unordered_map<int, memory>&& arguments) const {
    dnnl::stream& queue = stream();
    std::optional<cpu::OneThread> alone;
    if (fixed_) alone.emplace();
    std::optional<WaitingParts> waiting;
    if (pass_ == Pass::Weights) waiting.emplace();
    const Scratch scratch(prepared.plan->scratch);
    arguments.emplace(DNNL_ARG_SCRATCHPAD, scratch.memory());
    prepared.plan->primitive.execute(queue, arguments);
  }
  int64_t count() const { return int64_t(pieces_.size()); }

 private:
  bool prepare_pieces(Weights* weights) {
    for (const Piece& piece : pieces_) {
      if (find(piece.plan)) continue;
      auto plan = plan_of({piece.plan, pass_, bias_, type_, fixed_ ? 1 : num_threads()});
      if (!plan->fast) return false;
      Prepared& made = prepared_.emplace_back(Prepared{piece.plan, std::move(plan), {}, {}});
      if (weights) made.weights = weights->in_layout(made.plan->weights, made.plan->user_weights, made.space);
    }
    return true;
  }
  const Prepared* find(const ConvPlan& shape) const {
    for (const Prepared& one : prepared_)
      if (one.shape == shape) return &one;
    return nullptr;
  }

  ConvPlan shape_;
  Pass pass_;
  bool bias_;
  memory::data_type type_;
  bool fixed_;
  std::vector<Piece> pieces_;
  std::vector<Prepared> prepared_;  // a handful of shapes
};

}  // namespace

template <class T>
bool conv_forward(const ConvPlan& shape, const T* x, Weights& weight, const float* bias, T* y) {
  return guarded(shape.deep() ? "conv3d" : "conv2d", [&] {
    Passage passage(shape, Pass::Forward, bias != nullptr, type_of<T>);
    if (!passage.prepare(&weight)) return false;
    passage.run([&](int64_t, const Piece& piece, const Prepared& by) {
      std::unordered_map<int, memory> arguments{{DNNL_ARG_SRC, wrap(by.plan->x, x + piece.x)},
                                                {DNNL_ARG_WEIGHTS, by.weights},
                                                {DNNL_ARG_DST, wrap(by.plan->y, y + piece.y)}};
      if (bias) arguments.emplace(DNNL_ARG_BIAS, wrap(by.plan->bias, bias));
      passage.execute(by, std::move(arguments));
    });
    return true;
  });
}

template <class T>
bool conv_backward_data(const ConvPlan& shape, const T* grad, Weights& weight, T* grad_x) {
  return guarded(shape.deep() ? "conv3d_backward" : "conv2d_backward", [&] {
    Passage passage(shape, Pass::Data, false, type_of<T>);
    if (!passage.prepare(&weight)) return false;
    passage.run([&](int64_t, const Piece& piece, const Prepared& by) {
      passage.execute(by, {{DNNL_ARG_DIFF_SRC, wrap(by.plan->x, grad_x + piece.x)},
                           {DNNL_ARG_WEIGHTS, by.weights},
                           {DNNL_ARG_DIFF_DST, wrap(by.plan->y, grad + piece.y)}});
    });
    return true;
  });
}

template <class T>
bool conv_backward_weights(const ConvPlan& shape, const T* x, const T* grad, float* grad_weight, float* grad_bias) {
  if (is_unwritten(shape)) return false;
  return guarded(shape.deep() ? "conv3d_backward" : "conv2d_backward", [&] {
    Passage passage(shape, Pass::Weights, grad_bias != nullptr, type_of<T>);
    if (!passage.prepare(nullptr)) return false;
    // The first piece writes the result, the others numbers that are added to it in the order of the pieces.
    const auto size = size_t(shape.o * (shape.c / shape.groups) * shape.kernel());
    const auto add = [&](const std::vector<float>& part) {
      for (size_t j = 0; j < std::min(size, part.size()); ++j) grad_weight[j] += part[j];
      for (size_t j = size; j < part.size(); ++j) grad_bias[j - size] += part[j];
    };
    std::vector<std::vector<float>> more(size_t(passage.count()));
    passage.run([&](int64_t i, const Piece& piece, const Prepared& by) {
      std::vector<float>& own = more[size_t(i)];
      if (i) own.resize(size + (grad_bias ? size_t(shape.o) : 0));
      float *const to = i ? own.data() : grad_weight, *const to_bias = i ? own.data() + size : grad_bias;
      const bool direct = by.plan->weights == by.plan->user_weights;
      const Scratch space(direct ? memory::desc() : by.plan->weights);
      void* const target = direct ? to : space.data();
      std::unordered_map<int, memory> arguments{{DNNL_ARG_SRC, wrap(by.plan->x, x + piece.x)},
                                                {DNNL_ARG_DIFF_DST, wrap(by.plan->y, grad + piece.y)},
                                                {DNNL_ARG_DIFF_WEIGHTS, wrap(by.plan->weights, target)}};
      if (grad_bias) arguments.emplace(DNNL_ARG_DIFF_BIAS, wrap(by.plan->bias, to_bias));
      passage.execute(by, std::move(arguments));
      if (!direct) reorder(by.plan->weights, target, by.plan->user_weights, to);
      if (passage.fixed()) return;
      add(own);
      own = {};
    });
    for (const std::vector<float>& part : more) add(part);
    return true;
  });
}

}  // namespace taeda::onednn

#else
namespace taeda::onednn {
template <class T>
bool conv_forward(const infer::ConvPlan&, const T*, Weights&, const float*, T*) {
  return false;
}
template <class T>
bool conv_backward_data(const infer::ConvPlan&, const T*, Weights&, T*) {
  return false;
}
template <class T>
bool conv_backward_weights(const infer::ConvPlan&, const T*, const T*, float*, float*) {
  return false;
}
}  // namespace taeda::onednn
#endif

namespace taeda::onednn {
#define TAEDA_INSTANTIATE(T)                                                                   \
  template bool conv_forward<T>(const infer::ConvPlan&, const T*, Weights&, const float*, T*); \
  template bool conv_backward_data<T>(const infer::ConvPlan&, const T*, Weights&, T*);         \
  template bool conv_backward_weights<T>(const infer::ConvPlan&, const T*, const T*, float*, float*);
TAEDA_INSTANTIATE(float)
TAEDA_INSTANTIATE(BFloat16)
#undef TAEDA_INSTANTIATE
}  // namespace taeda::onednn
