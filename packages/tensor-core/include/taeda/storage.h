// Storage: a counted block of bytes with its version counter; small blocks live inside the object.
#pragma once
#include "taeda/device.h"
#include "taeda/intrusive.h"

namespace taeda {

class Backend;

struct Storage : Counted {
  static constexpr size_t kInlineBytes = 64;

  void* data = nullptr;
  size_t nbytes = 0;
  Device device;
  bool readonly = false;  // NumPy said so; in-place operators refuse
  bool growable = true;   // false for foreign memory
  /// Bumped by every in-place operation through any view; autograd compares it with what it saved.
  uint32_t version = 0;
  /// Id of the operator that mutated last, so that a stale-version error can name it (0: none).
  uint16_t last_mutator = 0;
  /// Frees `data`; null when the bytes are inline. `context` is whatever the owner needs (allocator block,
  /// PyObject...).
  void (*release)(void* data, size_t nbytes, void* context) = nullptr;
  void* context = nullptr;
  alignas(16) char inline_bytes[kInlineBytes];
};

/// New storage of `nbytes` uninitialised bytes from the device's allocator.
TAEDA_API Ref<Storage> new_storage(size_t nbytes, Device device);
/// Wraps foreign memory; `release` runs when the last tensor over it goes.
TAEDA_API Ref<Storage> borrow_storage(void* data, size_t nbytes, Device device, bool readonly,
                                      void (*release)(void*, size_t, void*), void* context);
TAEDA_API void destroy(Storage* storage) noexcept;

}  // namespace taeda
