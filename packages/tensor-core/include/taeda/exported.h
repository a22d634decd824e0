// Memory that others hold (NumPy arrays, buffers, DLPack), and other sizes for tensors without taking it from them.
#pragma once
#include "taeda/tensor.h"

namespace taeda {

/// A storage that somebody outside holds. Keeps the storage, not the tensor: that one may be given other memory
/// meanwhile.
class TAEDA_API Exported {
 public:
  explicit Exported(Ref<Storage> storage);
  Exported(Exported&&) noexcept = default;
  ~Exported();

 private:
  Ref<Storage> storage_;
};
/// Who gives a storage's memory back; exports stand before it in the storage itself.
struct Origin {
  void (*release)(void*, size_t, void*);
  void* context;
};
TAEDA_API Origin origin_of(const Storage& storage) noexcept;
/// How many Exported hold the storage.
TAEDA_API uint32_t exports_of(const Storage& storage) noexcept;
/// How many of its bytes a storage says that it has: all of them, or what `show_bytes` was told.
TAEDA_API size_t shown_bytes(const Storage& storage) noexcept;
/// Other bytes than all of them, at most as many as there are. Tensors keep their places, so memory on the cpu that is
/// not shown any more is lent to the system: its pages read as zeros where they are touched again.
TAEDA_API void show_bytes(Storage& storage, size_t nbytes);
/// What gives the memory of a storage back that was ever exported.
void release_exported(void* data, size_t nbytes, void* record);
/// Whether another storage may stand over the same bytes.
inline bool may_be_shared(const Storage& storage) noexcept {
  return !storage.growable || storage.release == release_exported;
}

/// Shows `sizes`, row-major, from the same first element; where the storage ends too early, in a new one that begins
/// with the same bytes. RuntimeError when it would have to grow out of memory that others hold.
TAEDA_API void resize(const Tensor& self, IntSpan sizes);
/// RuntimeError where `self` must not leave its memory behind, because others would not see what is written from then
/// on.
TAEDA_API void check_growth(const Tensor& self, IntSpan sizes, const char* op, const char* argument);

}  // namespace taeda
