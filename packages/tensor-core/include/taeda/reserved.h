// The reserved device names: of devices that programs ask every tensor for, whoever's package provides them.
#pragma once
#include <cstddef>
#include <iterator>

namespace taeda {

/// A name that the core knows as a word only, and the attribute of tensors that asks for it.
struct ReservedDevice {
  const char* name;
  int dlpack;          // DLPack's number of the kind
  const char* arrays;  // the attribute by which libraries show each other arrays there; null: there is none
  const char* attribute;
  const char* doc;
};

inline constexpr ReservedDevice kReservedDevices[] = {
    {"cuda", 2, "__cuda_array_interface__", "is_cuda", "Whether the tensor is on a cuda device."},
    {"mps", 8, nullptr, "is_mps", "Whether the tensor is on an mps device."},
    {"xpu", 14, nullptr, "is_xpu", "Whether the tensor is on an xpu device."},
};

/// Further kinds of devices that programs name as values, in tables or comparisons; nothing else knows them.
inline constexpr const char* kFurtherDevices[] = {"fpga",   "hip",           "hpu",    "ideep",  "ipu",
                                                  "lazy",   "maia",          "mkldnn", "mtia",   "opencl",
                                                  "opengl", "privateuseone", "ve",     "vulkan", "xla"};

/// The `i`-th name that a device object can have without such a device: reserved names first.
inline constexpr const char* device_word(size_t i) {
  return i < std::size(kReservedDevices) ? kReservedDevices[i].name : kFurtherDevices[i - std::size(kReservedDevices)];
}
inline constexpr size_t kDeviceWords = std::size(kReservedDevices) + std::size(kFurtherDevices);

}  // namespace taeda
