// CPU kernels of connectionist temporal classification: forward and backward variables in logarithms (Graves et al.
// 2006, sections 4.1 and 4.2).
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "cpu/prepare.h"
#include "taeda/interrupt.h"
#include "taeda/ops/loss.h"
#include "taeda/parallel.h"

namespace taeda {
namespace {

using cpu::row_major;

template <class T> constexpr T kNever = -std::numeric_limits<T>::infinity();

template <class T>
T log_add(T a, T b, T c = kNever<T>) {
  if (a == kNever<T> && b == kNever<T> && c == kNever<T>) return kNever<T>;  // one that is no number goes on
  const T most = std::max(a, std::max(b, c));
  return std::log(std::exp(a - most) + std::exp(b - most) + std::exp(c - most)) + most;
}

/// The sequences of a batch: lengths and labels that have been checked.
struct Batch {
  int64_t steps, count, classes, longest, blank;
  Tensor targets, input_lengths, target_lengths;
  Batch(const char* op, const Tensor& log_probs, const Tensor& targets_, const Tensor& inputs_, const Tensor& lengths_,
        int64_t blank_)
      : steps(log_probs.size(0)),
        count(log_probs.size(1)),
        classes(log_probs.size(2)),
        longest(targets_.size(1)),
        blank(blank_),
        targets(row_major(targets_, DType::Int64)),
        input_lengths(row_major(inputs_, DType::Int64)),
        target_lengths(row_major(lengths_, DType::Int64)) {
    for (int64_t n = 0; n < count; ++n) {
      check(inputs(n) >= 0 && inputs(n) <= steps, ErrorKind::Runtime, op, ": argument 'input_lengths' has ", inputs(n),
            ", expected 0 to ", steps, ", the steps of 'log_probs'");
      check(labels(n) >= 0 && labels(n) <= longest, ErrorKind::Runtime, op, ": argument 'target_lengths' has ",
            labels(n), ", expected 0 to ", longest, ", the length of 'targets'");
      for (int64_t s = 0; s < labels(n); ++s) {
        const int64_t label = targets.data<int64_t>()[n * longest + s];
        check(label >= 0 && label < classes, ErrorKind::Runtime, op, ": argument 'targets' has ", label,
              ", expected one of the classes, 0 to ", classes - 1);
      }
    }
  }
  int64_t inputs(int64_t n) const { return input_lengths.data<int64_t>()[n]; }
  int64_t labels(int64_t n) const { return target_lengths.data<int64_t>()[n]; }
  int64_t states() const { return 2 * longest + 1; }
  /// The class of state s: labels with blanks around them.
  int64_t label(int64_t n, int64_t s) const { return s % 2 ? targets.data<int64_t>()[n * longest + s / 2] : blank; }
  /// Whether state s may follow state s - 2: not from blank to blank, nor from a label to the same one.
  bool skips(int64_t n, int64_t s) const { return s % 2 && s > 1 && label(n, s) != label(n, s - 2); }
};

/// alpha[t * states + s] of one sequence, and its loss.
template <class T>
T forward(const Batch& b, int64_t n, const T* log_probs, T* alpha) {
  const int64_t states = b.states(), used = 2 * b.labels(n) + 1, steps = b.inputs(n);
  std::fill_n(alpha, b.steps * states, kNever<T>);
  if (steps == 0) return used == 1 ? T(0) : -kNever<T>;
  const auto at = [&](int64_t t, int64_t s) { return log_probs[(t * b.count + n) * b.classes + b.label(n, s)]; };
  for (int64_t s = 0; s < std::min<int64_t>(2, used); ++s) alpha[s] = at(0, s);
  for (int64_t t = 1; t < steps; ++t) {
    const T* const last = alpha + (t - 1) * states;
    T* const now = alpha + t * states;
    for (int64_t s = 0; s < used; ++s)
      now[s] = log_add(last[s], s > 0 ? last[s - 1] : kNever<T>, b.skips(n, s) ? last[s - 2] : kNever<T>) + at(t, s);
  }
  const T* const end = alpha + (steps - 1) * states;
  return -log_add(end[used - 1], used > 1 ? end[used - 2] : kNever<T>);
}

template <class T>
void backward(const Batch& b, int64_t n, const T* log_probs, const T* alpha, T loss, T grad, T* grad_probs) {
  const int64_t states = b.states(), used = 2 * b.labels(n) + 1, steps = b.inputs(n);
  const auto row = [&](int64_t t) { return (t * b.count + n) * b.classes; };
  std::vector<T> beta(static_cast<size_t>(used)), next(static_cast<size_t>(used));
  for (int64_t t = steps; t-- > 0;) {
    const T *const own = log_probs + row(t), *const alphas = alpha + t * states;
    T* const to = grad_probs + row(t);
    for (int64_t s = 0; s < used; ++s) {
      const auto k = size_t(s);
      if (t == steps - 1) beta[k] = s >= used - 2 ? T(0) : kNever<T>;
      else
        beta[k] = log_add(next[k], s + 1 < used ? next[k + 1] : kNever<T>,
                          s + 2 < used && b.skips(n, s + 2) ? next[k + 2] : kNever<T>);
      beta[k] += own[b.label(n, s)];
    }
    // The posterior of each class, in logarithms.
    std::fill_n(to, b.classes, kNever<T>);
    for (int64_t s = 0; s < used; ++s) {
      T& place = to[b.label(n, s)];
      place = log_add(place, alphas[s] + beta[size_t(s)]);
    }
    for (int64_t c = 0; c < b.classes; ++c) to[c] = (std::exp(own[c]) - std::exp(to[c] + loss - own[c])) * grad;
    std::swap(beta, next);
  }
  for (int64_t t = steps; t < b.steps; ++t) std::fill_n(grad_probs + row(t), b.classes, T(0));
}

template <class Body>
void visit_real(DType dtype, const Body& body) {
  if (dtype == DType::Float64) body.template operator()<double>();
  else body.template operator()<float>();
}

void ctc_loss_forward_kernel(const Tensor& losses, const Tensor& log_alpha, const Tensor& log_probs,
                             const Tensor& targets, const Tensor& input_lengths, const Tensor& target_lengths,
                             int64_t blank, bool) {
  const Batch batch("ctc_loss", log_probs, targets, input_lengths, target_lengths, blank);
  const Tensor x = row_major(log_probs);
  const cpu::Target loss(losses), alpha(log_alpha);
  {
    const Unlocked unlocked(log_alpha.numel() > 4096);
    visit_real(x.dtype(), [&]<class T>() {
      parallel_for(batch.count, 1, [&](int64_t begin, int64_t end) {
        for (int64_t n = begin; n < end; ++n) {
          poll_signals();
          loss.data<T>()[n] = forward(batch, n, x.data<T>(), alpha.data<T>() + n * batch.steps * batch.states());
        }
      });
    });
  }
  loss.finish();
  alpha.finish();
}

void ctc_loss_backward_kernel(const Tensor& grad_probs, const Tensor& grad, const Tensor& log_probs,
                              const Tensor& targets, const Tensor& input_lengths, const Tensor& target_lengths,
                              const Tensor& losses, const Tensor& log_alpha, int64_t blank, bool zero_infinity) {
  const Batch batch("ctc_loss_backward", log_probs, targets, input_lengths, target_lengths, blank);
  const DType dtype = log_probs.dtype();
  const Tensor g = row_major(grad, dtype), x = row_major(log_probs), loss = row_major(losses, dtype),
               alpha = row_major(log_alpha, dtype);
  const cpu::Target target(grad_probs);
  {
    const Unlocked unlocked(log_alpha.numel() > 4096);
    visit_real(dtype, [&]<class T>() {
      parallel_for(batch.count, 1, [&](int64_t begin, int64_t end) {
        for (int64_t n = begin; n < end; ++n) {
          poll_signals();
          const T own = loss.data<T>()[n];
          T* const to = target.data<T>();
          if (zero_infinity && std::isinf(own))
            for (int64_t t = 0; t < batch.steps; ++t)
              std::fill_n(to + (t * batch.count + n) * batch.classes, batch.classes, T(0));
          else
            backward(batch, n, x.data<T>(), alpha.data<T>() + n * batch.steps * batch.states(), own, g.data<T>()[n],
                     to);
        }
      });
    });
  }
  target.finish();
}

const bool registered = [] {
  kernel<op::ctc_loss_forward>(kCPU, ctc_loss_forward_kernel);
  kernel<op::ctc_loss_backward>(kCPU, ctc_loss_backward_kernel);
  return true;
}();

}  // namespace
}  // namespace taeda
