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

/// Gradients of the weight and bias of a channel of row-major (samples, channels, inner), where they are wanted, by the
/// statistics of a sample's group of channels.
template <class C>
struct ChannelGradient {
  static constexpr int kThreads = 256, kHalvings = 8;
  using Shared = Found<C, 2>;
  struct Own {};
  int64_t samples, channels, inner, groups;
  Array grad, in, mean, inverse, out_weight, out_bias;
  TAEDA_HD int phases() const { return kHalvings + 2; }
  TAEDA_HD void run(int phase, int64_t channel, int thread, Shared& shared, Own&) const {
    if (phase > 0 && phase <= kHalvings) return shared.halve(phase - 1, thread, false);
    if (phase == 0) {
      C sum(0), product(0);
      for (int64_t i = thread; i < samples * inner; i += kThreads) {
        const int64_t sample = i / inner, place = (sample * channels + channel) * inner + (i - sample * inner);
        const int64_t group = sample * groups + channel / (channels / groups);
        const C g = load<C>(grad, place);
        sum += g, product += g * ((load<C>(in, place) - load<C>(mean, group)) * load<C>(inverse, group));
      }
      shared.parts[0][thread] = sum, shared.parts[1][thread] = product;
    } else if (thread == 0) {
      if (out_weight.data) store<C>(out_weight, channel, shared.parts[1][0]);
      if (out_bias.data) store<C>(out_bias, channel, shared.parts[0][0]);
    }
  }
};

}  // namespace taeda::cuda
