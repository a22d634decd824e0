// What PyTorch has under this name: facts of devices.
#pragma once
#include "c10/cuda/CUDAGuard.h"

namespace taeda::cuda {

/// Facts of the current device, asked for once a device.
inline cudaDeviceProp* getCurrentDeviceProperties() {
  thread_local std::optional<cudaDeviceProp> known[128];
  std::optional<cudaDeviceProp>& found = known[current_device()];
  if (!found) C10_CUDA_CHECK(cudaGetDeviceProperties(&found.emplace(), current_device()));
  return &*found;
}

}  // namespace taeda::cuda
