// Random numbers: Philox 4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011), a counter for
// each element, so that they do not depend on how many threads draw.
#pragma once
#include "kernels/elementwise.h"

namespace taeda::cuda {

struct Philox {
  uint64_t seed, offset;
  Address state;  // of a recorded kernel: where the seed of a run lies, and the place from which the offset counts
  struct Words {
    uint32_t w[4];
  };
  /// Random bits of an element; `turn` tells those of one element apart.
  TAEDA_HD Words words(int64_t element, uint32_t turn = 0) const {
    const uint64_t* const run = state ? at<const uint64_t>(state) : nullptr;
    const uint64_t place = offset + uint64_t(element) + (run ? run[1] : 0), of = run ? run[0] : seed;
    uint32_t x[4] = {uint32_t(place), uint32_t(place >> 32), turn, 0};
    uint32_t key[2] = {uint32_t(of), uint32_t(of >> 32)};
    for (int round = 0; round < 10; ++round) {
      const uint64_t a = uint64_t(0xd2511f53u) * x[0], b = uint64_t(0xcd9e8d57u) * x[2];
      const uint32_t y[4] = {uint32_t(b >> 32) ^ x[1] ^ key[0], uint32_t(b), uint32_t(a >> 32) ^ x[3] ^ key[1],
                             uint32_t(a)};
      for (int k = 0; k < 4; ++k) x[k] = y[k];
      key[0] += 0x9e3779b9u;
      key[1] += 0xbb67ae85u;
    }
    return {{x[0], x[1], x[2], x[3]}};
  }
  TAEDA_HD uint64_t bits(int64_t element, uint32_t turn = 0) const {
    const Words x = words(element, turn);
    return uint64_t(x.w[0]) << 32 | x.w[1];
  }
  /// In [0, 1), with so many bits.
  TAEDA_HD double unit(int64_t element, uint32_t turn = 0, int digits = 53) const {
    return double(bits(element, turn) >> (64 - digits)) *
           (digits == 53 ? 0x1p-53 : 1.0 / double(uint64_t(1) << digits));
  }
};

/// Before a run of a graph: seed and first place of its numbers.
struct SetNumbers {
  Address state;
  uint64_t seed, offset;
  TAEDA_HD void operator()(int64_t i) const { at<uint64_t>(state)[i] = i == 0 ? seed : offset; }
};

/// What a number is made of that is drawn for each element of a row-major output; `a` and `b` are its parameters.
struct Draw {
  Philox philox;
  Array out, rates;
  double a, b;
  int64_t low;
  uint64_t range;  // 0: all of 64 bits
  int32_t digits, reserved;
  Report report;
};
/// As many bits as the type keeps, so that rounding never gives the end.
struct DrawUniform {
  Draw d;
  TAEDA_HD void operator()(int64_t i) const {
    store<double>(d.out, i, d.a + (d.b - d.a) * d.philox.unit(i, 0, d.digits));
  }
};
/// Keeps elements, multiplied by a scale, with a probability of so many 2^-32, and says which: of the four words of a
/// counter each of four elements takes one. Row-major; without `in` there is the mask alone.
template <class C>
struct Dropout {
  static constexpr int kPack = 4;
  Philox philox;
  Array in, out;
  Address mask;
  int64_t n;
  uint64_t kept;
  C scale;
  int32_t packed, reserved;
  template <class T>
  TAEDA_HD void pack(int64_t first, const bool (&keep)[kPack]) const {
    put_pack<bool, bool, kPack>(mask, first, keep);
    if (!in.data) return;
    C x[kPack];
    fetch_pack<C, T, kPack>(in.data, first, x);
    TAEDA_UNROLL
    for (int v = 0; v < kPack; ++v) x[v] = x[v] * C(keep[v]) * scale;
    put_pack<C, T, kPack>(out.data, first, x);
  }
  TAEDA_HD void operator()(int64_t item) const {
    const Philox::Words x = philox.words(item);
    const int64_t first = item * kPack;
    bool keep[kPack];
    TAEDA_UNROLL
    for (int v = 0; v < kPack; ++v) keep[v] = x.w[v] < kept;
    if (packed && first + kPack <= n && with_usual_type<C>(out.dtype, [&]<class T>() { pack<T>(first, keep); })) return;
    for (int v = 0; v < kPack && first + v < n; ++v) {
      at<bool>(mask)[first + v] = keep[v];
      if (in.data) store<C>(out, first + v, load<C>(in, first + v) * C(keep[v]) * scale);
    }
  }
};
struct DrawIntegers {
  Draw d;
  TAEDA_HD void operator()(int64_t i) const {
    const uint64_t bits = d.philox.bits(i), offset = d.range ? bits % d.range : bits;
    store<int64_t>(d.out, i, int64_t(uint64_t(d.low) + offset));
  }
};
struct DrawTruths {
  Draw d;
  TAEDA_HD void operator()(int64_t i) const { store<bool>(d.out, i, d.philox.unit(i) < d.a); }
};
/// By Box and Muller: of each pair of uniform numbers one normal one.
struct DrawNormal {
  Draw d;
  TAEDA_HD void operator()(int64_t i) const {
    const Philox::Words x = d.philox.words(i);
    const double u = (double(uint64_t(x.w[0]) << 21 | x.w[1] >> 11) + 1) * 0x1p-53;
    const double v = double(uint64_t(x.w[2]) << 21 | x.w[3] >> 11) * 0x1p-53;
    const double size = sqrt(-2 * log(u)), turn = 6.28318530717958647692 * v;
    store<double>(d.out, i, d.a + d.b * size * cos(turn));
  }
};
struct DrawExponential {
  Draw d;
  TAEDA_HD void operator()(int64_t i) const { store<double>(d.out, i, -log1p(-d.philox.unit(i)) / d.a); }
};
struct DrawCauchy {
  Draw d;
  TAEDA_HD void operator()(int64_t i) const {
    store<double>(d.out, i, d.a + d.b * tan(3.14159265358979323846 * (d.philox.unit(i) - 0.5)));
  }
};
/// Of so many trials the last one is the first success, each of which has a chance of 1 - exp(1 / a).
struct DrawTrials {
  Draw d;
  TAEDA_HD void operator()(int64_t i) const {
    const double trials = ceil(log1p(-d.philox.unit(i)) * d.a);
    store<double>(d.out, i, trials > 1 ? trials : 1);
  }
};
/// Knuth's product of uniform numbers, in portions that do not underflow.
struct DrawPoisson {
  Draw d;
  TAEDA_HD void operator()(int64_t i) const {
    const double rate = load<double>(d.rates, i);
    if (!(rate >= 0)) return d.report(Wrong::Rate, loops::TAEDA_ISA::bit_cast<int64_t>(rate));
    double count = 0;
    uint32_t turn = 0;
    for (double left = rate; left > 0; left -= 500) {
      const double least = exp(-(left < 500 ? left : 500));
      for (double p = d.philox.unit(i, turn++); p > least; p *= d.philox.unit(i, turn++)) ++count;
    }
    store<double>(d.out, i, count);
  }
};
struct FillRange {
  Array out;
  Number start, step;
  TAEDA_HD void operator()(int64_t i) const {
    if (out.dtype <= TAEDA_UINT64)
      store<int64_t>(out, i, int64_t(uint64_t(start.whole) + uint64_t(i) * uint64_t(step.whole)));
    else store<double>(out, i, start.re + double(i) * step.re);
  }
};

}  // namespace taeda::cuda
