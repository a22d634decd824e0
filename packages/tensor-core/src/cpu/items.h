// Elements of a row by their keys, and how they are sorted.
#pragma once
#include <algorithm>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "cpu/order.h"
#include "cpu/radix.h"
#include "taeda/interrupt.h"

namespace taeda::cpu {

/// An element of a row by its key, inverted where the largest come first.
template <class Key>
struct Item {
  Key key;
  int64_t index;
};

/// A vector whose elements are not set when it is made: the first to touch fresh memory, which takes long, is the loop
/// that writes it and looks at signals.
template <class T>
struct Unset : std::allocator<T> {
  template <class U>
  struct rebind {
    using other = Unset<U>;
  };
  template <class U>
  void construct(U* place) noexcept {
    ::new (static_cast<void*>(place)) U;
  }
  template <class U, class... Args>
  void construct(U* place, Args&&... args) {
    ::new (static_cast<void*>(place)) U(std::forward<Args>(args)...);
  }
};
template <class T> using UnsetVector = std::vector<T, Unset<T>>;
template <class Key> using Items = UnsetVector<Item<Key>>;

template <class T>
void fill_items(const T* from, int64_t step, bool descending, Items<KeyOf<T>>& items) {
  in_blocks(int64_t(items.size()), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      items[size_t(i)] = {key_of(from[i * step], descending), i};
    }
  });
}

/// Rows from this length on are sorted by digits.
inline constexpr int64_t kManyItems = 257;
inline bool by_digits(int64_t length) { return length >= kManyItems && length < RadixOrder<uint64_t>::kMost; }

/// Stable.
template <class Key>
void sort_items(Items<Key>& items) {
  if (items.size() <= 16) {  // by insertion, which needs no memory
    for (auto item = items.begin(); item != items.end(); ++item)
      std::rotate(std::upper_bound(items.begin(), item, *item,
                                   [](const Item<Key>& a, const Item<Key>& b) { return a.key < b.key; }),
                  item, item + 1);
    return;
  }
  Patience patience;
  std::stable_sort(items.begin(), items.end(), [&](const Item<Key>& a, const Item<Key>& b) {
    patience();
    return a.key < b.key;
  });
}

}  // namespace taeda::cpu
