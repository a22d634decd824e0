// Questions for devices by names that others gave them, as sources written for PyTorch ask. Part of taeda/extension.h.
#pragma once

namespace taeda {
inline namespace extension_v1 {
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
