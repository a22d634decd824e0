// Operators of whole rows, a block for each: softmax, layer normalisation and their gradients, each in one launch.
#pragma once
#include "kernels/launch.h"

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
      part = -loops::TAEDA_ISA::kInfinity<C>;
      for (int64_t i = thread; i < length; i += kThreads) {
        const C x = in.get<C>(row, i);
        if (x > part || x != x) part = x;
      }
    } else if (phase <= kHalvings) {
      shared.halve(phase - 1, thread, true);
    } else if (phase == kHalvings + 1) {
      own.largest = shared.parts[0][0];
    } else if (phase == kHalvings + 2) {
      part = C(0);
      for (int64_t i = thread; i < length; i += kThreads) part += exponential(in.get<C>(row, i) - own.largest);
    } else if (phase <= 2 * kHalvings + 2) {
      shared.halve(phase - kHalvings - 3, thread, false);
    } else {
      const C sum = shared.parts[0][0], shift = own.largest + loops::TAEDA_ISA::vlog(sum);
      for (int64_t i = thread; i < length; i += kThreads) {
        const C x = in.get<C>(row, i);
        out.put<C>(row, i, logarithm ? x - shift : exponential(x - own.largest) / sum);
      }
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
      part = C(0);
      for (int64_t i = thread; i < n.length; i += kThreads) part += load<C>(n.in, base + i);
    } else if (phase == kHalvings + 1) {
      own.mean = shared.parts[0][0] / C(n.length);
    } else if (phase == kHalvings + 2) {
      part = C(0);
      for (int64_t i = thread; i < n.length; i += kThreads) {
        const C gap = load<C>(n.in, base + i) - own.mean;
        part += gap * gap;
      }
    } else if (phase < phases() - 1) {
      shared.halve(phase <= kHalvings ? phase - 1 : phase - kHalvings - 3, thread, false);
    } else {
      const C rstd = C(1) / C(sqrt(shared.parts[0][0] / C(n.length) + C(n.eps)));
      for (int64_t i = thread; i < n.length; i += kThreads) {
        C y = (load<C>(n.in, base + i) - own.mean) * rstd;
        if (n.weight.data) y *= load<C>(n.weight, n.channel(row, i));
        if (n.bias.data) y += load<C>(n.bias, n.channel(row, i));
        store<C>(n.out, base + i, y);
      }
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
