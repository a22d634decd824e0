// Steps of optimizers: one copy per instruction set.
#pragma once
#include <cstdint>

namespace taeda::loops {

/// One optimizer step over n contiguous elements.
struct SgdStep {
  double lr, momentum, dampening, weight_decay;
  bool nesterov, maximize, first_step;
};
struct AdamStep {
  double beta1, beta2, eps, weight_decay, lr, correction1, root_correction2;
  bool maximize, decoupled;
};
struct OptimTable {
  /// float32, float64; `buffer` null without momentum.
  void (*sgd[2])(void* param, const void* grad, void* buffer, int64_t n, const SgdStep& step);
  /// `largest` null without amsgrad.
  void (*adam[2])(void* param, const void* grad, void* average, void* square, void* largest, int64_t n,
                  const AdamStep& step);
};

/// Declares the copy of one instruction set.
#define TAEDA_OPTIM_LOOPS(ISA)   \
  namespace ISA {                \
  extern const OptimTable optim; \
  }
#ifdef TAEDA_ISA
TAEDA_OPTIM_LOOPS(TAEDA_ISA)
#endif

/// Those for this machine (src/cpu/isa.cpp).
const OptimTable& optim_table() noexcept;

}  // namespace taeda::loops
