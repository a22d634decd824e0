// What PyTorch has under this name: the runtime's current device, for the time of a block.
#pragma once
#include <optional>

#include "c10/cuda/CUDAStream.h"

namespace taeda::cuda {

/// Kernels that the block launches run on this device.
class CUDAGuard {
 public:
  explicit CUDAGuard(DeviceIndex index) {
    C10_CUDA_CHECK(cudaGetDevice(&before_));
    if (index != before_) C10_CUDA_CHECK(cudaSetDevice(index));
  }
  explicit CUDAGuard(const Device& device) : CUDAGuard(device.index()) {
    TAEDA_CHECK(device.is_cuda(), "CUDAGuard: found device '", device.str(), "'");
  }
  CUDAGuard(const CUDAGuard&) = delete;
  ~CUDAGuard() { (void)cudaSetDevice(before_); }
  void set_index(DeviceIndex index) { C10_CUDA_CHECK(cudaSetDevice(index)); }

 private:
  int before_ = 0;
};

/// The same where there may be no device to choose, as for a tensor of the cpu.
class OptionalCUDAGuard {
 public:
  OptionalCUDAGuard() = default;
  explicit OptionalCUDAGuard(const std::optional<Device>& device) {
    if (device && device->is_cuda()) guard_.emplace(*device);
  }

 private:
  std::optional<CUDAGuard> guard_;
};

inline std::optional<Device> device_of(const Tensor& tensor) {
  return tensor.defined() ? std::optional(tensor.device()) : std::nullopt;
}

}  // namespace taeda::cuda
namespace taeda {
using cuda::device_of;
}
