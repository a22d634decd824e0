// Whether the user wants operators whose results are the same bits in every run, however many threads there are.
#pragma once
#include <atomic>
#include <cstdint>

#include "taeda/export.h"

namespace taeda {

/// What happens to operators that cannot: nothing, a warning, an error.
enum class Determinism : uint8_t { Any, Warned, Required };

namespace detail {
extern TAEDA_API std::atomic<Determinism> determinism;
extern TAEDA_API std::atomic<bool> fills_unwritten;
}  // namespace detail
/// Of the process.
inline Determinism determinism() noexcept { return detail::determinism.load(std::memory_order_relaxed); }
inline void set_determinism(Determinism wanted) noexcept {
  detail::determinism.store(wanted, std::memory_order_relaxed);
}
/// Whether kernels that have a choice take the way that does not depend on threads.
inline bool deterministic() noexcept { return determinism() != Determinism::Any; }

/// Whether memory that a program asks for without saying what is in it is filled, so that it is the same in every run.
inline bool fills_unwritten() noexcept {
  return deterministic() && detail::fills_unwritten.load(std::memory_order_relaxed);
}
inline void set_fills_unwritten(bool wanted) noexcept {
  detail::fills_unwritten.store(wanted, std::memory_order_relaxed);
}

/// For kernels that have none: RuntimeError that names `op`, or a warning, or nothing.
TAEDA_API void alert_not_deterministic(const char* op);

}  // namespace taeda
