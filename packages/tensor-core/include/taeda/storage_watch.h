// Storages that somebody wants to know to have ended, and does not hold.
#pragma once
#include <atomic>

#include "taeda/storage.h"

namespace taeda {

/// Knows whether a storage is still there. Copies of the number tell storages apart for ever; addresses come again.
class TAEDA_API StorageWatch {
 public:
  explicit StorageWatch(const Storage& storage);
  StorageWatch(const StorageWatch&) = delete;
  StorageWatch& operator=(const StorageWatch&) = delete;
  ~StorageWatch();

  /// The same for all watches of one storage, and of no other.
  uint64_t number() const noexcept { return number_; }
  /// Whether the storage has ended.
  bool ended() const noexcept;

 private:
  uint64_t number_;
};

namespace detail {
/// How many storages are watched that are still there.
TAEDA_API extern std::atomic<uint32_t> watched_storages;
/// A storage ends while some are watched.
void note_end(const Storage& storage) noexcept;
}  // namespace detail
}  // namespace taeda
