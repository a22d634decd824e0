// Memory of a kernel that is kept from one piece of its work to the next.
#pragma once
#include <cstdint>
#include <memory>

namespace taeda::cpu {

template <class T>
class Room {
 public:
  /// Place for `count` elements, which are not what they were before.
  T* get(int64_t count) {
    if (count > count_) {
      memory_ = std::make_unique_for_overwrite<T[]>(size_t(count));
      count_ = count;
    }
    return memory_.get();
  }

 private:
  std::unique_ptr<T[]> memory_;
  int64_t count_ = 0;
};

}  // namespace taeda::cpu
