// Exports of storages: how many there are, which tensors lend theirs, and who may grow.
#include "taeda/exported.h"

#include <algorithm>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "core/fork.h"

namespace taeda {
namespace {

/// Stands in the storage's place for what gives its memory back, from the first export on.
struct Record {
  Origin origin;
  std::atomic<uint32_t> exports{0};
};

Record* record_of(const Storage& storage) noexcept {
  return storage.release == release_exported ? static_cast<Record*>(storage.context) : nullptr;
}

/// Exports are made under Python's lock: two threads do not come here at once.
Record& recorded(Storage& storage) {
  if (Record* found = record_of(storage)) return *found;
  auto* made = new Record{{storage.release, storage.context}};
  storage.context = made;
  storage.release = release_exported;
  return *made;
}

/// What lend() keeps, by the tensor that was asked.
struct Loans {
  ForkLock lock;
  std::unordered_multimap<const TensorImpl*, std::pair<const Storage*, Exported>> kept;
};
Loans& loans() {
  static auto* all = new Loans;  // never destroyed: tensors may outlive static destruction
  return *all;
}

}  // namespace

void release_exported(void* data, size_t nbytes, void* record) {
  const std::unique_ptr<Record> owned(static_cast<Record*>(record));
  if (owned->origin.release) owned->origin.release(data, nbytes, owned->origin.context);
}

Exported::Exported(Ref<Storage> storage) : storage_(std::move(storage)) {
  if (storage_) recorded(*storage_).exports.fetch_add(1, std::memory_order_relaxed);
}
Exported::~Exported() {
  if (storage_) record_of(*storage_)->exports.fetch_sub(1, std::memory_order_relaxed);
}
Origin origin_of(const Storage& storage) noexcept {
  const Record* record = record_of(storage);
  return record ? record->origin : Origin{storage.release, storage.context};
}
uint32_t exports_of(const Storage& storage) noexcept {
  const Record* record = record_of(storage);
  return record ? record->exports.load(std::memory_order_relaxed) : 0;
}

void lend(const Tensor& self) {
  TensorImpl* impl = self.impl();
  const Storage* shown = impl->storage.get();
  const std::lock_guard guard(loans().lock);
  const auto [first, last] = loans().kept.equal_range(impl);
  if (std::any_of(first, last, [&](const auto& item) { return item.second.first == shown; })) return;
  loans().kept.emplace(impl, std::pair(shown, Exported(impl->storage)));
  impl->flags |= kLent;
}
void end_loans(TensorImpl* impl) noexcept {
  std::vector<decltype(Loans::kept)::node_type> ended;  // storages go without the lock
  const std::lock_guard guard(loans().lock);
  for (auto at = loans().kept.find(impl); at != loans().kept.end(); at = loans().kept.find(impl))
    ended.push_back(loans().kept.extract(at));
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
