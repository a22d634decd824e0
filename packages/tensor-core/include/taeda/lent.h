// Bytes that somebody reads later without a copy, who is asked to make one before they are overwritten.
#pragma once
#include <mutex>

#include "taeda/storage.h"

namespace taeda {

/// Note [Lent bytes]
/// Who reads the bytes of a storage later and does without a copy of them (a graph) can borrow them. The storage is
/// guarded like read-only memory meanwhile: operators that write find it so on their slow path, and ask each borrower
/// to copy first. Nothing is copied where nobody writes, and what is not lent costs nothing. Borrowers stand in lists
/// by the hash of their storage; one lock is held over all lists, and while a borrower copies.
class TAEDA_API Borrower {
 public:
  Borrower() = default;
  Borrower(const Borrower&) = delete;
  Borrower& operator=(const Borrower&) = delete;

 protected:
  ~Borrower() { give_back(); }
  /// False for memory that operators do not write to anyway.
  bool borrow(Ref<Storage> storage) noexcept;
  void give_back() noexcept {
    if (lender_) unlink();
  }
  static std::recursive_mutex& lock() noexcept;
  /// Copies the bytes, which stay as they are until it returns; nothing is borrowed any more then.
  virtual void keep() = 0;

 private:
  friend struct Lists;
  void unlink() noexcept;

  Ref<Storage> lender_;
  Borrower *next_ = nullptr, **place_ = nullptr;
};

/// Before a write to guarded bytes: has their borrowers copy them. False where there are none: the memory is read-only.
TAEDA_API bool keep_lent(Storage& storage);
/// Whether the bytes may not be written to: they are guarded, and not because somebody borrowed them.
TAEDA_API bool is_fixed(const Storage& storage) noexcept;

}  // namespace taeda
