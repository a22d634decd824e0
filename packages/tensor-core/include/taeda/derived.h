// Data that kernels compute from the bytes of a storage and keep beside them, as weights in a vendor's layout.
#pragma once
#include <memory>

#include "taeda/tensor.h"

namespace taeda {

/// Note [Derived data]
/// What was computed from a storage's bytes holds as long as every write counts: the storage has the same version, and
/// nobody writes without a new one. Such writers are `x.data`, exports (NumPy arrays, buffers, DLPack) and whoever has
/// read an address. An export or `.data` drops what is derived; while either lives nothing is kept, and nothing ever
/// again once an address was given out. Derived data go with their storage, and the oldest first beyond a bound.
/// Plug-ins that write to tensors which their schema does not mark break this as they break autograd.
struct Derived {
  virtual ~Derived() = default;
  uint32_t version = 0;  // of the storage that it was computed from
  size_t nbytes = 0;     // of its own
};

/// What is kept for the storage as it is now, or null.
TAEDA_API std::shared_ptr<const Derived> derived_of(const Storage& storage) noexcept;
/// Whether something may be kept for it: a storage of the cpu that `source` alone shows.
TAEDA_API bool may_keep_derived(const Tensor& source) noexcept;
/// Takes the place of what was kept. Nothing is kept where it may not be, or where the version has changed.
TAEDA_API void keep_derived(const Tensor& source, std::shared_ptr<const Derived> derived);
/// Before somebody can write to the storage unseen, for a time that its other holders show.
TAEDA_API void drop_derived(const Storage& storage) noexcept;
/// Before an address of the storage is given out.
TAEDA_API void note_address(const Ref<Storage>& storage);

/// Counts data that were computed, kept or not; by kernels.
TAEDA_API void count_derivation() noexcept;
TAEDA_API uint64_t derivations() noexcept;
/// Bytes of all that is kept.
TAEDA_API size_t derived_bytes() noexcept;
/// Bound of these bytes; what is above it goes.
TAEDA_API void set_derived_limit(size_t bytes);

}  // namespace taeda
