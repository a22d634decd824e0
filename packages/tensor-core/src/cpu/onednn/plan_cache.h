// Primitives by what they are for, shared by all threads.
#pragma once
#ifdef TAEDA_WITH_ONEDNN
#include <memory>
#include <mutex>
#include <unordered_map>

#include "core/fork.h"
#include "infer/conv.h"

namespace taeda::onednn {

/// A hash of what was hashed before and one more word.
inline uint64_t mixed(uint64_t hash, uint64_t word) {
  hash = (hash ^ word) * 0x9E3779B97F4A7C15ull;
  return hash ^ hash >> 29;
}
/// ... and of all words of the shape of a convolution.
inline uint64_t mixed(uint64_t hash, const infer::ConvPlan& shape) {
  const auto* words = reinterpret_cast<const uint64_t*>(&shape);
  for (size_t i = 0; i < sizeof shape / 8; ++i) hash = mixed(hash, words[i]);
  return hash;
}

/// A network has some dozens. Emptied when programs with ever new shapes overfill it. Made at load, never destroyed.
template <class Key, class Hash, class Plan>
class PlanCache {
 public:
  /// The plan of `key`, made by `make(key)` where it is not there yet.
  template <class Make>
  std::shared_ptr<const Plan> at(const Key& key, const Make& make) {
    if (auto plan = find(key)) return plan;
    std::shared_ptr<const Plan> plan = make(key);
    std::lock_guard guard(lock_);
    if (plans_.size() >= kMost) plans_.clear();
    plans_[key] = plan;
    return plan;
  }

 private:
  static constexpr size_t kMost = 2048;

  std::shared_ptr<const Plan> find(const Key& key) {
    std::lock_guard guard(lock_);
    const auto at = plans_.find(key);
    return at == plans_.end() ? nullptr : at->second;
  }

  ForkLock lock_;
  std::unordered_map<Key, std::shared_ptr<const Plan>, Hash> plans_;
};

}  // namespace taeda::onednn
#endif
