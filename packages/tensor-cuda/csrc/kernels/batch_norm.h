// Normalisation of channels over a batch: moments of each channel by many blocks, which a second launch joins in order,
// and one pass over the elements. Images lie row by row, or with their channels beside each other.
#pragma once
#include "kernels/elementwise.h"

namespace taeda::cuda {

/// Elements are (samples, channels, inner), row-major. Images whose channels lie beside each other have an inner of 1.
struct Channels {
  int64_t samples, channels, inner;
  TAEDA_HD int64_t count() const { return samples * inner; }
};

// --- what is found of a channel ---

/// Mean and sum of squared deviations. Parts are joined after Chan, Golub and LeVeque, "Updating formulae and a
/// pairwise algorithm for computing sample variances", 1979, so that a large mean costs no digits.
template <class C>
struct Moments {
  static constexpr int kInputs = 1;
  C count, mean, squares;
  TAEDA_HD static Moments start() { return {C(0), C(0), C(0)}; }
  template <int K>
  TAEDA_HD void add(const C (&x)[1][K], C, C) {
    C sum(0), squares_of(0);
    TAEDA_UNROLL
    for (int k = 0; k < K; ++k) sum += x[0][k];
    const C middle = sum / C(K);
    TAEDA_UNROLL
    for (int k = 0; k < K; ++k) squares_of += (x[0][k] - middle) * (x[0][k] - middle);
    *this = join(*this, {C(K), middle, squares_of});
  }
  TAEDA_HD static Moments join(Moments a, Moments b) {
    if (b.count == C(0)) return a;
    if (a.count == C(0)) return b;
    const C both = a.count + b.count, gap = b.mean - a.mean, share = b.count / both;
    return {both, a.mean + gap * share, a.squares + b.squares + gap * gap * a.count * share};
  }
};
/// Sums of gradients, and of their products with what was normalised.
template <class C>
struct Slopes {
  static constexpr int kInputs = 2;
  double sum, product;
  TAEDA_HD static Slopes start() { return {0, 0}; }
  template <int K>
  TAEDA_HD void add(const C (&x)[2][K], C mean, C inverse) {
    C some(0), products(0);
    TAEDA_UNROLL
    for (int k = 0; k < K; ++k) {
      some += x[0][k];
      products += x[0][k] * ((x[1][k] - mean) * inverse);
    }
    sum += double(some), product += double(products);
  }
  TAEDA_HD static Slopes join(Slopes a, Slopes b) { return {a.sum + b.sum, a.product + b.product}; }
};

/// What a fold over channels reads: one input, or gradient and input, of one element type.
struct ChannelInputs {
  Channels of;
  Array in[2], mean, inverse;
  Address partial;  // a state for each part and channel
  int64_t parts;
  int32_t packed, across;  // whether packs of 4 can be read; threads beside each other (a power of 2)
};

/// Channels beside each other: threads beside each other have channels (V of them each) beside each other, a block has
/// `across` such and the rows of its part.
template <class State, class C>
struct FoldTiles {
  static constexpr int kThreads = 256, kPack = 4, kRows = 4, kHalvings = 8;
  ChannelInputs c;
  struct Shared {
    State states[kPack][kThreads];
  };
  struct Own {};
  TAEDA_HD int width() const { return c.packed ? kPack : 1; }
  TAEDA_HD int64_t tiles() const { return (c.of.channels + c.across * width() - 1) / (c.across * width()); }
  TAEDA_HD int phases() const { return kHalvings + 2; }
  template <class T, int V>
  TAEDA_HD void gather(int64_t part, int64_t channel, int row, int down, State (&states)[V]) const {
    const int64_t rows = c.of.samples, step = c.parts * down;
    C mean[V], inverse[V];
    TAEDA_UNROLL
    for (int v = 0; v < V; ++v) {
      mean[v] = c.mean.data ? load<C>(c.mean, channel + v) : C(0);
      inverse[v] = c.inverse.data ? load<C>(c.inverse, channel + v) : C(1);
    }
    int64_t r = part * down + row;
    for (; r + (kRows - 1) * step < rows; r += kRows * step) {
      C x[State::kInputs][kRows][V];
      TAEDA_UNROLL
      for (int i = 0; i < State::kInputs; ++i) {
        TAEDA_UNROLL
        for (int k = 0; k < kRows; ++k)
          fetch_pack<C, T, V>(c.in[i].data, (r + k * step) * c.of.channels + channel, x[i][k]);
      }
      TAEDA_UNROLL
      for (int v = 0; v < V; ++v) {
        C column[State::kInputs][kRows];
        TAEDA_UNROLL
        for (int i = 0; i < State::kInputs; ++i) {
          TAEDA_UNROLL
          for (int k = 0; k < kRows; ++k) column[i][k] = x[i][k][v];
        }
        states[v].template add<kRows>(column, mean[v], inverse[v]);
      }
    }
    for (; r < rows; r += step) {
      TAEDA_UNROLL
      for (int v = 0; v < V; ++v) {
        C one[State::kInputs][1];
        for (int i = 0; i < State::kInputs; ++i)
          one[i][0] = number_as<C>(at<const T>(c.in[i].data)[r * c.of.channels + channel + v]);
        states[v].template add<1>(one, mean[v], inverse[v]);
      }
    }
  }
  template <int V>
  TAEDA_HD void begin(int64_t item, int thread, Shared& shared) const {
    const int64_t channel = (item % tiles() * c.across + thread % c.across) * V;
    State states[V];
    TAEDA_UNROLL
    for (int v = 0; v < V; ++v) states[v] = State::start();
    if (channel < c.of.channels)
      with_usual_type<C>(c.in[0].dtype, [&]<class T>() {
        gather<T, V>(item / tiles(), channel, thread / c.across, kThreads / c.across, states);
      });
    TAEDA_UNROLL
    for (int v = 0; v < V; ++v) shared.states[v][thread] = states[v];
  }
  TAEDA_HD void run(int phase, int64_t item, int thread, Shared& shared, Own&) const {
    if (phase == 0) return c.packed ? begin<kPack>(item, thread, shared) : begin<1>(item, thread, shared);
    const int half = kThreads >> phase, wide = width();
    if (phase <= kHalvings) {
      if (half < c.across || thread >= half) return;
      for (int v = 0; v < wide; ++v)
        shared.states[v][thread] = State::join(shared.states[v][thread], shared.states[v][thread + half]);
      return;
    }
    const int64_t channel = (item % tiles() * c.across + thread) * wide;
    if (thread >= c.across || channel >= c.of.channels) return;
    for (int v = 0; v < wide; ++v)
      at<State>(c.partial)[item / tiles() * c.of.channels + channel + v] = shared.states[v][thread];
  }
};

/// Row-major: a block for each part of a channel, which has every `parts`th sample.
template <class State, class C>
struct FoldPlanes {
  static constexpr int kThreads = 256, kPack = 4, kAtOnce = 4, kHalvings = 8;
  ChannelInputs c;
  struct Shared {
    State states[kThreads];
  };
  struct Own {};
  TAEDA_HD int phases() const { return kHalvings + 2; }
  template <class T, int V>
  TAEDA_HD State gather(int64_t part, int64_t channel, int thread) const {
    const C mean = c.mean.data ? load<C>(c.mean, channel) : C(0);
    const C inverse = c.inverse.data ? load<C>(c.inverse, channel) : C(1);
    State state = State::start();
    const int64_t packs = c.of.inner / V, samples = (c.of.samples - part + c.parts - 1) / c.parts;
    const int64_t all = samples * packs;
    const auto place = [&](int64_t u) {
      const int64_t sample = quotient(u, packs);
      return ((part + sample * c.parts) * c.of.channels + channel) * c.of.inner + (u - sample * packs) * V;
    };
    int64_t u = thread;
    for (; u + (kAtOnce - 1) * kThreads < all; u += kAtOnce * kThreads) {
      C x[State::kInputs][kAtOnce][V];
      TAEDA_UNROLL
      for (int k = 0; k < kAtOnce; ++k) {
        const int64_t from = place(u + k * kThreads);
        TAEDA_UNROLL
        for (int i = 0; i < State::kInputs; ++i) fetch_pack<C, T, V>(c.in[i].data, from, x[i][k]);
      }
      C flat[State::kInputs][kAtOnce * V];
      TAEDA_UNROLL
      for (int i = 0; i < State::kInputs; ++i) {
        TAEDA_UNROLL
        for (int k = 0; k < kAtOnce * V; ++k) flat[i][k] = x[i][k / V][k % V];
      }
      state.template add<kAtOnce * V>(flat, mean, inverse);
    }
    for (; u < all; u += kThreads) {
      C x[State::kInputs][V];
      for (int i = 0; i < State::kInputs; ++i) fetch_pack<C, T, V>(c.in[i].data, place(u), x[i]);
      state.template add<V>(x, mean, inverse);
    }
    return state;
  }
  TAEDA_HD void run(int phase, int64_t item, int thread, Shared& shared, Own&) const {
    const int64_t channel = item % c.of.channels, part = item / c.of.channels;
    if (phase == 0) {
      State state = State::start();
      with_usual_type<C>(c.in[0].dtype, [&]<class T>() {
        state = c.packed ? gather<T, kPack>(part, channel, thread) : gather<T, 1>(part, channel, thread);
      });
      shared.states[thread] = state;
    } else if (phase <= kHalvings) {
      const int half = kThreads >> phase;
      if (thread < half) shared.states[thread] = State::join(shared.states[thread], shared.states[thread + half]);
    } else if (thread == 0) {
      at<State>(c.partial)[item] = shared.states[0];
    }
  }
};

// --- parts of channels are joined: 8 threads take turns at a channel's parts, whose order is fixed ---

template <class State>
struct JoinParts {
  static constexpr int kThreads = 256, kAcross = 32, kDown = kThreads / kAcross, kHalvings = 3;
  struct Shared {
    State states[kThreads];
  };
};
/// From moments to statistics, which the running ones follow.
template <class C>
struct BatchStatistics : JoinParts<Moments<double>> {
  using Shared = JoinParts<Moments<double>>::Shared;
  struct Own {};
  Address partial;
  int64_t parts, channels, count;
  Array mean, inverse, running_mean, running_var;
  double momentum, eps;
  TAEDA_HD int phases() const { return kHalvings + 2; }
  TAEDA_HD void follow(const Array& running, int64_t channel, double now) const {
    if (!running.data || count == 0) return;
    const C old = load<C>(running, channel);
    store<C>(running, channel, old * C(1 - momentum) + C(now) * C(momentum));
  }
  TAEDA_HD void run(int phase, int64_t item, int thread, Shared& shared, Own&) const {
    const int64_t channel = item * kAcross + thread % kAcross;
    if (phase == 0) {
      auto state = Moments<double>::start();
      for (int64_t part = thread / kAcross; part < parts && channel < channels; part += kDown) {
        const auto some = at<const Moments<C>>(partial)[part * channels + channel];
        state = Moments<double>::join(state, {double(some.count), double(some.mean), double(some.squares)});
      }
      shared.states[thread] = state;
    } else if (phase <= kHalvings) {
      const int half = kThreads >> phase;
      if (thread < half)
        shared.states[thread] = Moments<double>::join(shared.states[thread], shared.states[thread + half]);
    } else if (thread < kAcross && channel < channels) {
      const Moments<double> found = shared.states[thread];
      const double variance = found.squares / double(count);
      store<C>(mean, channel, C(count ? found.mean : found.mean / double(count)));
      store<C>(inverse, channel, C(1 / sqrt(variance + eps)));
      follow(running_mean, channel, found.mean);
      follow(running_var, channel, variance * (double(count) / double(count - 1)));
    }
  }
};
/// The running statistics as those of a batch.
template <class C>
struct KeptStatistics {
  BatchStatistics<C> s;
  TAEDA_HD void operator()(int64_t channel) const {
    store<C>(s.mean, channel, load<C>(s.running_mean, channel));
    store<C>(s.inverse, channel, C(1) / C(sqrt(load<C>(s.running_var, channel) + C(s.eps))));
  }
};
/// From slopes to the gradients of weight and bias, and means that the input's gradient is made with.
template <class C>
struct SlopeMeans : JoinParts<Slopes<C>> {
  using Joined = JoinParts<Slopes<C>>;
  using Shared = typename Joined::Shared;
  using Joined::kAcross, Joined::kDown, Joined::kHalvings, Joined::kThreads;
  struct Own {};
  Address partial;
  int64_t parts, channels, count;
  Array weight, bias, mean_slope, mean_product;
  TAEDA_HD int phases() const { return kHalvings + 2; }
  TAEDA_HD void run(int phase, int64_t item, int thread, Shared& shared, Own&) const {
    const int64_t channel = item * kAcross + thread % kAcross;
    if (phase == 0) {
      auto state = Slopes<C>::start();
      for (int64_t part = thread / kAcross; part < parts && channel < channels; part += kDown)
        state = Slopes<C>::join(state, at<const Slopes<C>>(partial)[part * channels + channel]);
      shared.states[thread] = state;
    } else if (phase <= kHalvings) {
      const int half = kThreads >> phase;
      if (thread < half) shared.states[thread] = Slopes<C>::join(shared.states[thread], shared.states[thread + half]);
    } else if (thread < kAcross && channel < channels) {
      const Slopes<C> found = shared.states[thread];
      if (weight.data) store<C>(weight, channel, C(found.product));
      if (bias.data) store<C>(bias, channel, C(found.sum));
      if (mean_slope.data) store<C>(mean_slope, channel, C(found.sum / double(count)));
      if (mean_product.data) store<C>(mean_product, channel, C(found.product / double(count)));
    }
  }
};

// --- one pass over the elements ---

/// An element is (x - mean) * inverse * weight + bias; as a gradient (g - mean slope - normal * mean product) * inverse
/// * weight, without the means where the statistics were not the batch's.
template <class C>
struct NormaliseChannels {
  static constexpr int kPack = 4, kPacks = 4;
  Channels of;
  Array in, grad, out, mean, inverse, weight, bias, mean_slope, mean_product;
  int32_t packed, reserved;
  TAEDA_HD int64_t count() const { return of.count() * of.channels; }
  /// What is known of a channel.
  struct Known {
    C middle, scale, weight, added, product;
  };
  TAEDA_HD Known known(int64_t channel) const {
    const bool slopes = mean_slope.data != 0;
    return {load<C>(mean, channel), load<C>(inverse, channel), weight.data ? load<C>(weight, channel) : C(1),
            slopes      ? load<C>(mean_slope, channel)
            : bias.data ? load<C>(bias, channel)
                        : C(0),
            slopes ? load<C>(mean_product, channel) : C(0)};
  }
  TAEDA_HD C one(const Known& c, C x, C g) const {
    if (!grad.data) return (x - c.middle) * c.scale * c.weight + c.added;
    if (mean_slope.data) g = g - c.added - (x - c.middle) * c.scale * c.product;
    return g * (c.scale * c.weight);
  }
  /// Elements from `first` on, of which those of a pack follow each other within a channel and packs are so far apart.
  template <class T, int V, int P>
  TAEDA_HD void take(int64_t first, int64_t step) const {
    C x[P][V], g[P][V];
    TAEDA_UNROLL
    for (int j = 0; j < P; ++j) fetch_pack<C, T, V>(in.data, first + j * step, x[j]);
    if (grad.data) {
      TAEDA_UNROLL
      for (int j = 0; j < P; ++j) fetch_pack<C, T, V>(grad.data, first + j * step, g[j]);
    }
    TAEDA_UNROLL
    for (int j = 0; j < P; ++j) {
      const int64_t i = first + j * step, plane = quotient(i, of.inner);
      const Known channel = known(plane - quotient(plane, of.channels) * of.channels);
      C y[V];
      TAEDA_UNROLL
      for (int v = 0; v < V; ++v) y[v] = one(channel, x[j][v], grad.data ? g[j][v] : C(0));
      put_pack<C, T, V>(out.data, i, y);
    }
  }
  template <class T>
  TAEDA_HD void chunk(int64_t item) const {
    const int64_t n = count(), step = int64_t(kEachThreads) * kPack;
    const int64_t first = (item / kEachThreads * kPacks * kEachThreads + item % kEachThreads) * kPack;
    if (packed && first + (kPacks - 1) * step + kPack <= n) return take<T, kPack, kPacks>(first, step);
    for (int j = 0; j < kPacks; ++j)
      for (int64_t i = first + j * step; i < first + j * step + kPack && i < n; ++i) take<T, 1, 1>(i, 0);
  }
  TAEDA_HD void operator()(int64_t item) const {
    with_usual_type<C>(in.dtype, [&]<class T>() { chunk<T>(item); });
  }
  int64_t items() const {
    const int64_t tile = int64_t(kPack) * kPacks * kEachThreads;
    return (count() + tile - 1) / tile * kEachThreads;
  }
};
/// The same where channels lie beside each other and packs of them can be read: a thread keeps what it knows of its
/// channels for several rows.
template <class C>
struct NormaliseTiles {
  static constexpr int kPack = 4, kAtOnce = 4, kGroups = 4;
  NormaliseChannels<C> n;
  int32_t across, reserved;  // threads beside each other (a power of 2)
  TAEDA_HD int64_t tiles() const { return (n.of.channels + across * kPack - 1) / (across * kPack); }
  TAEDA_HD int64_t down() const { return kEachThreads / across; }
  template <class T>
  TAEDA_HD void with(int64_t row, int64_t channel) const {
    const bool slopes = n.mean_slope.data != 0, backward = n.grad.data != 0;
    C middle[kPack], scale[kPack], added[kPack], factor[kPack];
    TAEDA_UNROLL
    for (int v = 0; v < kPack; ++v) {
      const C inverse = load<C>(n.inverse, channel + v);
      middle[v] = load<C>(n.mean, channel + v);
      scale[v] = inverse * (n.weight.data ? load<C>(n.weight, channel + v) : C(1));
      added[v] = slopes ? load<C>(n.mean_slope, channel + v) : n.bias.data ? load<C>(n.bias, channel + v) : C(0);
      factor[v] = slopes ? inverse * load<C>(n.mean_product, channel + v) : C(0);
    }
    for (int group = 0; group < kGroups; ++group) {
      C x[kAtOnce][kPack], g[kAtOnce][kPack] = {};
      int64_t place[kAtOnce];
      TAEDA_UNROLL
      for (int j = 0; j < kAtOnce; ++j) {
        const int64_t r = row + (group * kAtOnce + j) * down();
        place[j] = r < n.of.samples ? r * n.of.channels + channel : -1;
        if (place[j] < 0) continue;
        fetch_pack<C, T, kPack>(n.in.data, place[j], x[j]);
        if (backward) fetch_pack<C, T, kPack>(n.grad.data, place[j], g[j]);
      }
      TAEDA_UNROLL
      for (int j = 0; j < kAtOnce; ++j) {
        if (place[j] < 0) continue;
        C y[kPack];
        TAEDA_UNROLL
        for (int v = 0; v < kPack; ++v) {
          const C off = x[j][v] - middle[v];
          y[v] = backward ? (slopes ? g[j][v] - added[v] - off * factor[v] : g[j][v]) * scale[v]
                          : off * scale[v] + added[v];
        }
        put_pack<C, T, kPack>(n.out.data, place[j], y);
      }
    }
  }
  TAEDA_HD void operator()(int64_t item) const {
    const int64_t block = quotient(item, kEachThreads), part = quotient(block, tiles());
    const int lane = int(item - block * kEachThreads);
    const int64_t channel = ((block - part * tiles()) * across + lane % across) * kPack;
    const int64_t row = part * (down() * kAtOnce * kGroups) + lane / across;
    if (channel >= n.of.channels || row >= n.of.samples) return;
    with_usual_type<C>(n.in.dtype, [&]<class T>() { with<T>(row, channel); });
  }
  int64_t items() const {
    const int64_t rows = down() * kAtOnce * kGroups;
    return tiles() * ((n.of.samples + rows - 1) / rows) * kEachThreads;
  }
};

}  // namespace taeda::cuda
