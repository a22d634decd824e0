// Connectionist temporal classification: forward and backward variables in logarithms (Graves et al., "Connectionist
// temporal classification", 2006, sections 4.1 and 4.2), a block for each sequence; and the gradient from both, a block
// for each step of a sequence.
#pragma once
#include "kernels/elementwise.h"
#include "kernels/rows.h"

namespace taeda::cuda {

/// The sequences of a batch, all of it row-major: log_probs (T, N, C), targets (N, S), lengths (N).
struct Sequences {
  Array log_probs, targets, input_lengths, target_lengths;
  int64_t steps, count, classes, longest, blank;
  Report report;

  TAEDA_HD int64_t states() const { return 2 * longest + 1; }
  TAEDA_HD int64_t inputs(int64_t n) const { return length(input_lengths, n, steps); }
  /// Labels of a sequence, with blanks around them.
  TAEDA_HD int64_t used(int64_t n) const { return 2 * length(target_lengths, n, longest) + 1; }
  TAEDA_HD int64_t row(int64_t n, int64_t t) const { return (t * count + n) * classes; }
  TAEDA_HD int64_t state(int64_t n, int64_t t) const { return (n * steps + t) * states(); }
  /// The class of a state; what is none counts as a blank, once it has been reported.
  TAEDA_HD int64_t label(int64_t n, int64_t s) const {
    if (s % 2 == 0) return blank;
    const int64_t c = load<int64_t>(targets, n * longest + s / 2);
    return c >= 0 && c < classes ? c : blank;
  }
  /// Whether a state may follow the last but one: not from blank to blank, nor from a label to the same one.
  TAEDA_HD bool skips(int64_t n, int64_t s) const { return s % 2 && s > 1 && label(n, s) != label(n, s - 2); }
  /// Says what is wrong with a sequence: each thread of a block looks at its share.
  TAEDA_HD void check(int64_t n, int thread, int threads) const {
    if (thread == 0) {
      within(report, load<int64_t>(input_lengths, n), steps + 1, Wrong::InputLength);
      within(report, load<int64_t>(target_lengths, n), longest + 1, Wrong::TargetLength);
    }
    for (int64_t l = thread; l < used(n) / 2; l += threads)
      within(report, load<int64_t>(targets, n * longest + l), classes, Wrong::Label);
  }

 private:
  TAEDA_HD static int64_t length(const Array& lengths, int64_t n, int64_t most) {
    const int64_t given = load<int64_t>(lengths, n);
    return given < 0 ? 0 : given < most ? given : most;
  }
};
template <class C>
TAEDA_HD inline C log_sum(C a, C b, C c) {
  constexpr C never = -loops::TAEDA_ISA::kInfinity<C>;
  if (a == never && b == never && c == never) return never;  // one that is no number goes on
  C most = a;
  if (!(b <= most)) most = b;
  if (!(c <= most)) most = c;
  const C sum = loops::TAEDA_ISA::vexp(a - most) + loops::TAEDA_ISA::vexp(b - most) + loops::TAEDA_ISA::vexp(c - most);
  return C(loops::TAEDA_ISA::vlog(sum)) + most;
}

/// alpha (N, T, states), and losses.
template <class C>
struct CtcForward {
  static constexpr int kThreads = 256;
  struct Shared {};
  struct Own {};
  Sequences of;
  Array alpha, losses;
  TAEDA_HD int phases() const { return int(of.steps) + 1; }
  TAEDA_HD void run(int phase, int64_t n, int thread, Shared&, Own&) const {
    constexpr C never = -loops::TAEDA_ISA::kInfinity<C>;
    const int64_t used = of.used(n), steps = of.inputs(n), t = phase;
    if (phase == 0) of.check(n, thread, kThreads);
    if (t == of.steps) {
      if (thread == 0) store<C>(losses, n, loss(n, used, steps));
      return;
    }
    const int64_t now = of.state(n, t), last = now - of.states(), row = of.row(n, t);
    for (int64_t s = thread; s < of.states(); s += kThreads) {
      C sum = never;
      if (t < steps && s < used) {
        const C own = load<C>(of.log_probs, row + of.label(n, s));
        if (t == 0) sum = s < 2 ? own : never;
        else
          sum = own + log_sum(load<C>(alpha, last + s), s > 0 ? load<C>(alpha, last + s - 1) : never,
                              of.skips(n, s) ? load<C>(alpha, last + s - 2) : never);
      }
      store<C>(alpha, now + s, sum);
    }
  }

