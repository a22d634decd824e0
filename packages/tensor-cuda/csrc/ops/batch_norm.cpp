// Batch normalisation: over channels of images in either layout.
#include "kernels/batch_norm.h"

#include <algorithm>
#include <array>

#include "ops/layout.h"
#include "ops/read.h"

namespace taeda::cuda {
namespace {

Array array_of(const Tensor& tensor) { return tensor ? tensor.array() : Array{}; }

/// How many threads of packs lie beside each other over so many channels.
int32_t threads_across(int64_t packs) {
  int32_t across = 1;
  while (across < 32 && across < packs) across *= 2;
  return across;
}
/// Images as a fold over channels sees them, with memory for its parts.
class ChannelFold {
 public:
  ChannelFold(Layout layout, const Tensor& images) : layout_(layout) {
    int64_t inner = 1;
    for (int d = 2; d < images.ndim(); ++d) inner *= images.size(d);
    of_ = {images.size(0), images.size(1), inner};
    if (layout == Layout::ChannelsLast || inner == 1) of_ = {of_.samples * inner, of_.channels, 1};
    tiled_ = of_.inner == 1;
  }
  const Channels& of() const { return of_; }
  int64_t count() const { return of_.count(); }
  int64_t parts() const { return parts_; }
  Address partial() const { return partial_.address(); }

  /// Whether packs of 4 elements can be read.
  bool packed(std::initializer_list<const Tensor*> tensors) const {
    const int64_t width = tiled_ ? of_.channels : of_.inner;
    return width % 4 == 0 && std::ranges::all_of(tensors, [](const Tensor* t) {
             return t->address() % uint64_t(4 * t->item_size()) == 0;
           });
  }
  template <template <class> class State, class C>
  void run(const Call& call, std::initializer_list<const Tensor*> inputs, const Array& mean, const Array& inverse) {
    constexpr int64_t kWanted = 1056;  // blocks, enough for a large device
    ChannelInputs c{of_, {}, mean, inverse, 0, 1, packed(inputs), 1};
    int i = 0;
    for (const Tensor* t : inputs) c.in[i++] = t->array();
    int64_t blocks = of_.channels, longest = of_.samples;
    if (tiled_) {
      const int64_t wide = (of_.channels + (c.packed ? 3 : 0)) / (c.packed ? 4 : 1);
      c.across = threads_across(wide);
      blocks = (wide + c.across - 1) / c.across;
      longest = (of_.samples + 32 * (256 / c.across) - 1) / (32 * (256 / c.across));  // 32 rows a thread, or more
    }
    parts_ = c.parts = std::clamp<int64_t>((kWanted + blocks - 1) / blocks, 1, std::max<int64_t>(longest, 1));
    partial_ = call.empty({parts_ * of_.channels * int64_t(sizeof(State<C>))}, TAEDA_UINT8);
    c.partial = partial_.address();
    if (tiled_) call.launch(FoldTiles<State<C>, C>{c}, blocks * parts_);
    else call.launch(FoldPlanes<State<C>, C>{c}, blocks * parts_);
  }
  int64_t joins() const { return (of_.channels + 31) / 32; }

