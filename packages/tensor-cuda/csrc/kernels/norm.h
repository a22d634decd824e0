// Gradients of normalisations, and normalisation of channels: each in one launch or two, a block for each row or
// channel.
#pragma once
#include "kernels/rows.h"

namespace taeda::cuda {

/// Of rows that were normalised as `of` says; `of.out` is the gradient of their input.
template <class C>
struct RowGradient {
  static constexpr int kThreads = 256, kHalvings = 8;
  using Shared = Found<C, 2>;
  struct Own {};
  Normalised of;
  Array grad;
  TAEDA_HD int phases() const { return kHalvings + 2; }
  TAEDA_HD C slope(int64_t row, int64_t i) const {
    const C g = load<C>(grad, row * of.length + i);
    return of.weight.data ? g * load<C>(of.weight, of.channel(row, i)) : g;
  }
  TAEDA_HD void run(int phase, int64_t row, int thread, Shared& shared, Own&) const {
    if (phase > 0 && phase <= kHalvings) return shared.halve(phase - 1, thread, false);
    const C mean = load<C>(of.mean, row), rstd = load<C>(of.rstd, row), count = C(of.length);
    C sum(0), product(0);
    for (int64_t i = thread; i < of.length; i += kThreads) {
      const C g = slope(row, i), x = (load<C>(of.in, row * of.length + i) - mean) * rstd;
      if (phase == 0) sum += g, product += g * x;
      else
        store<C>(of.out, row * of.length + i,
                 rstd * (g - shared.parts[0][0] / count - x * (shared.parts[1][0] / count)));
    }
    if (phase == 0) shared.parts[0][thread] = sum, shared.parts[1][thread] = product;
  }
};

/// Sums over the rows of a row-major matrix, of `grad` and of grad * (in - mean of the row) * rstd of the row, each
/// where it is wanted. A block has 32 columns, and one of `parts` portions of the rows.
template <class C>
struct ColumnSums {
  static constexpr int kThreads = 256, kColumns = 32, kLanes = kThreads / kColumns, kHalvings = 3;
  using Shared = Found<C, 2>;
  struct Own {};
  Array grad, in, mean, rstd, sums, products;  // of the last two a row for each portion
  int64_t rows, columns, parts;
  TAEDA_HD int phases() const { return kHalvings + 2; }
  TAEDA_HD void run(int phase, int64_t item, int thread, Shared& shared, Own&) const {
    if (phase > 0 && phase <= kHalvings) return shared.halve(phase - 1, thread, false);
    const int64_t part = item % parts, column = item / parts * kColumns + thread % kColumns;
    if (phase > 0) {
      if (thread >= kColumns || column >= columns) return;
      if (sums.data) store<C>(sums, part * columns + column, shared.parts[0][thread]);
      if (products.data) store<C>(products, part * columns + column, shared.parts[1][thread]);
      return;
    }
    C sum(0), product(0);
    for (int64_t row = part * kLanes + thread / kColumns; row < rows && column < columns; row += parts * kLanes) {
      const C g = load<C>(grad, row * columns + column);
      sum += g;
      if (in.data) product += g * (load<C>(in, row * columns + column) - load<C>(mean, row)) * load<C>(rstd, row);
    }
    shared.parts[0][thread] = sum, shared.parts[1][thread] = product;
  }
};

/// Channels of row-major (samples, channels, inner).
struct Channels {
  int64_t samples, channels, inner;
  TAEDA_HD int64_t count() const { return samples * inner; }
  TAEDA_HD int64_t place(int64_t channel, int64_t i) const {
    const int64_t sample = i / inner;
    return (sample * channels + channel) * inner + (i - sample * inner);
  }
};
/// (x - mean) * invstd * weight + bias for each channel, by the batch's statistics, which the running ones follow, or
/// by the running ones.
template <class C>
struct BatchNorm {
  static constexpr int kThreads = 256, kHalvings = 8;
  using Shared = Found<C, 1>;
  struct Own {
    C mean, inverse;
  };
  Channels of;
  Array in, weight, bias, running_mean, running_var, out, mean, inverse;
  double momentum, eps;
  int32_t training, reserved;
  TAEDA_HD int phases() const { return training ? 2 * kHalvings + 4 : 1; }
  TAEDA_HD void follow(const Array& running, int64_t channel, C now) const {
    if (!running.data || of.count() == 0) return;
    const C old = load<C>(running, channel);
    store<C>(running, channel, old * C(1 - momentum) + now * C(momentum));
  }
  TAEDA_HD void run(int phase, int64_t channel, int thread, Shared& shared, Own& own) const {
    C& part = shared.parts[0][thread];
    const int64_t count = of.count();
    if (training && phase < phases() - 1) {
      if (phase == kHalvings + 1) own.mean = shared.parts[0][0] / C(count);
      else if (phase == 0 || phase == kHalvings + 2) {
        part = C(0);
        for (int64_t i = thread; i < count; i += kThreads) {
          const C x = load<C>(in, of.place(channel, i));
          part += phase == 0 ? x : (x - own.mean) * (x - own.mean);
        }
      } else shared.halve(phase <= kHalvings ? phase - 1 : phase - kHalvings - 3, thread, false);
      return;
    }
    if (!training) own.mean = load<C>(running_mean, channel);
    const C variance = training ? shared.parts[0][0] / C(count) : load<C>(running_var, channel);
    own.inverse = C(1) / C(sqrt(variance + C(eps)));
    const C w = weight.data ? load<C>(weight, channel) : C(1), b = bias.data ? load<C>(bias, channel) : C(0);
    for (int64_t i = thread; i < count; i += kThreads) {
      const int64_t place = of.place(channel, i);
      store<C>(out, place, (load<C>(in, place) - own.mean) * own.inverse * w + b);
    }
    if (thread > 0) return;
    store<C>(mean, channel, own.mean);
    store<C>(inverse, channel, own.inverse);
    if (!training) return;
    follow(running_mean, channel, own.mean);
    follow(running_var, channel, variance * C(double(count) / double(count - 1)));
  }
};
/// Gradients of a channel's input, weight and bias, where they are wanted. With groups the statistics are those of a
/// sample's group of channels, else the channel's.
template <class C>
struct ChannelGradient {
  static constexpr int kThreads = 256, kHalvings = 8;
  using Shared = Found<C, 2>;
  struct Own {};
  Channels of;
  Array grad, in, weight, mean, inverse, out, out_weight, out_bias;
  int64_t groups;
  int32_t training, reserved;
  TAEDA_HD int phases() const { return kHalvings + 2; }
  TAEDA_HD int64_t statistics(int64_t channel, int64_t i) const {
    return groups == 0 ? channel : i / of.inner * groups + channel / (of.channels / groups);
  }
  TAEDA_HD C normal(int64_t channel, int64_t i) const {
    const int64_t at = statistics(channel, i);
    return (load<C>(in, of.place(channel, i)) - load<C>(mean, at)) * load<C>(inverse, at);
  }
  TAEDA_HD void run(int phase, int64_t channel, int thread, Shared& shared, Own&) const {
    if (phase > 0 && phase <= kHalvings) return shared.halve(phase - 1, thread, false);
    const int64_t count = of.count();
    if (phase == 0) {
      C sum(0), product(0);
      for (int64_t i = thread; i < count; i += kThreads) {
        const C g = load<C>(grad, of.place(channel, i));
        sum += g, product += g * normal(channel, i);
      }
      shared.parts[0][thread] = sum, shared.parts[1][thread] = product;
      return;
    }
    const C sum = shared.parts[0][0], product = shared.parts[1][0];
    if (thread == 0 && out_weight.data) store<C>(out_weight, channel, product);
    if (thread == 0 && out_bias.data) store<C>(out_bias, channel, sum);
    if (!out.data) return;
    const C scale = load<C>(inverse, channel) * (weight.data ? load<C>(weight, channel) : C(1));
    for (int64_t i = thread; i < count; i += kThreads) {
      const int64_t place = of.place(channel, i);
      C g = load<C>(grad, place);
      if (training) g = g - sum / C(count) - normal(channel, i) * (product / C(count));
      store<C>(out, place, g * scale);
    }
  }
};

}  // namespace taeda::cuda