 private:
  TAEDA_HD C loss(int64_t n, int64_t used, int64_t steps) const {
    constexpr C never = -loops::TAEDA_ISA::kInfinity<C>;
    if (steps == 0) return used == 1 ? C(0) : -never;
    const int64_t end = of.state(n, steps - 1) + used;
    return -log_sum(load<C>(alpha, end - 1), used > 1 ? load<C>(alpha, end - 2) : never, never);
  }
};
/// beta (N, T, states), of steps and states that are used.
template <class C>
struct CtcBackward {
  static constexpr int kThreads = 256;
  struct Shared {};
  struct Own {};
  Sequences of;
  Array beta;
  TAEDA_HD int phases() const { return int(of.steps); }
  TAEDA_HD void run(int phase, int64_t n, int thread, Shared&, Own&) const {
    constexpr C never = -loops::TAEDA_ISA::kInfinity<C>;
    const int64_t used = of.used(n), steps = of.inputs(n), t = of.steps - 1 - phase;
    if (phase == 0) of.check(n, thread, kThreads);
    if (t >= steps) return;
    const int64_t now = of.state(n, t), next = now + of.states(), row = of.row(n, t);
    for (int64_t s = thread; s < used; s += kThreads) {
      C sum = s >= used - 2 ? C(0) : never;
      if (t < steps - 1)
        sum = log_sum(load<C>(beta, next + s), s + 1 < used ? load<C>(beta, next + s + 1) : never,
                      s + 2 < used && of.skips(n, s + 2) ? load<C>(beta, next + s + 2) : never);
      store<C>(beta, now + s, sum + load<C>(of.log_probs, row + of.label(n, s)));
    }
  }
};
/// Of each label (N, S) the next one that is the same, else S; one that has the same before it is told by -1 - that.
struct CtcChains {
  Sequences of;
  Array chains;
  TAEDA_HD void operator()(int64_t i) const {
    const int64_t n = quotient(i, of.longest), l = i - n * of.longest, labels = of.used(n) / 2;
    if (l >= labels) return store<int64_t>(chains, i, -1);
    const int64_t own = of.label(n, 2 * l + 1);
    int64_t next = l + 1, before = l - 1;
    while (next < labels && of.label(n, 2 * next + 1) != own) ++next;
    while (before >= 0 && of.label(n, 2 * before + 1) != own) --before;
    store<int64_t>(chains, i, before < 0 ? next : -1 - next);
  }
};
/// What the gradient of log_probs is: of each class its share of all paths taken off its probability. A block for each
/// step of each sequence, whose threads each add up the states of some labels, and together those of blanks.
template <class C>
struct CtcGradient {
  static constexpr int kThreads = 256, kHalvings = 8;
  using Shared = Found<C, 1>;
  struct Own {};
  Sequences of;
  Array alpha, beta, chains, losses, grad, out;
  int32_t zero_infinity, reserved;
  TAEDA_HD int phases() const { return kHalvings + 2; }
  TAEDA_HD void run(int phase, int64_t item, int thread, Shared& shared, Own&) const {
    const int64_t t = quotient(item, of.count), n = item - t * of.count, row = of.row(n, t);
    const C loss = load<C>(losses, n);
    const bool none = t >= of.inputs(n) || (zero_infinity && loss == loops::TAEDA_ISA::kInfinity<C>);
    if (phase == 0) {
      for (int64_t c = thread; c < of.classes; c += kThreads)
        if (none) store<C>(out, row + c, C(0));
        else tell(row, n, c, share(-loops::TAEDA_ISA::kInfinity<C>, loss, row, c));
      if (!none) shared.parts[0][thread] = of_blanks(n, t, thread, loss, row);
    } else if (none) {
      return;
    } else if (phase <= kHalvings) {
      if (phase == 1) of_labels(n, t, thread, loss, row);
      shared.halve(phase - 1, thread, false);
    } else if (thread == 0) {
      tell(row, n, of.blank, shared.parts[0][0]);
    }
  }

 private:
  TAEDA_HD C share(C both, C loss, int64_t row, int64_t c) const {
    return C(loops::TAEDA_ISA::vexp(both + loss - load<C>(of.log_probs, row + c)));
  }
  TAEDA_HD C at_state(int64_t n, int64_t t, int64_t s, C loss, int64_t row, int64_t c) const {
    const int64_t place = of.state(n, t) + s;
    return share(load<C>(alpha, place) + load<C>(beta, place), loss, row, c);
  }
  TAEDA_HD C of_blanks(int64_t n, int64_t t, int thread, C loss, int64_t row) const {
    C sum(0);
    for (int64_t s = thread, used = of.used(n); s < used; s += kThreads)
      if (of.label(n, s) == of.blank) sum += at_state(n, t, s, loss, row, of.blank);
    return sum;
  }
  TAEDA_HD void of_labels(int64_t n, int64_t t, int thread, C loss, int64_t row) const {
    for (int64_t first = thread, labels = of.used(n) / 2; first < labels; first += kThreads) {
      const int64_t c = of.label(n, 2 * first + 1), next = load<int64_t>(chains, n * of.longest + first);
      if (next < 0 || c == of.blank) continue;
      C sum = at_state(n, t, 2 * first + 1, loss, row, c);
      for (int64_t l = next; l < labels;) {
        sum += at_state(n, t, 2 * l + 1, loss, row, c);
        l = -1 - load<int64_t>(chains, n * of.longest + l);
      }
      tell(row, n, c, sum);
    }
  }
  TAEDA_HD void tell(int64_t row, int64_t n, int64_t c, C share) const {
    const C probability = C(loops::TAEDA_ISA::vexp(load<C>(of.log_probs, row + c)));
    store<C>(out, row + c, (probability - share) * load<C>(grad, n));
  }
};

}  // namespace taeda::cuda
