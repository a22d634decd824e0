// Dispatch keys: one bit per backend (the lowest) and per layer (above them), thread-local include/exclude.
#pragma once
#include <atomic>
#include <bit>
#include <cstdint>

#include "taeda/device.h"
#include "taeda/export.h"

namespace taeda {

/// Layers in the order in which a call meets them: the highest goes first. Packages may take the positions from 0 to
/// 15; those outside are the library's own. See docs/design/layers.md.
enum class Layer : int8_t {
  Kernels = -3,        // kernels of composites and views, where the backend has some
  Float8 = -2,         // what operators do with float8 (taeda/float8.h)
  BelowAutograd = -1,  // TorchDispatchMode and __torch_dispatch__ of classes: what is left when gradients are recorded
  Autograd = 0,
  PreDispatch = 1,  // modes above autograd, and __torch_dispatch__ of the library's own classes
  Transform = 4,    // levels (taeda/levels.h)
  Autocast = 8,
  Tracing = 10,
  Profiler = 14,
  Observer = 16,  // typed observers (taeda/observer.h)
};
inline constexpr int kMaxLayers = 16;   // positions of packages
inline constexpr int kLayerSlots = 20;  // and those of the library
inline constexpr int kLayerShift = 31;
/// Where a layer stands in an operator's tables.
constexpr int slot_of(Layer layer) noexcept { return int(layer) - int(Layer::Kernels); }
constexpr Layer layer_at(int slot) noexcept { return Layer(slot + int(Layer::Kernels)); }

static_assert(kMaxBackends <= 16 && kLayerShift + kLayerSlots <= 64);

class KeySet {
 public:
  constexpr KeySet() noexcept = default;
  explicit constexpr KeySet(uint64_t bits) noexcept : bits_(bits) {}
  static constexpr KeySet of(Layer layer) noexcept { return KeySet(uint64_t(1) << (kLayerShift + slot_of(layer))); }
  static constexpr KeySet backend(BackendId id) noexcept { return KeySet(uint64_t(1) << id); }
  constexpr uint64_t bits() const noexcept { return bits_; }
  constexpr bool has_layers() const noexcept { return bits_ >> kLayerShift; }
  constexpr bool has(Layer layer) const noexcept { return bits_ & of(layer).bits_; }
  /// Slot in an operator's layer table of the first layer to run; only valid when has_layers().
  constexpr int top_slot() const noexcept { return 63 - kLayerShift - std::countl_zero(bits_); }
  constexpr KeySet backends() const noexcept { return KeySet(bits_ & 0xffffu); }
  /// What follows from device and dtype alone.
  constexpr KeySet inherent() const noexcept { return backends() | (*this & (of(Layer::Float8) | of(Layer::Kernels))); }
  constexpr KeySet without(Layer layer) const noexcept { return KeySet(bits_ & ~of(layer).bits_); }
  constexpr KeySet without_slot(int slot) const noexcept {
    return KeySet(bits_ & ~(uint64_t(1) << (kLayerShift + slot)));
  }
  friend constexpr KeySet operator|(KeySet a, KeySet b) noexcept { return KeySet(a.bits_ | b.bits_); }
  friend constexpr KeySet operator&(KeySet a, KeySet b) noexcept { return KeySet(a.bits_ & b.bits_); }
  friend constexpr bool operator==(KeySet, KeySet) = default;

 private:
  uint64_t bits_ = 0;
};

/// Per-thread state read on every operator call; kept in one cache line, reached without a call.
struct ThreadState {
  uint64_t included = 0;  // layers active whatever the arguments (profiler, tracing)
  uint64_t excluded = 0;  // layers switched off (no_grad, and a layer's own inner call)
  bool grad_enabled = true;
  bool inference_mode = false;
};
// constinit in the declaration too: without it every reader calls an initialisation function first.
extern constinit thread_local ThreadState thread_state TAEDA_API __attribute__((tls_model("initial-exec")));

inline KeySet active(KeySet of_arguments) noexcept {
  return KeySet((of_arguments.bits() | thread_state.included) & ~thread_state.excluded);
}

/// Gives the excluded layers back, also while an error unwinds. GCC 12 moves a plain store that a landing pad makes
/// before a conditional clean-up into one branch of it, so that it is lost on the other: the fence keeps it where it
/// stands.
inline void restore_excluded(uint64_t saved) noexcept {
  thread_state.excluded = saved;
  std::atomic_signal_fence(std::memory_order_seq_cst);
}

/// Switches layers off for a scope: what a layer does around its call to the operator below it.
class Below {
 public:
  explicit Below(Layer layer) noexcept : saved_(thread_state.excluded) {
    thread_state.excluded |= KeySet::of(layer).bits();
  }
  ~Below() { restore_excluded(saved_); }
  Below(const Below&) = delete;

 private:
  uint64_t saved_;
};

}  // namespace taeda
