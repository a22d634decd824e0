// Derived data: kept in the storage's record, listed by age.
#include "taeda/derived.h"

#include <mutex>
#include <vector>

#include "core/storage_record.h"

namespace taeda {
namespace {

using detail::record_lock;
using detail::StorageRecord;

/// With the lock of records held.
struct Kept {
  std::list<StorageRecord*> by_age;  // the oldest first
  size_t bytes = 0, limit = size_t(512) << 20;
};
Kept& kept() {
  static auto* all = new Kept;  // never destroyed: tensors may outlive static destruction
  return *all;
}
[[maybe_unused]] const auto* const made_at_load = &kept();

/// Takes the oldest out until `room` bytes are free below the limit.
std::vector<std::shared_ptr<const Derived>> make_room(size_t room) {
  std::vector<std::shared_ptr<const Derived>> gone;
  while (!kept().by_age.empty() && kept().bytes + room > kept().limit)
    gone.push_back(detail::take_derived(*kept().by_age.front()));
  return gone;
}

}  // namespace

std::shared_ptr<const Derived> detail::take_derived(StorageRecord& record) noexcept {
  if (!record.derived) return nullptr;
  kept().bytes -= record.derived->nbytes;
  kept().by_age.erase(record.place);
  record.has_derived = false;
  return std::exchange(record.derived, nullptr);
}

std::shared_ptr<const Derived> derived_of(const Storage& storage) noexcept {
  const StorageRecord* record = detail::record_of(storage);
  if (!record) return nullptr;
  const std::lock_guard guard(record_lock());
  return record->derived && record->derived->version == storage.version ? record->derived : nullptr;
}

bool may_keep_derived(const Tensor& source) noexcept {
  const Storage* storage = source.impl()->storage.get();
  if (!storage || storage->device.backend != kCPU || !storage->growable || storage->nbytes <= Storage::kInlineBytes)
    return false;
  if (storage->use_count() != 1 || source.impl()->flags & kDetachedData) return false;
  const StorageRecord* record = detail::record_of(*storage);
  return !record || (!record->address_known && record->exports.load(std::memory_order_relaxed) == 0);
}

void keep_derived(const Tensor& source, std::shared_ptr<const Derived> derived) {
  std::vector<std::shared_ptr<const Derived>> gone;  // destroyed without the lock
  const std::lock_guard guard(record_lock());
  Storage& storage = *source.impl()->storage;
  if (!may_keep_derived(source) || derived->version != storage.version || derived->nbytes > kept().limit) return;
  StorageRecord& record = detail::recorded(storage);
  gone.push_back(detail::take_derived(record));
  for (auto& old : make_room(derived->nbytes)) gone.push_back(std::move(old));
  record.has_derived = true;
  if (record.exports.load() != 0) {  // made meanwhile, without the lock
    record.has_derived = false;
    return;
  }
  kept().bytes += derived->nbytes;
  record.derived = std::move(derived);
  record.place = kept().by_age.insert(kept().by_age.end(), &record);
}

void drop_derived(const Storage& storage) noexcept {
  StorageRecord* record = detail::record_of(storage);
  if (!record) return;
  std::shared_ptr<const Derived> gone;
  const std::lock_guard guard(record_lock());
  gone = detail::take_derived(*record);
}

void note_address(const Ref<Storage>& storage) {
  if (!storage || storage->nbytes <= Storage::kInlineBytes) return;
  if (const StorageRecord* record = detail::record_of(*storage); record && record->address_known) return;
  std::shared_ptr<const Derived> gone;
  const std::lock_guard guard(record_lock());
  StorageRecord& record = detail::recorded(*storage);
  record.address_known = true;
  gone = detail::take_derived(record);
}

namespace {
std::atomic<uint64_t> computed{0};
}
void count_derivation() noexcept { computed.fetch_add(1, std::memory_order_relaxed); }
uint64_t derivations() noexcept { return computed.load(std::memory_order_relaxed); }
size_t derived_bytes() noexcept {
  const std::lock_guard guard(record_lock());
  return kept().bytes;
}
void set_derived_limit(size_t bytes) {
  std::vector<std::shared_ptr<const Derived>> gone;
  const std::lock_guard guard(record_lock());
  kept().limit = bytes;
  gone = make_room(0);
}

}  // namespace taeda
