// Questions for devices by names that others gave them, as sources written for PyTorch ask. Part of taeda/extension.h.
#pragma once
#include <cstdint>
#include <string>

namespace taeda {
inline namespace extension_v1 {

/// Devices with a name in C++; others go by their text.
enum class DeviceType : int32_t { CPU, CUDA, HIP, XPU, MPS, Meta };
inline constexpr DeviceType kCPU = DeviceType::CPU, kCUDA = DeviceType::CUDA, kHIP = DeviceType::HIP,
                            kXPU = DeviceType::XPU, kMPS = DeviceType::MPS, kMeta = DeviceType::Meta;
/// The name in Python.
inline const char* toString(DeviceType type) {
  constexpr const char* names[] = {"cpu", "cuda", "hip", "xpu", "mps", "meta"};
  return names[int(type)];
}
/// As in `x.device().type() == kCPU`.
inline bool operator==(const std::string& name, DeviceType type) { return name == toString(type); }

namespace detail {

/// Base of what is on a device: `Self::is_on(name)`.
template <class Self>
struct AsksForDevices {
  bool is_cuda() const { return static_cast<const Self*>(this)->is_on("cuda"); }
  bool is_hip() const { return static_cast<const Self*>(this)->is_on("hip"); }
  bool is_xpu() const { return static_cast<const Self*>(this)->is_on("xpu"); }
  bool is_mps() const { return static_cast<const Self*>(this)->is_on("mps"); }
  bool is_meta() const { return static_cast<const Self*>(this)->is_on("meta"); }
};

}  // namespace detail
}  // namespace extension_v1
}  // namespace taeda
