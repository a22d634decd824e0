// Counts of what uses each allocation of another process.
#include "backend/imports.h"

namespace taeda::cuda {

Status Imports::open(int device, const SharedHandle& handle, uint64_t offset, Address& address) {
  const std::lock_guard held(lock_);
  const Key key{device, handle};
  Opened& found = opened_[key];
  if (found.uses == 0) {
    if (const Status status = driver_.open_shared(device, handle, found.start); status != Status::Ok) {
      opened_.erase(key);
      return status;
    }
  }
  ++found.uses;
  address = found.start + offset;
  places_.emplace(std::pair{device, address}, key);
  return Status::Ok;
}
Status Imports::close(int device, Address address) {
  const std::lock_guard held(lock_);
  const auto place = places_.find({device, address});
  if (place == places_.end()) return Status::InvalidValue;
  const auto found = opened_.find(place->second);
  places_.erase(place);
  // Whoever shared it takes it back now, and knows nothing of our streams.
  const Status waited = driver_.synchronize(device);
  if (--found->second.uses > 0) return waited;
  const Address start = found->second.start;
  opened_.erase(found);
  const Status closed = driver_.close_shared(device, start);
  return waited == Status::Ok ? closed : waited;
}
bool Imports::contains(int device, Address address) {
  const std::lock_guard held(lock_);
  return places_.contains({device, address});
}

}  // namespace taeda::cuda
