// For builds with an address sanitizer: what lies behind each tensor's memory is poisoned, so that kernels which leave
// it in the simulation are found. Other builds have nothing of it.
#pragma once
#include "backend/machine.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

namespace taeda::cuda {

#if defined(__SANITIZE_ADDRESS__)

inline constexpr size_t kGuard = 64;
/// In the order of the stream, since work that uses the memory's former owner may still be waiting there.
inline void guard(Machine& machine, int device, Address address, size_t nbytes, StreamHandle stream) {
  SimulatedDriver* const driver = machine.simulation();
  if (!driver) return;
  char* const place = driver->place_of(device, address);
  const size_t room = (nbytes + kGuard + 511) / 512 * 512;
  int64_t end = 0;
  driver->work(device, stream, 0, end, [=] {
    __asan_unpoison_memory_region(place, room);
    __asan_poison_memory_region(place + nbytes, room - nbytes);
  });
}

/// Of memory that is taken while its stream is recorded, and written before a run begins.
inline void guard_recorded(Machine& machine, int device, Address address, size_t nbytes, StreamHandle stream) {
  if (SimulatedDriver* const driver = machine.simulation())
    __asan_unpoison_memory_region(driver->place_of(device, address), nbytes);
  guard(machine, device, address, nbytes, stream);
}

#else

inline constexpr size_t kGuard = 0;
inline void guard(Machine&, int, Address, size_t, StreamHandle) {}
inline void guard_recorded(Machine&, int, Address, size_t, StreamHandle) {}

#endif

}  // namespace taeda::cuda
