// Optimizer steps as single passes over memory.
#include <cmath>

#include "cpu/loops/optim.h"

namespace taeda::loops::TAEDA_ISA {
namespace {

template <class T>
void sgd(void* param_, const void* grad_, void* buffer_, int64_t n, const SgdStep& step) {
  T* param = static_cast<T*>(param_);
  const T* grad = static_cast<const T*>(grad_);
  T* buffer = static_cast<T*>(buffer_);
  const T lr = T(step.lr), decay = T(step.weight_decay), sign = step.maximize ? T(-1) : T(1);
  if (!buffer) {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) param[i] -= lr * (sign * grad[i] + decay * param[i]);
    return;
  }
  const T keep = step.first_step ? T(0) : T(step.momentum), take = step.first_step ? T(1) : T(1 - step.dampening),
          momentum = T(step.momentum);
  if (step.first_step)
    for (int64_t i = 0; i < n; ++i) buffer[i] = T(0);
  if (step.nesterov) {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) {
      const T g = sign * grad[i] + decay * param[i];
      const T b = keep * buffer[i] + take * g;
      buffer[i] = b;
      param[i] -= lr * (g + momentum * b);
    }
  } else {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) {
      const T b = keep * buffer[i] + take * (sign * grad[i] + decay * param[i]);
      buffer[i] = b;
      param[i] -= lr * b;
    }
  }
}

template <class T>
void adam(void* param_, const void* grad_, void* average_, void* square_, void* largest_, int64_t n,
          const AdamStep& step) {
  T* param = static_cast<T*>(param_);
  const T* grad = static_cast<const T*>(grad_);
  T* average = static_cast<T*>(average_);
  T* square = static_cast<T*>(square_);
  T* largest = static_cast<T*>(largest_);
  const T b1 = T(step.beta1), c1 = T(1 - step.beta1), b2 = T(step.beta2), c2 = T(1 - step.beta2), eps = T(step.eps);
  const T sign = step.maximize ? T(-1) : T(1);
  const T shrink = step.decoupled ? T(1 - step.lr * step.weight_decay) : T(1),
          decay = step.decoupled ? T(0) : T(step.weight_decay);
  const T size = T(step.lr / step.correction1), root = T(1 / step.root_correction2);  // a division is saved
  if (largest) {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) {
      const T p = param[i] * shrink, g = sign * grad[i] + decay * p;
      const T m = b1 * average[i] + c1 * g, v = b2 * square[i] + c2 * g * g, top = largest[i] > v ? largest[i] : v;
      average[i] = m;
      square[i] = v;
      largest[i] = top;
      param[i] = p - size * (m / (std::sqrt(top) * root + eps));
    }
    return;
  }
  // Intel's own prefetching stops at the ends of pages, of which there are four at once. AMD's goes on, and fetching
  // ahead of it costs a sixth of the time (Zen 4). Others were not measured.
#if defined(__x86_64__)
  static const bool fetches = !__builtin_cpu_is("amd");
#else
  constexpr bool fetches = false;
#endif
  constexpr int64_t block = 256 / sizeof(T), ahead = 4096 / sizeof(T);
  for (int64_t b = 0; b < n; b += block) {
    const int64_t end = n - b < block ? n : b + block;
    for (int64_t i = b + ahead; fetches && i < n && i < b + ahead + block; i += 64 / int64_t(sizeof(T))) {
      __builtin_prefetch(grad + i);
      __builtin_prefetch(param + i, 1);
      __builtin_prefetch(average + i, 1);
      __builtin_prefetch(square + i, 1);
    }
#pragma GCC ivdep
    for (int64_t i = b; i < end; ++i) {
      const T p = param[i] * shrink, g = sign * grad[i] + decay * p;
      const T m = b1 * average[i] + c1 * g, v = b2 * square[i] + c2 * g * g;
      average[i] = m;
      square[i] = v;
      param[i] = p - size * (m / (std::sqrt(v) * root + eps));
    }
  }
}

}  // namespace

constinit const OptimTable optim = {{sgd<float>, sgd<double>}, {adam<float>, adam<double>}};

}  // namespace taeda::loops::TAEDA_ISA
