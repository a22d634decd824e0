// What PyTorch has under this name: errors of the CUDA runtime as exceptions.
#pragma once
#include <cuda_runtime_api.h>

#include "taeda/torch_names/names.h"

namespace taeda::cuda {

/// RuntimeError with the runtime's words unless `status` is a success.
inline void check(cudaError_t status, const char* call) {
  if (status == cudaSuccess) return;
  (void)cudaGetLastError();  // who catches the error goes on without it
  throw Error(TAEDA_E_RUNTIME, detail::joined("CUDA error: ", cudaGetErrorString(status), " (", call, ")"));
}

}  // namespace taeda::cuda

#define C10_CUDA_CHECK(...) ::taeda::cuda::check((__VA_ARGS__), #__VA_ARGS__)
#define AT_CUDA_CHECK(...) C10_CUDA_CHECK(__VA_ARGS__)
#define C10_CUDA_KERNEL_LAUNCH_CHECK() C10_CUDA_CHECK(cudaGetLastError())
