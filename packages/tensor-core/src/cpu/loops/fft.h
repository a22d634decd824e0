// Fourier transforms along lines of elements: one copy per instruction set.
#pragma once
#include <cstdint>

namespace taeda::loops {

/// Transforms of length `n` along `count` lines. Places and steps count elements, complex ones for complex memory.
struct FftLines {
  const void* in;
  void* out;
  const int64_t *in_at, *out_at;  // where each line begins
  int64_t count, in_step, out_step, n;
  bool forward;  // the sign of the exponent; complex to complex only
  bool full;     // real to complex: all n numbers, not n / 2 + 1
  double scale;
};
using FftFn = void (*)(const FftLines& lines);
/// For float32 and float64. A line is read before it is written, so that lines may be transformed in place.
struct FftTable {
  FftFn c2c[2], r2c[2], c2r[2];
};
/// Declares the copy of one instruction set.
#define TAEDA_FFT_LOOPS(ISA) \
  namespace ISA {            \
  extern const FftTable fft; \
  }
#ifdef TAEDA_ISA
TAEDA_FFT_LOOPS(TAEDA_ISA)
#endif

/// Those for this machine (src/cpu/isa.cpp).
const FftTable& fft_table() noexcept;

}  // namespace taeda::loops