 private:
  Layout layout_;
  Channels of_{};
  bool tiled_ = false;
  int64_t parts_ = 1;
  Tensor partial_;
};
template <class C>
void normalise(const Call& call, const NormaliseChannels<C>& body) {
  constexpr int64_t pack = NormaliseTiles<C>::kPack;
  if (body.of.inner != 1 || !body.packed) return call.launch(body, body.items());
  const NormaliseTiles<C> tiles{body, threads_across((body.of.channels + pack - 1) / pack), 0};
  call.launch(tiles, tiles.items());
}

template <class C>
void forward(const Call& call) {
  const Tensor out = call.output(0), given = call.tensor(0), running_mean = call.tensor(3),
               running_var = call.tensor(4);
  const Tensor mean = call.output(1), inverse = call.output(2);
  const bool training = call.flag(5) || !running_mean;
  const Layout layout = layout_of({&given});
  const Tensor input = laid(call, layout, given, out.dtype());
  const Read weight(call, call.tensor(1)), bias(call, call.tensor(2)), old_mean(call, running_mean),
      old_var(call, running_var);
  const LaidTarget to(call, layout, out);
  const Target to_mean(call, mean), to_inverse(call, inverse);
  ChannelFold fold(layout, input);
  BatchStatistics<C> s{};
  s.channels = fold.of().channels;
  s.count = fold.count();
  s.mean = to_mean.array(), s.inverse = to_inverse.array();
  s.running_mean = old_mean.array(), s.running_var = old_var.array();
  s.momentum = call.real(6), s.eps = call.real(7);
  if (training) {
    fold.run<Moments, C>(call, {&input}, {}, {});
    s.partial = fold.partial(), s.parts = fold.parts();
    call.launch(s, fold.joins());
  } else {
    call.launch(KeptStatistics<C>{s}, s.channels);
  }
  normalise<C>(call, {fold.of(),
                      input.array(),
                      {},
                      to.array(),
                      s.mean,
                      s.inverse,
                      weight.array(),
                      bias.array(),
                      {},
                      {},
                      fold.packed({&input, &to.tensor()}),
                      0});
  to.done(), to_mean.done(), to_inverse.done();
  if (!training) return;
  write_back(call, running_mean, old_mean);
  write_back(call, running_var, old_var);
}
template <class C>
void backward(const Call& call) {
  const Tensor given = call.tensor(0), given_input = call.tensor(1);
  const int64_t mask = call.integer(6);
  const int dtype = given.dtype();
  const bool training = call.flag(5);
  const Layout layout = layout_of({&given_input, &given});
  const Tensor input = laid(call, layout, given_input, dtype), grad = laid(call, layout, given);
  const std::array<int64_t, 1> channels{input.size(1)};
  const Read weight(call, call.tensor(2)), mean(call, call.tensor(3)), inverse(call, call.tensor(4));
  Tensor made = mask & 1 ? empty_in(call, layout, input.sizes(), dtype) : Tensor();
  Tensor of_weight = mask & 2 ? call.empty(channels, dtype) : Tensor();
  Tensor of_bias = mask & 4 ? call.empty(channels, dtype) : Tensor();
  SlopeMeans<C> s{};
  Tensor means;
  ChannelFold fold(layout, input);
  if (channels[0] > 0 && (mask & 6 || (made && training))) {
    fold.run<Slopes, C>(call, {&grad, &input}, mean.array(), inverse.array());
    const int whole = dtype == TAEDA_FLOAT64 ? TAEDA_FLOAT64 : TAEDA_FLOAT32;
    means = call.empty({2, channels[0]}, whole);
    s.partial = fold.partial(), s.parts = fold.parts();
    s.channels = channels[0], s.count = fold.count();
    s.weight = array_of(of_weight), s.bias = array_of(of_bias);
    if (training) {
      s.mean_slope = s.mean_product = means.array();
      s.mean_product.data += uint64_t(channels[0] * means.item_size());
    }
    call.launch(s, fold.joins());
  }
  if (made && made.numel() > 0)
    normalise<C>(call, {fold.of(),
                        input.array(),
                        grad.array(),
                        made.array(),
                        mean.array(),
                        inverse.array(),
                        weight.array(),
                        {},
                        s.mean_slope,
                        s.mean_product,
                        fold.packed({&input, &grad, &made}),
                        0});
  if (made) call.result(0, std::move(made));
  if (of_weight) call.result(1, std::move(of_weight));
  if (of_bias) call.result(2, std::move(of_bias));
}
void native_batch_norm(const Call& call) {
  call.output(0).dtype() == TAEDA_FLOAT64 ? forward<double>(call) : forward<float>(call);
}
void batch_norm_backward(const Call& call) {
  call.tensor(0).dtype() == TAEDA_FLOAT64 ? backward<double>(call) : backward<float>(call);
}

}  // namespace

const std::vector<Operation>& batch_norm_operations() {
  static const std::vector<Operation> operations{{"batch_norm_backward", batch_norm_backward},
                                                 {"native_batch_norm", native_batch_norm}};
  return operations;
}

}  // namespace taeda::cuda
