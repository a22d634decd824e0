// Device: a registered backend's number and an index within it.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "taeda/export.h"

namespace taeda {

/// Number of a backend in the registration order; also its bit in a KeySet.
using BackendId = uint8_t;
inline constexpr BackendId kCPU = 0;
inline constexpr BackendId kMeta = 1;
inline constexpr int kMaxBackends = 16;

struct Device {
  BackendId backend = kCPU;
  int8_t index = 0;
  friend bool operator==(const Device&, const Device&) = default;
};

/// "cpu", "meta", "mydev:1". cpu and meta print without an index.
TAEDA_API std::string to_string(Device device);
/// Parses "cpu", "name", "name:index"; an unknown name raises RuntimeError that lists the known ones.
TAEDA_API Device parse_device(std::string_view text);

/// Index that the bare name of a backend stands for on the calling thread: 0 until somebody says otherwise.
TAEDA_API int current_device_index(BackendId id) noexcept;
/// RuntimeError where there is no such device.
TAEDA_API void set_current_device_index(BackendId id, int index);

}  // namespace taeda
