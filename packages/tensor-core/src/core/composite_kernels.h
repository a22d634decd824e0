// Kernels of operators that work by what they call: the backend's own way, where it has one.
#pragma once
#include <atomic>

#include "taeda/dispatch.h"

namespace taeda::detail {

/// Note [Kernels of composites]
/// A composite or view has no kernels of its own: it works on every backend by what it calls. A backend may have one
/// all the same, for speed or because the operator had kernels in an earlier version. It is met below autograd, at a
/// position that only tensors of such a backend carry in their keys, so that calls elsewhere cost what they did. While
/// a gradient is recorded the composite is taken: what it calls is what can be differentiated; a kernel that itself
/// calls operators with derivatives says so, and is taken then too.
struct CompositeKernels {
  std::atomic<const BoxedFn*> of[kMaxBackends] = {};
  std::atomic<bool> recorded[kMaxBackends] = {};  // taken while a gradient is recorded too
  const char* registered_by[kMaxBackends] = {};
  BoxedFn entry;
};

/// Made, and entered into the operator's table, when it is first asked for.
CompositeKernels& composite_kernels(OpEntry& op);
/// Null where nobody has asked.
TAEDA_API const CompositeKernels* find_composite_kernels(const OpEntry& op) noexcept;
/// One kernel of a composite more (or less) on this backend: tensors made from now on meet them (or no longer).
void count_composite_kernel(BackendId id, int change) noexcept;
/// Layer::Kernels as bits where a backend has such a kernel, else 0.
extern constinit std::atomic<uint64_t> composite_kernel_keys[kMaxBackends];
/// The keys of a fresh tensor of a backend, but for its dtype's.
inline KeySet keys_on(BackendId id) noexcept {
  return KeySet::backend(id) | KeySet(composite_kernel_keys[id].load(std::memory_order_relaxed));
}

}  // namespace taeda::detail
