// Addresses of the simulated device that have memory piece by piece; where there is none, the process ends.
#include <sys/mman.h>

#include "driver/simulated_parts.h"

namespace taeda::cuda {

Status SimulatedDriver::reserve(int device, size_t nbytes, Address& start) {
  const std::lock_guard held(lock_);
  Device& at = *devices_[size_t(device)];
  if (at.failed != Status::Ok) return at.failed;
  if (nbytes == 0 || nbytes % kMemoryPiece != 0) return Status::InvalidValue;
  const Address begin = (at.base + 2 * at.capacity + kMemoryPiece - 1) / kMemoryPiece * kMemoryPiece;
  Address place = begin;
  for (const auto& [address, size] : at.reserved) {
    if (place + nbytes <= address) break;
    place = address + size;
  }
  if (place + nbytes > at.base + at.span()) return Status::OutOfMemory;
  at.reserved[place] = nbytes;
  start = place;
  return Status::Ok;
}
Status SimulatedDriver::unreserve(int device, Address start, size_t nbytes) {
  const std::lock_guard held(lock_);
  Device& at = *devices_[size_t(device)];
  const auto found = at.reserved.find(start);
  const auto piece = at.pieces.lower_bound(start);
  if (found == at.reserved.end() || found->second != nbytes || (piece != at.pieces.end() && *piece < start + nbytes))
    return Status::InvalidValue;
  at.reserved.erase(found);
  return at.failed;
}
Status SimulatedDriver::put(int device, Address start, size_t nbytes) {
  const std::lock_guard held(lock_);
  Device& at = *devices_[size_t(device)];
  if (at.failed != Status::Ok) return at.failed;
  const auto after = at.reserved.upper_bound(start);
  if (after == at.reserved.begin() || nbytes % kMemoryPiece != 0 || start % kMemoryPiece != 0)
    return Status::InvalidValue;
  const auto [begin, size] = *std::prev(after);
  const auto piece = at.pieces.lower_bound(start);
  if (start + nbytes > begin + size || (piece != at.pieces.end() && *piece < start + nbytes))
    return Status::InvalidValue;
  ++at.allocations;
  if (fails_allocation() || at.used + at.others + nbytes > at.capacity) return Status::OutOfMemory;
  if (mprotect(bytes_at(device, start), nbytes, PROT_READ | PROT_WRITE) != 0) return Status::InvalidValue;
  for (size_t done = 0; done < nbytes; done += kMemoryPiece) at.pieces.insert(start + done);
  at.used += nbytes;
  return Status::Ok;
}
Status SimulatedDriver::take_away(int device, Address start, size_t nbytes) {
  const std::lock_guard held(lock_);
  Device& at = *devices_[size_t(device)];
  for (size_t done = 0; done < nbytes; done += kMemoryPiece)
    if (!at.pieces.contains(start + done)) return Status::InvalidValue;
  if (forbidden()) return Status::CaptureUnsupported;
  ++at.releases;
  run_until(at.end());
  for (size_t done = 0; done < nbytes; done += kMemoryPiece) at.pieces.erase(start + done);
  madvise(bytes_at(device, start), nbytes, MADV_DONTNEED);
  mprotect(bytes_at(device, start), nbytes, PROT_NONE);
  at.used -= nbytes;
  return at.failed;
}

}  // namespace taeda::cuda
