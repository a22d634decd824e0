// The reserved device names: of devices that programs ask every tensor for, whoever's package provides them.
#pragma once

namespace taeda {

/// A name that the core knows as a word only, and the attribute of tensors that asks for it.
struct ReservedDevice {
  const char* name;
  const char* attribute;
  const char* doc;
};

inline constexpr ReservedDevice kReservedDevices[] = {
    {"cuda", "is_cuda", "Whether the tensor is on a cuda device."},
    {"mps", "is_mps", "Whether the tensor is on an mps device."},
    {"xpu", "is_xpu", "Whether the tensor is on an xpu device."},
};

}  // namespace taeda
