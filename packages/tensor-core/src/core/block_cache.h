// The cache of large CPU blocks, bounded by what was lately used.
#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>

#include "core/fork.h"

namespace taeda::detail {

/// Note [How much is kept]
/// Blocks that go are kept for the next tensor of their size, so that a loop does not fault the same pages in at every
/// step. Blocks in use and kept ones together are at most one and a half times what tensors lately took at once (the
/// peak of this period and of the one before): a step whose sizes change on its way, as a network's do, has each of its
/// sizes again at the next one. Nor are more kept than the limit; where that is exceeded, the blocks go that were not
/// used for longest. A period ends after ten seconds and when many times the peak were taken in it, so that no step is
/// longer. What nobody uses for some seconds is given back by `Janitor` (allocator.cpp).
class BlockCache {
 public:
  /// Notes that `size` bytes are taken; a kept block of just that size, or null.
  void* take(size_t size);
  /// Keeps a block, and gives back what is too much then. How much is kept now.
  size_t give(void* block, size_t size);
  /// Notes that no block could be made after take().
  void fail(size_t size);
  size_t cached();
  void set_limit(size_t bytes);
  /// Gives back all that is kept.
  void clear() { trim(0); }
  /// Grows with every use.
  uint64_t uses();

  /// Memory from the system and back to it; null when there is none.
  static void* make(size_t size) noexcept;
  static void drop(void* block, size_t size) noexcept;

 private:
  /// Stands in the first bytes of a block that is kept.
  struct Kept {
    Kept *newer, *older;              // of all
    Kept *newer_alike, *older_alike;  // of its size
    size_t size;
  };
  struct Alike {
    Kept *newest = nullptr, *oldest = nullptr;
  };

  void detach(Kept* block);
  void attach(Kept* block);
  /// Takes the oldest blocks out until at most `bytes` are kept; chained by `newer`.
  Kept* cut(size_t bytes);
  void trim(size_t bytes);
  void note(size_t size);
  /// How many bytes may be kept beside those in use.
  size_t allowance() const;
  static void drop_chain(Kept* chain) noexcept;

  ForkLock lock_;
  std::unordered_map<size_t, Alike> by_size_;
  Kept *newest_ = nullptr, *oldest_ = nullptr;
  size_t cached_ = 0, live_ = 0, peak_ = 0, peak_before_ = 0, taken_ = 0;
  std::optional<size_t> limit_;  // found out at the first use
  uint64_t uses_ = 0;
  std::chrono::steady_clock::time_point since_{};
};

}  // namespace taeda::detail
