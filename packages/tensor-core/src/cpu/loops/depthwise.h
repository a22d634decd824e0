// Inner loops of convolutions whose channels each have a window of their own; pixels are rows of channels.
#pragma once
#include <cstdint>

namespace taeda::loops {

/// The taps of neighbouring results of one line.
template <class T>
struct WindowTaps {
  int64_t count;
  const T* const* pixels;   // where the first result reads
  const T* const* weights;  // of all channels
  int64_t step;             // elements from what a result reads to what the next one does
};

template <class T>
struct DepthwiseLoops {
  /// out[i * out_step + c] = start[c] + sum over t of weights[t][c] * pixels[t][i * step + c] for i < n, c < channels;
  /// a null `start` is 0.
  void (*sums)(const WindowTaps<T>& taps, const T* start, int64_t n, int64_t channels, T* out, int64_t out_step);
  /// sums[t * channels + c] += sum over i < n of grad[i * channels + c] * x[t * tap_step + i * step + c].
  void (*products)(const T* grad, const T* x, int64_t n, int64_t step, int64_t taps, int64_t tap_step, int64_t channels,
                   T* sums);
};
struct DepthwiseTable {
  DepthwiseLoops<float> of_float;
  DepthwiseLoops<double> of_double;
};

/// Declares the copy of one instruction set.
#define TAEDA_DEPTHWISE_LOOPS(ISA)       \
  namespace ISA {                        \
  extern const DepthwiseTable depthwise; \
  }
#ifdef TAEDA_ISA
TAEDA_DEPTHWISE_LOOPS(TAEDA_ISA)
#endif

/// Those for this machine (src/cpu/isa.cpp).
const DepthwiseTable& depthwise_table() noexcept;

template <class T>
const DepthwiseLoops<T>& depthwise_loops() noexcept {
  if constexpr (sizeof(T) == 4) return depthwise_table().of_float;
  else return depthwise_table().of_double;
}

}  // namespace taeda::loops
