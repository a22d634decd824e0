// What the C functions for Python are written with.
#pragma once
#include <exception>
#include <string>

#include "backend/machine.h"

#define TAEDA_CUDA_EXPORT extern "C" __attribute__((visibility("default")))

namespace taeda::cuda {

/// What the last call on the thread said.
extern thread_local std::string last_text;

/// Statuses beside the driver's.
inline constexpr int kThrown = -2, kNoMachine = -3;

/// Runs `body` on a machine, null being the backend's own; its status is the result.
template <class Body>
int on(void* given, const Body& body) noexcept {
  Machine* const machine = given ? static_cast<Machine*>(given) : own_machine();
  last_text.clear();
  if (!machine) return kNoMachine;
  try {
    const Status status = body(*machine);
    if (status != Status::Ok && last_text.empty()) last_text = machine->driver().text_of(status);
    return int(status);
  } catch (const std::exception& error) {
    last_text = error.what();
    return kThrown;
  }
}

}  // namespace taeda::cuda
