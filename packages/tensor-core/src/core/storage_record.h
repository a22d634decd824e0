// What stands in a storage's place for what gives its memory back, once more is known of it: exports, derived data.
#pragma once
#include <list>
#include <memory>

#include "core/fork.h"
#include "taeda/derived.h"
#include "taeda/exported.h"

namespace taeda::detail {

struct StorageRecord {
  Origin origin;
  std::atomic<uint32_t> exports{0};
  std::atomic<size_t> shown{SIZE_MAX};  // how many of the bytes the program wants to have; all of them until it said so
  std::atomic<bool> address_known{false};  // somebody may write through it as long as the storage lives
  std::shared_ptr<const Derived> derived;
  std::atomic<bool> has_derived{false};       // for those without the lock; true while `derived` may be there
  std::list<StorageRecord*>::iterator place;  // among those with derived data
};

/// Guards the making of records and all of derived data.
ForkLock& record_lock();
/// Null where there is none.
StorageRecord* record_of(const Storage& storage) noexcept;
/// Made if there is none; with the lock held.
StorageRecord& recorded(Storage& storage);
/// Takes the derived data out, to be destroyed without the lock; with the lock held.
[[nodiscard]] std::shared_ptr<const Derived> take_derived(StorageRecord& record) noexcept;

}  // namespace taeda::detail
