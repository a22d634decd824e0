// What was used last of what is made for a shape, up to a number.
#pragma once
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <utility>

namespace taeda::cuda {

/// Values by their keys; of more than `most` the one goes that was not asked for the longest. Those who hold one go on
/// doing so. Not for several threads at once.
template <class Key, class Value>
class Recent {
 public:
  using Shared = std::shared_ptr<const Value>;

  /// What is kept for a key; null and false where nothing is. Null may be kept: that there is none.
  std::pair<Shared, bool> find(const Key& key) {
    const auto found = places_.find(key);
    if (found == places_.end()) return {nullptr, false};
    order_.splice(order_.begin(), order_, found->second);
    return {order_.front().second, true};
  }
  void put(const Key& key, Shared value) {
    if (most_ == 0) return;
    order_.emplace_front(key, std::move(value));
    places_[key] = order_.begin();
    shorten();
  }
  int64_t most() const { return most_; }
  void set_most(int64_t most) {
    most_ = most;
    shorten();
  }
  int64_t size() const { return int64_t(order_.size()); }
  void clear() {
    places_.clear();
    order_.clear();
  }

 private:
  void shorten() {
    for (; size() > most_; order_.pop_back()) places_.erase(order_.back().first);
  }

  using Order = std::list<std::pair<Key, Shared>>;
  Order order_;  // the last one first
  std::map<Key, typename Order::iterator> places_;
  int64_t most_ = 4096;
};

/// What is asked of the plans of a device, and told: `most` below 0 is no change.
struct PlansKept {
  int64_t most = -1, size = 0;
  bool clear = false;
};
template <class Key, class Value>
void settle(Recent<Key, Value>& plans, PlansKept& asked) {
  if (asked.clear) plans.clear();
  if (asked.most >= 0) plans.set_most(asked.most);
  asked.most = plans.most();
  asked.size = plans.size();
}

}  // namespace taeda::cuda
