// Cross entropy of class indices and its gradient, a block for each place of the target; and the gates of recurrent
// cells.
#pragma once
#include "kernels/elementwise.h"
#include "kernels/rows.h"

namespace taeda::cuda {

/// Scores of classes for places: row-major (outer, classes, inner), with a target and weights of classes, or none.
struct Scores {
  Array in, target, weight, logsumexp;
  int64_t classes, inner, ignored;
  double smoothing;
  TAEDA_HD int64_t place(int64_t row, int64_t c) const {
    const int64_t outer = row / inner;
    return (outer * classes + c) * inner + (row - outer * inner);
  }
  template <class C>
  TAEDA_HD C weight_of(int64_t c) const {
    return weight.data ? load<C>(weight, c) : C(1);
  }
  /// The class that is meant; -1 where the place counts for nothing.
  TAEDA_HD int64_t meant(int64_t row, const Report& report) const {
    const int64_t c = load<int64_t>(target, row);
    return c == ignored || !within(report, c, classes) ? -1 : c;
  }
};
/// Losses and weights of places, before they are joined.
template <class C>
struct CrossEntropy {
  static constexpr int kThreads = 256, kHalvings = 8;
  using Shared = Found<C, 1>;
  struct Own {
    C largest, logsumexp;
  };
  Scores s;
  Array losses, weights;
  Report report;
  TAEDA_HD int phases() const { return s.smoothing > 0 ? 3 * kHalvings + 6 : 2 * kHalvings + 4; }
  TAEDA_HD void run(int phase, int64_t row, int thread, Shared& shared, Own& own) const {
    C& part = shared.parts[0][thread];
    const int turn = phase % (kHalvings + 2), pass = phase / (kHalvings + 2);
    if (turn > 0 && turn <= kHalvings) return shared.halve(turn - 1, thread, pass == 0);
    if (turn == 0 && pass < 2) {
      C found = pass == 0 ? -loops::TAEDA_ISA::kInfinity<C> : C(0);
      over_row<C>(s.in, s.place(row, 0), s.inner, s.classes, thread, kThreads, [&](int64_t, C x) {
        if (pass == 1) found += C(loops::TAEDA_ISA::vexp(x - own.largest));  // no number beside an infinite score
        else if (x > found || x != x) found = x;
      });
      part = found;
    } else if (turn == kHalvings + 1 && pass == 0) {
      own.largest = shared.parts[0][0];
    } else if (turn == kHalvings + 1 && pass == 1) {
      own.logsumexp = own.largest + C(loops::TAEDA_ISA::vlog(shared.parts[0][0]));
      if (s.smoothing <= 0) tell(row, thread, own, C(0));
    } else if (pass == 2 && turn == 0) {
      part = C(0);
      for (int64_t c = thread; c < s.classes; c += kThreads)
        part += s.weight_of<C>(c) * (own.logsumexp - load<C>(s.in, s.place(row, c)));
    } else {
      tell(row, thread, own, shared.parts[0][0]);
    }
  }
  TAEDA_HD void tell(int64_t row, int thread, const Own& own, C all) const {
    if (thread > 0) return;
    store<C>(s.logsumexp, row, own.logsumexp);
    const int64_t c = s.meant(row, report);
    const C w = c < 0 ? C(0) : s.weight_of<C>(c);
    C loss(0);
    if (c >= 0) {
      loss = w * (own.logsumexp - load<C>(s.in, s.place(row, c))) * C(1 - s.smoothing);
      if (s.smoothing > 0) loss += all * C(s.smoothing / double(s.classes));
    }
    store<C>(losses, row, loss);
    store<C>(weights, row, w);
  }
};
/// Sum of weights, and sum or mean of losses, a block for each part. Without `out` the losses stay as they are.
template <class C>
struct JoinLosses {
  static constexpr int kThreads = 256, kHalvings = 8;
  using Shared = Found<C, 2>;
  struct Own {};
  Array losses, weights, out, total;
  int64_t count, part;
  int32_t mean, reserved;
  TAEDA_HD int phases() const { return kHalvings + 2; }
  TAEDA_HD void run(int phase, int64_t item, int thread, Shared& shared, Own&) const {
    if (phase > 0 && phase <= kHalvings) return shared.halve(phase - 1, thread, false);
    if (phase == 0) {
      const int64_t end = (item + 1) * part < count ? (item + 1) * part : count;
      C loss(0), weight(0);
      for (int64_t i = item * part + thread; i < end; i += kThreads)
        loss += load<C>(losses, i), weight += load<C>(weights, i);
      shared.parts[0][thread] = loss, shared.parts[1][thread] = weight;
    } else if (thread == 0) {
      store<C>(total, item, shared.parts[1][0]);
      if (out.data) store<C>(out, item, mean ? shared.parts[0][0] / shared.parts[1][0] : shared.parts[0][0]);
    }
  }
};
/// Losses of logarithms of probabilities: a thread for each place.
template <class C>
struct NllLosses {
  Scores s;
  Array losses, weights;
  Report report;
  TAEDA_HD void operator()(int64_t row) const {
    const int64_t c = s.meant(row, report);
    const C w = c < 0 ? C(0) : s.weight_of<C>(c);
    store<C>(losses, row, c < 0 ? C(0) : -w * load<C>(s.in, s.place(row, c)));
    store<C>(weights, row, w);
  }
};
/// Their gradient: a thread for each score, of which those that are not meant have none.
template <class C>
struct NllGradient {
  Scores s;
  Array grad, total, out;
  Report report;
  int32_t reduction, reserved;
  TAEDA_HD void operator()(int64_t i) const {
    const int64_t line = quotient(i, s.inner), outer = quotient(line, s.classes), c = line - outer * s.classes;
    const int64_t row = outer * s.inner + (i - line * s.inner), meant = s.meant(row, report);
    C up(0);
    if (c == meant) {
      up = -s.weight_of<C>(c) * load<C>(grad, reduction ? 0 : row);
      if (reduction == 1) up = up / load<C>(total, 0);
    }
    store<C>(out, i, up);
  }
};
/// `grad` is one number, or one for each place; of the mean it is shared by `total`.
template <class C>
struct CrossEntropyGradient {
  static constexpr int kThreads = 256, kHalvings = 8;
  using Shared = Found<C, 1>;
  struct Own {};
  Scores s;
  Array grad, total, out;
  Report report;
  int32_t reduction, reserved;
  TAEDA_HD int phases() const { return s.smoothing > 0 && s.weight.data ? kHalvings + 2 : 1; }
  TAEDA_HD void run(int phase, int64_t row, int thread, Shared& shared, Own&) const {
    if (phase < phases() - 1) {
      if (phase > 0) return shared.halve(phase - 1, thread, false);
      C sum(0);
      for (int64_t c = thread; c < s.classes; c += kThreads) sum += s.weight_of<C>(c);
      shared.parts[0][thread] = sum;
      return;
    }
    const int64_t meant = s.meant(row, report);
    const C sum = phases() > 1 ? shared.parts[0][0] : C(s.classes), lse = load<C>(s.logsumexp, row);
    C up = load<C>(grad, reduction ? 0 : row);
    if (reduction == 1) up = up / load<C>(total, 0);
    const C w = meant < 0 ? C(0) : s.weight_of<C>(meant);
    const int64_t begin = s.place(row, 0);
    map_row<C>(s.in, begin, s.inner, out, begin, s.inner, s.classes, thread, kThreads, [&](int64_t c, C x) {
      const C p = C(loops::TAEDA_ISA::vexp(x - lse));
      C slope = (p * w - (c == meant ? w : C(0))) * C(1 - s.smoothing);
      if (s.smoothing > 0) slope += (p * sum - s.weight_of<C>(c)) * C(s.smoothing / double(s.classes));
      return meant < 0 ? C(0) : slope * up;
    });
  }
};

// --- gates of recurrent cells: a thread for each number of a state ---

template <class C>
TAEDA_HD inline C logistic(C x) {
  return C(1) / (C(1) + C(exp(-x)));
}
/// Row-major gates (N, k * hidden) of states (N, hidden).
struct Gates {
  int64_t hidden;
  TAEDA_HD int64_t column(int64_t i) const { return i - quotient(i, hidden) * hidden; }
  TAEDA_HD int64_t place(int64_t i, int gate, int of) const {
    const int64_t row = quotient(i, hidden);
    return row * of * hidden + gate * hidden + (i - row * hidden);
  }
};
template <class C>
struct LstmGates {
  Gates g;
  Array input, hidden, bias, c, h_out, c_out, gates;
  TAEDA_HD void operator()(int64_t i) const {
    C z[4];
    for (int k = 0; k < 4; ++k) {
      const int64_t place = g.place(i, k, 4);
      z[k] = load<C>(input, place) + load<C>(hidden, place);
      if (bias.data) z[k] += load<C>(bias, k * g.hidden + g.column(i));
      z[k] = k == 2 ? C(tanh(z[k])) : logistic(z[k]);
      store<C>(gates, place, z[k]);
    }
    const C next = z[1] * load<C>(c, i) + z[0] * z[2];
    store<C>(c_out, i, next);
    store<C>(h_out, i, z[3] * C(tanh(next)));
  }
};
template <class C>
struct LstmGatesGradient {
  Gates g;
  Array grad_h, grad_output, grad_c, gates, c, c_out, out, out_c;  // the first two are added
  TAEDA_HD void operator()(int64_t i) const {
    C z[4];
    for (int k = 0; k < 4; ++k) z[k] = load<C>(gates, g.place(i, k, 4));
    const C t = C(tanh(load<C>(c_out, i)));
    C up = grad_h.data ? load<C>(grad_h, i) : C(0);
    if (grad_output.data) up += load<C>(grad_output, i);
    const C dc = (grad_c.data ? load<C>(grad_c, i) : C(0)) + up * z[3] * (C(1) - t * t);
    store<C>(out, g.place(i, 0, 4), dc * z[2] * z[0] * (C(1) - z[0]));
    store<C>(out, g.place(i, 1, 4), dc * load<C>(c, i) * z[1] * (C(1) - z[1]));
    store<C>(out, g.place(i, 2, 4), dc * z[0] * (C(1) - z[2] * z[2]));
    store<C>(out, g.place(i, 3, 4), up * t * z[3] * (C(1) - z[3]));
    store<C>(out_c, i, dc * z[1]);
  }
};
template <class C>
struct GruGates {
  Gates g;
  Array input, hidden, h, h_out, gates;
  TAEDA_HD void operator()(int64_t i) const {
    const C r = logistic(load<C>(input, g.place(i, 0, 3)) + load<C>(hidden, g.place(i, 0, 3)));
    const C z = logistic(load<C>(input, g.place(i, 1, 3)) + load<C>(hidden, g.place(i, 1, 3)));
    const C inner = load<C>(hidden, g.place(i, 2, 3));
    const C n = C(tanh(load<C>(input, g.place(i, 2, 3)) + r * inner));
    store<C>(h_out, i, (C(1) - z) * n + z * load<C>(h, i));
    const C kept[4] = {r, z, n, inner};
    for (int k = 0; k < 4; ++k) store<C>(gates, g.place(i, k, 4), kept[k]);
  }
};
template <class C>
struct GruGatesGradient {
  Gates g;
  Array grad, gates, h, out_input, out_hidden, out_h;
  TAEDA_HD void operator()(int64_t i) const {
    C kept[4];
    for (int k = 0; k < 4; ++k) kept[k] = load<C>(gates, g.place(i, k, 4));
    const C r = kept[0], z = kept[1], n = kept[2], up = load<C>(grad, i);
    const C dn = up * (C(1) - z) * (C(1) - n * n), dz = up * (load<C>(h, i) - n) * z * (C(1) - z);
    const C found[3] = {dn * kept[3] * r * (C(1) - r), dz, dn};
    for (int k = 0; k < 3; ++k) {
      store<C>(out_input, g.place(i, k, 3), found[k]);
      store<C>(out_hidden, g.place(i, k, 3), k == 2 ? dn * r : found[k]);
    }
    store<C>(out_h, i, up * z);
  }
};

}  // namespace taeda::cuda
