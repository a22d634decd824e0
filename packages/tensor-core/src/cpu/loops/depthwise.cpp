// Inner loops of convolutions whose channels each have a window of their own, for one instruction set.
//
// A vector of channels at a time: some results stay in registers while their taps pass by, or the sums of some taps
// while the results do. The order of the terms of a number does not depend on the vectors' width.
#include "cpu/loops/depthwise.h"

#include <algorithm>
#include <cstring>

#include "cpu/loops/lanes.h"

namespace taeda::loops::TAEDA_ISA {
namespace {

/// Vectors of so many bytes; the last one of a row of channels covers some of the one before again.
template <class T, int Bytes>
struct Columns {
  using Vector = typename Register<T, Bytes>::type;
  static constexpr int64_t kLanes = Bytes / int64_t(sizeof(T));

  static Vector load(const T* p) {
    Vector v;
    std::memcpy(&v, p, sizeof v);
    return v;
  }
  /// Calls `body(channel, lanes of it that were covered before)`, after `many(channel)` for as many vectors as it
  /// takes.
  template <int Many, class Body, class ManyBody>
  static void each(int64_t channels, const ManyBody& many, const Body& body) {
    int64_t c = 0;
    if constexpr (Many > 1)
      for (; c + Many * kLanes <= channels; c += Many * kLanes) many(c);
    for (; c + kLanes <= channels; c += kLanes) body(c, int64_t(0));
    if (c < channels) body(channels - kLanes, c - (channels - kLanes));
  }

  /// N results of M vectors of channels.
  template <int N, int M>
  static void some_sums(const WindowTaps<T>& taps, const T* start, int64_t at, int64_t c, T* out, int64_t out_step) {
    Vector sums[N][M];
    for (int k = 0; k < N; ++k)
      for (int j = 0; j < M; ++j) sums[k][j] = start ? load(start + c + j * kLanes) : Vector{};
    const int64_t step = taps.step;
    for (int64_t t = 0; t < taps.count; ++t) {
      const T* const x = taps.pixels[t] + at * step + c;
#pragma GCC unroll 8
      for (int j = 0; j < M; ++j) {
        const Vector weight = load(taps.weights[t] + c + j * kLanes);
#pragma GCC unroll 8
        for (int k = 0; k < N; ++k) sums[k][j] += weight * load(x + k * step + j * kLanes);
      }
    }
    for (int k = 0; k < N; ++k)
      for (int j = 0; j < M; ++j)
        std::memcpy(out + (at + k) * out_step + c + j * kLanes, &sums[k][j], sizeof sums[k][j]);
  }
  /// Eight sums at a time, as far as there are.
  template <int N>
  static void results(const WindowTaps<T>& taps, const T* start, int64_t at, int64_t channels, T* out,
                      int64_t out_step) {
    constexpr int many = 8 / N;
    each<many>(
        channels, [&](int64_t c) { some_sums<N, many>(taps, start, at, c, out, out_step); },
        [&](int64_t c, int64_t) { some_sums<N, 1>(taps, start, at, c, out, out_step); });
  }
  static void sums(const WindowTaps<T>& taps, const T* start, int64_t n, int64_t channels, T* out, int64_t out_step) {
    int64_t i = 0;
    for (; i + 8 <= n; i += 8) results<8>(taps, start, i, channels, out, out_step);
    if (n - i >= 4) results<4>(taps, start, i, channels, out, out_step), i += 4;
    if (n - i >= 2) results<2>(taps, start, i, channels, out, out_step), i += 2;
    if (n - i >= 1) results<1>(taps, start, i, channels, out, out_step);
  }

  /// N taps, in eight sums: where there are fewer taps, each has several.
  template <int N>
  static void some_products(const T* grad, const T* x, int64_t n, int64_t step, int64_t tap_step, int64_t channels,
                            int64_t covered, T* out) {
    constexpr int kTurns = 8 / N;
    Vector sums[8] = {};
    int64_t i = 0;
    for (; i + kTurns <= n; i += kTurns)
#pragma GCC unroll 8
      for (int u = 0; u < kTurns; ++u) {
        const Vector g = load(grad + (i + u) * channels);
#pragma GCC unroll 8
        for (int k = 0; k < N; ++k) sums[u * N + k] += g * load(x + (i + u) * step + k * tap_step);
      }
    for (; i < n; ++i) {
      const Vector g = load(grad + i * channels);
#pragma GCC unroll 8
      for (int k = 0; k < N; ++k) sums[k] += g * load(x + i * step + k * tap_step);
    }
#pragma GCC unroll 8
    for (int k = 0; k < N; ++k) {
      Vector total = sums[k];
#pragma GCC unroll 8
      for (int u = 1; u < kTurns; ++u) total += sums[u * N + k];
      for (int64_t lane = 0; lane < covered; ++lane) total[lane] = 0;
      total += load(out + k * channels);
      std::memcpy(out + k * channels, &total, sizeof total);
    }
  }
  static void products(const T* grad, const T* x, int64_t n, int64_t step, int64_t taps, int64_t tap_step,
                       int64_t channels, T* out) {
    const auto columns = [&](int64_t c, int64_t covered) {
      int64_t t = 0;
      const auto take = [&](auto some, int64_t count) {
        for (; t + count <= taps; t += count)
          some(grad + c, x + t * tap_step + c, n, step, tap_step, channels, covered, out + t * channels + c);
      };
      take(some_products<8>, 8);
      take(some_products<4>, 4);
      take(some_products<3>, 3);
      take(some_products<2>, 2);
      take(some_products<1>, 1);
    };
    each<1>(channels, nullptr, columns);
  }
};

template <class T, class Body>
void with_columns(int64_t channels, const Body& body) {
  constexpr int64_t size = sizeof(T);
  if (channels * size >= kRegister) body(Columns<T, kRegister>());
  else if (kRegister > 16 && channels * size >= 16) body(Columns<T, 16>());
  else body(Columns<T, int(size)>());
}
template <class T>
void sums(const WindowTaps<T>& taps, const T* start, int64_t n, int64_t channels, T* out, int64_t out_step) {
  with_columns<T>(channels, [&](auto by) { by.sums(taps, start, n, channels, out, out_step); });
}
template <class T>
void products(const T* grad, const T* x, int64_t n, int64_t step, int64_t taps, int64_t tap_step, int64_t channels,
              T* out) {
  with_columns<T>(channels, [&](auto by) { by.products(grad, x, n, step, taps, tap_step, channels, out); });
}

}  // namespace

constinit const DepthwiseTable depthwise{{sums<float>, products<float>}, {sums<double>, products<double>}};

}  // namespace taeda::loops::TAEDA_ISA
