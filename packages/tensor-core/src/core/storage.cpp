// Life of a Storage: inline bytes for small ones, the backend's allocator for the rest.
#include "taeda/storage.h"

#include "core/runtime.h"
#include "taeda/backend.h"
#include "taeda/spans.h"
#include "taeda/storage_watch.h"

namespace taeda {
namespace {
#ifdef __SANITIZE_ADDRESS__
constexpr size_t kInlineLimit = 0;  // in memory of its own, where the sanitizer sees bytes beyond the end
#else
constexpr size_t kInlineLimit = Storage::kInlineBytes;
#endif
using StorageMemory = detail::FreeList<Storage, 256>;
Storage* fresh() { return new (StorageMemory::take()) Storage; }

/// `sign`: 1 when memory was taken, -1 when it is given back.
[[gnu::cold, gnu::noinline]] void tell_observer(const Storage& storage, int sign) noexcept {
  if (storage.data) tell_memory({storage.data, sign * int64_t(storage.nbytes), storage.device});
}
inline void tell(const Storage& storage, int sign) noexcept {
  if (observed()) [[unlikely]]
    tell_observer(storage, sign);
}
}  // namespace

Ref<Storage> new_storage(size_t nbytes, Device device) {
  Storage* storage = fresh();
  storage->nbytes = nbytes;
  storage->device = device;
  if (device.backend == kCPU && nbytes <= kInlineLimit) {
    storage->data = storage->inline_bytes;
    detail::count_inline_bytes(int64_t(nbytes));
    tell(*storage, 1);
    return Ref<Storage>::adopt(storage);
  }
  Ref<Storage> owner = Ref<Storage>::adopt(storage);
  if (device.backend == kCPU) {
    storage->nbytes = 0;  // in case the allocation throws
    detail::cpu_allocate(*storage, nbytes);
    storage->nbytes = nbytes;
  } else {
    backend(device.backend).allocate(*storage, nbytes);
  }
  tell(*storage, 1);
  return owner;
}

Ref<Storage> borrow_storage(void* data, size_t nbytes, Device device, bool readonly,
                            void (*release)(void*, size_t, void*), void* context) {
  Storage* storage = fresh();
  storage->data = data;
  storage->nbytes = nbytes;
  storage->device = device;
  storage->readonly = readonly;
  storage->growable = false;
  storage->release = release;
  storage->context = context;
  return Ref<Storage>::adopt(storage);
}

void destroy(Storage* storage) noexcept {
  if (observed() && storage->growable) [[unlikely]]  // foreign memory was never taken
    tell_observer(*storage, -1);
  if (detail::watched_storages.load(std::memory_order_relaxed)) [[unlikely]]
    detail::note_end(*storage);
  if (storage->data == storage->inline_bytes) detail::count_inline_bytes(-int64_t(storage->nbytes));
  if (storage->release)  // of inline bytes too, once they were exported
    storage->release(storage->data, storage->nbytes, storage->context);
  StorageMemory::give(storage);
}

}  // namespace taeda
