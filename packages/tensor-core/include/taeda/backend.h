// Backend: a named device family with an allocator and copies; cpu and meta register like everybody else.
#pragma once
#include "taeda/device.h"
#include "taeda/storage.h"
#include "taeda/tensor.h"

namespace taeda {

class TAEDA_API Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string name() const = 0;
  virtual int device_count() const { return 1; }
  /// Returns memory and sets release/context of `storage`.
  virtual void allocate(Storage& storage, size_t nbytes) = 0;
  /// Contiguous bytes between this device and host memory.
  virtual void copy_from_host(void* device, const void* host, size_t nbytes) = 0;
  virtual void copy_to_host(void* host, const void* device, size_t nbytes) = 0;
  virtual void synchronize(Device) {}
  /// False: bytes can be read by the host directly (cpu).
  virtual bool opaque() const { return true; }
  /// False for meta: tensors have no bytes.
  virtual bool has_memory() const { return true; }
};

TAEDA_API BackendId register_backend(Backend* backend);
TAEDA_API Backend& backend(BackendId id);
TAEDA_API int backend_count();
/// Asked when a device name is unknown; returns true when it registered that backend (lazy discovery).
extern TAEDA_API bool (*discover_backend)(std::string_view name);

/// Bounded cache of large CPU blocks: bytes now cached, the cap, and freeing all of it.
TAEDA_API size_t cpu_cached_bytes();
TAEDA_API size_t cpu_live_bytes();
TAEDA_API void set_cpu_cache_limit(size_t bytes);
TAEDA_API void empty_cpu_cache();

}  // namespace taeda
