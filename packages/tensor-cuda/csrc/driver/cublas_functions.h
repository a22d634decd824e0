// The functions of cuBLAS that are looked up in its library, as they are declared in NVIDIA's cublas_api.h (12 and 13).
#pragma once
#include <cstddef>
#include <cstdint>

// Handles and streams are pointers; statuses, operations and types are ints.
#define TAEDA_CUBLAS_FUNCTIONS(X)                                                                                     \
  X(int, cublasCreate_v2, (void**))                                                                                   \
  X(int, cublasDestroy_v2, (void*))                                                                                   \
  X(int, cublasSetStream_v2, (void*, void*))                                                                          \
  X(int, cublasSetWorkspace_v2, (void*, void*, size_t))                                                               \
  X(const char*, cublasGetStatusString, (int))                                                                        \
  X(int, cublasGemmStridedBatchedEx_64,                                                                               \
    (void*, int, int, int64_t, int64_t, int64_t, const void*, const void*, int, int64_t, long long, const void*, int, \
     int64_t, long long, const void*, void*, int, int64_t, long long, int64_t, int, int))

namespace taeda::cuda {

// Constants of library_types.h and cublas_api.h. Operations are 0 (none) and 1 (transposed).
inline constexpr int kCublasFloat = 0, kCublasDouble = 1, kCublasHalf = 2, kCublasComplexFloat = 4,
                     kCublasComplexDouble = 5, kCublasBfloat16 = 14;
inline constexpr int kCublasComputeFloat = 68, kCublasComputeDouble = 70, kCublasComputeTf32 = 77;
inline constexpr int kCublasDefaultAlgorithm = -1;

}  // namespace taeda::cuda
