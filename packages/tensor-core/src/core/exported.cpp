// Exports of storages: how many there are, and who may grow.
#include "taeda/exported.h"

#include <mutex>

#include "core/runtime.h"
#include "core/storage_record.h"

namespace taeda {

using detail::record_of;
using detail::StorageRecord;

namespace detail {

ForkLock& record_lock() {
  static auto* lock = new ForkLock;
  return *lock;
}
[[maybe_unused]] static const auto* const made_at_load = &record_lock();

// A record is made with the lock held and looked for without: its place is written before what says that it is there.
StorageRecord* record_of(const Storage& storage) noexcept {
  auto& there = const_cast<Storage&>(storage);
  if (std::atomic_ref(there.release).load(std::memory_order_acquire) != release_exported) return nullptr;
  return static_cast<StorageRecord*>(std::atomic_ref(there.context).load(std::memory_order_relaxed));
}
StorageRecord& recorded(Storage& storage) {
  if (StorageRecord* found = record_of(storage)) return *found;
  auto* made = new StorageRecord{{storage.release, storage.context}};
  std::atomic_ref(storage.context).store(made, std::memory_order_relaxed);
  std::atomic_ref(storage.release).store(release_exported, std::memory_order_release);
  return *made;
}

}  // namespace detail

void release_exported(void* data, size_t nbytes, void* record) {
  const std::unique_ptr<StorageRecord> owned(static_cast<StorageRecord*>(record));
  if (owned->origin.release) owned->origin.release(data, nbytes, owned->origin.context);
  std::shared_ptr<const Derived> gone;  // destroyed without the lock
  const std::lock_guard guard(detail::record_lock());
  gone = detail::take_derived(*owned);
}

Exported::Exported(Ref<Storage> storage) : storage_(std::move(storage)) {
  if (!storage_) return;
  // Counted before it is looked for what is derived, which is kept before it is looked for exports (keep_derived()):
  // one of the two sees the other.
  if (StorageRecord* record = record_of(*storage_)) {
    record->exports.fetch_add(1);
    if (record->has_derived.load()) drop_derived(*storage_);
    return;
  }
  std::shared_ptr<const Derived> gone;
  const std::lock_guard guard(detail::record_lock());
  StorageRecord& record = detail::recorded(*storage_);
  record.exports.fetch_add(1, std::memory_order_relaxed);
  gone = detail::take_derived(record);
}
Exported::~Exported() {
  if (storage_) record_of(*storage_)->exports.fetch_sub(1, std::memory_order_relaxed);
}
Origin origin_of(const Storage& storage) noexcept {
  const StorageRecord* record = record_of(storage);
  return record ? record->origin : Origin{storage.release, storage.context};
}
uint32_t exports_of(const Storage& storage) noexcept {
  const StorageRecord* record = record_of(storage);
  return record ? record->exports.load(std::memory_order_relaxed) : 0;
}

size_t shown_bytes(const Storage& storage) noexcept {
  const StorageRecord* record = record_of(storage);
  return record ? std::min(record->shown.load(std::memory_order_relaxed), storage.nbytes) : storage.nbytes;
}
void show_bytes(Storage& storage, size_t nbytes) {
  if (nbytes == shown_bytes(storage)) return;
  {
    const std::lock_guard guard(detail::record_lock());
    detail::recorded(storage).shown.store(nbytes, std::memory_order_relaxed);
  }
  drop_derived(storage);
  detail::cpu_discard(storage, nbytes);
}

void check_growth(const Tensor& self, IntSpan sizes, const char* op, const char* argument) {
  const Storage& storage = *self.impl()->storage;
  const uint32_t exports = exports_of(storage);
  check(exports == 0, ErrorKind::Runtime, op, ": argument '", argument, "' of shape ", shape_text(self.sizes()),
        " cannot grow to ", shape_text(sizes), " while others hold its memory (", exports,
        " NumPy arrays, buffers or DLPack capsules); let go of them or use a clone()");
  check(storage.growable, ErrorKind::Runtime, op, ": argument '", argument, "' of shape ", shape_text(self.sizes()),
        " shows memory of another library and cannot grow to ", shape_text(sizes), "; use a clone()");
}

}  // namespace taeda
