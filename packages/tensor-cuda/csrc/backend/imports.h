// Memory of other processes that is open in this one.
#pragma once
#include <map>
#include <mutex>

#include "driver/driver.h"

namespace taeda::cuda {

/// The driver opens an allocation once; tensors of several handles may lie in one.
class Imports {
 public:
  explicit Imports(Driver& driver) : driver_(driver) {}

  Status open(int device, const SharedHandle& handle, uint64_t offset, Address& address);
  /// Waits for the device's work before the last one that uses an allocation closes it.
  Status close(int device, Address address);
  bool contains(int device, Address address);

 private:
  struct Opened {
    Address start = 0;
    uint64_t uses = 0;
  };
  using Key = std::pair<int, SharedHandle>;
  Driver& driver_;
  std::mutex lock_;
  std::map<Key, Opened> opened_;
  std::multimap<std::pair<int, Address>, Key> places_;
};

}  // namespace taeda::cuda
