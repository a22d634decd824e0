// Free CPU blocks of up to 64 KiB, by thread and size class.
#pragma once
#include <cstddef>

namespace taeda::detail {

inline constexpr size_t kSmall = size_t(1) << 16;  // larger blocks are not for this cache

/// A block for at most kSmall bytes, aligned to 64; null when the system has none.
void* take_small(size_t nbytes) noexcept;
/// Gives it back; whether the thread had too many already, so that the block went back to the system's heap.
bool give_small(void* block, size_t nbytes) noexcept;
/// Gives the free blocks of all threads back to the heap.
void clear_small() noexcept;

}  // namespace taeda::detail
