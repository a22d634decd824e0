// Kernels of operators that work by what they call: how they are met.
#include "core/composite_kernels.h"

#include <bit>
#include <map>
#include <mutex>

#include "core/fork.h"
#include "taeda/library.h"

namespace taeda::detail {

constinit std::atomic<uint64_t> composite_kernel_keys[kMaxBackends] = {};

namespace {

struct Known {
  ForkLock lock;
  std::map<const OpEntry*, CompositeKernels*> by_op;
  int counts[kMaxBackends] = {};
};
Known& known() {
  static auto* instance = new Known;
  return *instance;
}
[[maybe_unused]] const auto* const made_at_load = &known();

bool recorded(const Values& arguments) {
  if (!thread_state.grad_enabled || (thread_state.excluded & KeySet::of(Layer::Autograd).bits())) return false;
  bool found = false;
  for (const Value& value : arguments) each_tensor_of(value, [&](const Tensor& t) { found |= t.requires_grad(); });
  return found;
}

/// The kernel for the backend of a call, numbers of the cpu among other tensors apart; nothing where there are several,
/// or where a gradient is to be recorded that the kernel cannot tell.
const BoxedFn* kernel_for(const CompositeKernels& kernels, KeySet keys, const Values& arguments) {
  const uint64_t all = keys.backends().bits(), others = all & ~KeySet::backend(kCPU).bits();
  const uint64_t chosen = others ? others : all;
  if (!std::has_single_bit(chosen)) return nullptr;
  const int id = std::countr_zero(chosen);
  const BoxedFn* kernel = kernels.of[id].load(std::memory_order_acquire);
  return kernel && (kernels.recorded[id] || !recorded(arguments)) ? kernel : nullptr;
}

Values meet(const CompositeKernels& kernels, const OpEntry& op, KeySet keys, Values arguments) {
  if (const BoxedFn* kernel = kernel_for(kernels, keys, arguments)) {
    try {
      return (*kernel)(op, keys, arguments);
    } catch (const KernelDeclined&) {  // it has no way for these arguments
    }
  }
  return op.go_on_boxed(op, keys.without(Layer::Kernels), arguments);
}

}  // namespace

CompositeKernels& composite_kernels(OpEntry& op) {
  std::lock_guard guard(known().lock);
  CompositeKernels*& found = known().by_op[&op];
  if (!found) {
    constexpr int slot = slot_of(Layer::Kernels);
    found = new CompositeKernels;  // for ever: another thread may be on its way into it
    found->entry = [found](const OpEntry& called, KeySet keys, Values arguments) {
      return meet(*found, called, keys, std::move(arguments));
    };
    op.boxed_layers[slot] = &found->entry;
    op.layers[slot] = op.boxed_layer_adapter;
  }
  return *found;
}

const CompositeKernels* find_composite_kernels(const OpEntry& op) noexcept {
  std::lock_guard guard(known().lock);
  const auto found = known().by_op.find(&op);
  return found == known().by_op.end() ? nullptr : found->second;
}

void count_composite_kernel(BackendId id, int change) noexcept {
  std::lock_guard guard(known().lock);
  known().counts[id] += change;
  composite_kernel_keys[id] = known().counts[id] > 0 ? KeySet::of(Layer::Kernels).bits() : 0;
}

}  // namespace taeda::detail
