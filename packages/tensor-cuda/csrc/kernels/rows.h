// Operators of whole rows, a block for each: softmax, layer normalisation and their gradients, each in one launch.
#pragma once
#include "kernels/elementwise.h"

namespace taeda::cuda {

/// What the threads of a block found, halved step by step in as many phases.
template <class C, int Count>
struct Found {
  static constexpr int kThreads = 256, kHalvings = 8;
  C parts[Count][kThreads];
  /// `larger` keeps the larger one, or NaN, in place of the sum.
  TAEDA_HD void halve(int step, int thread, bool larger) {
    const int half = kThreads >> (step + 1);
    for (int k = 0; thread < half && k < Count; ++k) {
      const C a = parts[k][thread], b = parts[k][thread + half];
      parts[k][thread] = larger ? (b > a || b != b ? b : a) : C(a + b);
    }
  }
};
/// Rows as they lie: element i of row r is at begin.offset(r) + i * step. Without an array they are not there.
struct Rows {
  Walk begin;
  int64_t step;
  Array array;
  template <class C>
  TAEDA_HD C get(int64_t row, int64_t i) const {
    return load<C>(array, begin.offset(row) + i * step);
  }
  template <class C>
  TAEDA_HD void put(int64_t row, int64_t i, C value) const {
    store<C>(array, begin.offset(row) + i * step, value);
  }
};

/// Calls `see(i, x)` for those elements of a row that are one of `threads` threads' share; what lies beside each other
/// is read in packs, several before the first is used.
template <class C, class See>
TAEDA_HD inline void over_row(Array a, int64_t first, int64_t step, int64_t length, int thread, int threads,
                              const See& see) {
  constexpr int kPack = 4, kAtOnce = 2;
  int64_t done = 0;
  if (step == 1)
    with_usual_type<C>(a.dtype, [&]<class T>() {
      const Address begin = a.data + uint64_t(first) * sizeof(T);
      if (begin % (kPack * sizeof(T)) != 0) return;
      const int64_t packs = length / kPack;
      for (int64_t u = thread; u < packs; u += kAtOnce * threads) {
        C x[kAtOnce][kPack];
        TAEDA_UNROLL
        for (int k = 0; k < kAtOnce; ++k)
          if (u + k * threads < packs) fetch_pack<C, T, kPack>(begin, (u + k * threads) * kPack, x[k]);
        TAEDA_UNROLL
        for (int k = 0; k < kAtOnce; ++k)
          for (int v = 0; v < kPack && u + k * threads < packs; ++v) see((u + k * threads) * kPack + v, x[k][v]);
      }
      done = packs * kPack;
    });
  for (int64_t i = done + thread; i < length; i += threads) see(i, load<C>(a, first + i * step));
}
/// Puts `make(i, x)` for each x of the row's share into another row.
template <class C, class Make>
TAEDA_HD inline void map_row(Array from, int64_t first, int64_t step, Array to, int64_t first_to, int64_t step_to,
                             int64_t length, int thread, int threads, const Make& make) {
  constexpr int kPack = 4;
  int64_t done = 0;
  if (step == 1 && step_to == 1 && from.dtype == to.dtype)
    with_usual_type<C>(from.dtype, [&]<class T>() {
      const Address begin = from.data + uint64_t(first) * sizeof(T), out = to.data + uint64_t(first_to) * sizeof(T);
      if ((begin | out) % (kPack * sizeof(T)) != 0) return;
      for (int64_t u = thread; u < length / kPack; u += threads) {
        C x[kPack], y[kPack];
        fetch_pack<C, T, kPack>(begin, u * kPack, x);
        TAEDA_UNROLL
        for (int v = 0; v < kPack; ++v) y[v] = make(u * kPack + v, x[v]);
        put_pack<C, T, kPack>(out, u * kPack, y);
      }
      done = length / kPack * kPack;
    });
  for (int64_t i = done + thread; i < length; i += threads)
    store<C>(to, first_to + i * step_to, make(i, load<C>(from, first + i * step)));
}

/// exp(x) / sum(exp(x)), or its logarithm: the largest first, then the sum, then the results.
template <class C>
struct Softmax {
  static constexpr int kThreads = 256, kHalvings = 8;
  using Shared = Found<C, 1>;
  struct Own {
    C largest;
  };
  Rows in, out;
  int64_t length;
  int32_t logarithm, reserved;
  TAEDA_HD static C exponential(C x) { return loops::TAEDA_ISA::vexp(x); }
  TAEDA_HD int phases() const { return 2 * kHalvings + 4; }
  TAEDA_HD void run(int phase, int64_t row, int thread, Shared& shared, Own& own) const {
    C& part = shared.parts[0][thread];
    if (phase == 0) {
      C largest = -loops::TAEDA_ISA::kInfinity<C>;
      over_row<C>(in.array, in.begin.offset(row), in.step, length, thread, kThreads, [&](int64_t, C x) {
        if (x > largest || x != x) largest = x;
      });
      part = largest;
    } else if (phase <= kHalvings) {
      shared.halve(phase - 1, thread, true);
    } else if (phase == kHalvings + 1) {
      own.largest = shared.parts[0][0];
    } else if (phase == kHalvings + 2) {
      C sum(0);
      over_row<C>(in.array, in.begin.offset(row), in.step, length, thread, kThreads,
                  [&](int64_t, C x) { sum += exponential(x - own.largest); });
      part = sum;
    } else if (phase <= 2 * kHalvings + 2) {
      shared.halve(phase - kHalvings - 3, thread, false);
    } else {
      const C sum = shared.parts[0][0], shift = own.largest + loops::TAEDA_ISA::vlog(sum);
      map_row<C>(in.array, in.begin.offset(row), in.step, out.array, out.begin.offset(row), out.step, length, thread,
                 kThreads, [&](int64_t, C x) { return C(logarithm ? x - shift : exponential(x - own.largest) / sum); });
    }
  }
};
/// y * (g - sum(g * y)), or of the logarithm g - exp(y) * sum(g).
template <class C>
struct SoftmaxBackward {
  static constexpr int kThreads = 256, kHalvings = 8;
  using Shared = Found<C, 1>;
  struct Own {};
  Rows grad, output, out;
  int64_t length;
  int32_t logarithm, reserved;
  TAEDA_HD int phases() const { return kHalvings + 2; }
  TAEDA_HD void run(int phase, int64_t row, int thread, Shared& shared, Own&) const {
    if (phase == 0) {
      C sum(0);
      for (int64_t i = thread; i < length; i += kThreads) {
        const C g = grad.get<C>(row, i);
        sum += logarithm ? g : g * output.get<C>(row, i);
      }
      shared.parts[0][thread] = sum;
    } else if (phase <= kHalvings) {
      shared.halve(phase - 1, thread, false);
    } else {
      const C sum = shared.parts[0][0];
      for (int64_t i = thread; i < length; i += kThreads) {
        const C g = grad.get<C>(row, i), y = output.get<C>(row, i);
        out.put<C>(row, i, logarithm ? g - Softmax<C>::exponential(y) * sum : y * (g - sum));
      }
    }
  }
};

/// Row-major rows of a length, normalised. Weight and bias are those of channels: a row has as many as there are spans
/// of `inner` elements in it, and each of `groups` rows in turn has channels of its own.
struct Normalised {
  Array in, weight, bias, out, mean, rstd;
  int64_t length, groups, inner;
  double eps;
  TAEDA_HD int64_t channel(int64_t row, int64_t i) const {
    return inner == 1 && groups == 1 ? i : row % groups * (length / inner) + i / inner;
  }
};
template <class C>
struct LayerNorm {
  static constexpr int kThreads = 256, kHalvings = 8;
  using Shared = Found<C, 1>;
  struct Own {
    C mean;
  };
  Normalised n;
  TAEDA_HD int phases() const { return 2 * kHalvings + 4; }
  TAEDA_HD void run(int phase, int64_t row, int thread, Shared& shared, Own& own) const {
    C& part = shared.parts[0][thread];
    const int64_t base = row * n.length;
    if (phase == 0) {
      C sum(0);
      over_row<C>(n.in, base, 1, n.length, thread, kThreads, [&](int64_t, C x) { sum += x; });
      part = sum;
    } else if (phase == kHalvings + 1) {
      own.mean = shared.parts[0][0] / C(n.length);
    } else if (phase == kHalvings + 2) {
      C sum(0);
      over_row<C>(n.in, base, 1, n.length, thread, kThreads,
                  [&](int64_t, C x) { sum += (x - own.mean) * (x - own.mean); });
      part = sum;
    } else if (phase < phases() - 1) {
      shared.halve(phase <= kHalvings ? phase - 1 : phase - kHalvings - 3, thread, false);
    } else {
      const C rstd = C(1) / C(sqrt(shared.parts[0][0] / C(n.length) + C(n.eps)));
      map_row<C>(n.in, base, 1, n.out, base, 1, n.length, thread, kThreads, [&](int64_t i, C x) {
        C y = (x - own.mean) * rstd;
        if (n.weight.data) y *= load<C>(n.weight, n.channel(row, i));
        if (n.bias.data) y += load<C>(n.bias, n.channel(row, i));
        return y;
      });
      if (thread == 0) {
        store<C>(n.mean, row, own.mean);
        store<C>(n.rstd, row, rstd);
      }
    }
  }
};

// --- fused optimizers: a thread for each element of several parameters ---

struct Step {
  Array param, grad, first, second, largest;
  double lr, beta1, beta2, eps, decay, scale1, scale2;  // scales: 1 over what is left of the beginning
  int32_t maximize, decoupled, nesterov, first_step;
};
TAEDA_HD inline float squared(float x) { return x * x; }
TAEDA_HD inline double squared(double x) { return x * x; }
TAEDA_HD inline Complex128 squared(Complex128 x) { return x.re * x.re + x.im * x.im; }
TAEDA_HD inline float real_part(float x) { return x; }
TAEDA_HD inline double real_part(double x) { return x; }
TAEDA_HD inline double real_part(Complex128 x) { return x.re; }
/// Adam (Kingma and Ba, 2015), AdamW where `decoupled`, AMSGrad where there is a largest.
template <class C>
struct AdamStep {
  using Real = decltype(real_part(C()));
  Step s;
  TAEDA_HD void operator()(int64_t i) const {
    C p = load<C>(s.param, i), g = load<C>(s.grad, i);
    if (s.maximize) g = -g;
    if (s.decay != 0 && s.decoupled) p = p * C(Real(1 - s.lr * s.decay));
    else if (s.decay != 0) g = g + p * C(Real(s.decay));
    const C m = load<C>(s.first, i) * C(Real(s.beta1)) + g * C(Real(1 - s.beta1));
    const C v = load<C>(s.second, i) * C(Real(s.beta2)) + squared(g) * C(Real(1 - s.beta2));
    store<C>(s.first, i, m);
    store<C>(s.second, i, v);
    Real most = real_part(v);
    if (s.largest.data) {
      const Real old = real_part(load<C>(s.largest, i));
      most = old > most || old != old ? old : most;
      store<C>(s.largest, i, C(most));
    }
    const Real root = Real(sqrt(most * Real(s.scale2))) + Real(s.eps);
    store<C>(s.param, i, p - m * C(Real(s.lr * s.scale1) / root));
  }
};
template <class C>
struct SgdStep {
  using Real = decltype(real_part(C()));
  Step s;  // beta1: momentum, beta2: dampening
  TAEDA_HD void operator()(int64_t i) const {
    const C p = load<C>(s.param, i);
    C g = load<C>(s.grad, i);
    if (s.maximize) g = -g;
    if (s.decay != 0) g = g + p * C(Real(s.decay));
    if (s.first.data) {
      const C b = s.first_step ? g : load<C>(s.first, i) * C(Real(s.beta1)) + g * C(Real(1 - s.beta2));
      store<C>(s.first, i, b);
      g = s.nesterov ? g + b * C(Real(s.beta1)) : b;
    }
    store<C>(s.param, i, p - g * C(Real(s.lr)));
  }
};

/// What differs between the parameters that one launch changes.
struct StepPart {
  Array param, grad, first, second, largest;
  double scale1, scale2;
  int64_t end;  // elements of this one and those before it
};
template <class Body>
struct StepOfMany {
  static constexpr int kMost = 24;  // a kernel's parameters have 4 KiB
  Step common;
  StepPart parts[kMost];
  TAEDA_HD void operator()(int64_t i) const {
    int k = 0;
    while (i >= parts[k].end) ++k;
    const StepPart& part = parts[k];
    Body body{common};
    body.s.param = part.param, body.s.grad = part.grad, body.s.first = part.first;
    body.s.second = part.second, body.s.largest = part.largest;
    body.s.scale1 = part.scale1, body.s.scale2 = part.scale2;
    body(k == 0 ? i : i - parts[k - 1].end);
  }
};

}  // namespace taeda::cuda
