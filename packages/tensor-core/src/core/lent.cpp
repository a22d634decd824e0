// The lists of those who borrowed bytes.
#include "taeda/lent.h"

namespace taeda {

struct Lists {
  static constexpr size_t kLists = 1024;
  Borrower* first[kLists] = {};
  std::recursive_mutex mutex;

  /// Kept for ever: borrowers may outlive what is static.
  static Lists& all() noexcept {
    static auto* const lists = new Lists;
    return *lists;
  }
  Borrower*& list_of(const Storage* storage) noexcept {
    return first[(reinterpret_cast<uintptr_t>(storage) >> 6) % kLists];
  }
  Borrower* borrower_of(const Storage& storage) noexcept {
    Borrower* found = list_of(&storage);
    while (found && found->lender_.get() != &storage) found = found->next_;
    return found;
  }
  static void keep(Borrower& borrower) {
    borrower.keep();
    borrower.give_back();
  }
};

std::recursive_mutex& Borrower::lock() noexcept { return Lists::all().mutex; }

bool Borrower::borrow(Ref<Storage> storage) noexcept {
  give_back();
  Lists& lists = Lists::all();
  const std::lock_guard held(lists.mutex);
  if (storage->readonly && !lists.borrower_of(*storage)) return false;
  Borrower*& first = lists.list_of(storage.get());
  next_ = first;
  place_ = &first;
  if (next_) next_->place_ = &next_;
  first = this;
  lender_ = std::move(storage);
  lender_->readonly = true;
  return true;
}

void Borrower::unlink() noexcept {
  Ref<Storage> lender;  // freed without the lock
  Lists& lists = Lists::all();
  const std::lock_guard held(lists.mutex);
  if (!lender_) return;
  *place_ = next_;
  if (next_) next_->place_ = place_;
  lender = std::move(lender_);
  lender->readonly = lists.borrower_of(*lender) != nullptr;
}

bool keep_lent(Storage& storage) {
  Lists& lists = Lists::all();
  const std::lock_guard held(lists.mutex);
  Borrower* borrower = lists.borrower_of(storage);
  if (!borrower) return !storage.readonly;
  for (; borrower; borrower = lists.borrower_of(storage)) Lists::keep(*borrower);
  return true;
}

bool is_fixed(const Storage& storage) noexcept {
  if (!storage.readonly) return false;
  Lists& lists = Lists::all();
  const std::lock_guard held(lists.mutex);
  return storage.readonly && !lists.borrower_of(storage);
}

}  // namespace taeda
