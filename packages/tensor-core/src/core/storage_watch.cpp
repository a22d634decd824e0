// Who watches which storage. The table is read where storages end only while one is watched.
#include "taeda/storage_watch.h"

#include <mutex>
#include <unordered_map>

namespace taeda {
namespace {
struct Watched {
  const Storage* storage;  // null when it has ended
  uint32_t watches;
};
struct Table {
  std::mutex lock;
  uint64_t last = 0;
  std::unordered_map<const Storage*, uint64_t> numbers;
  std::unordered_map<uint64_t, Watched> watched;

  void forget(std::unordered_map<const Storage*, uint64_t>::iterator place) noexcept {
    numbers.erase(place);
    detail::watched_storages.fetch_sub(1, std::memory_order_relaxed);
  }
};
/// Never destroyed: storages end after static objects do.
Table& table() {
  static Table* const made = new Table;
  return *made;
}
}  // namespace

namespace detail {
std::atomic<uint32_t> watched_storages{0};

void note_end(const Storage& storage) noexcept {
  Table& all = table();
  const std::lock_guard guard(all.lock);
  const auto place = all.numbers.find(&storage);
  if (place == all.numbers.end()) return;
  all.watched.at(place->second).storage = nullptr;
  all.forget(place);
}
}  // namespace detail

StorageWatch::StorageWatch(const Storage& storage) {
  Table& all = table();
  const std::lock_guard guard(all.lock);
  const auto place = all.numbers.find(&storage);
  if (place != all.numbers.end()) {
    number_ = place->second;
    ++all.watched.at(number_).watches;
    return;
  }
  number_ = ++all.last;
  all.watched.emplace(number_, Watched{&storage, 1});
  all.numbers.emplace(&storage, number_);
  detail::watched_storages.fetch_add(1, std::memory_order_relaxed);
}

StorageWatch::~StorageWatch() {
  Table& all = table();
  const std::lock_guard guard(all.lock);
  const auto place = all.watched.find(number_);
  if (--place->second.watches) return;
  if (place->second.storage) all.forget(all.numbers.find(place->second.storage));
  all.watched.erase(place);
}

bool StorageWatch::ended() const noexcept {
  Table& all = table();
  const std::lock_guard guard(all.lock);
  return !all.watched.at(number_).storage;
}

}  // namespace taeda
