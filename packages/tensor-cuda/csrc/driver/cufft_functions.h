// The functions of cuFFT that are looked up in its library, as they are declared in NVIDIA's cufftXt.h (11 and 12).
#pragma once
#include <cstddef>

// Plans, statuses, types and directions are ints; streams are pointers.
#define TAEDA_CUFFT_FUNCTIONS(X)                                                                                    \
  X(int, cufftGetVersion, (int*))                                                                                   \
  X(int, cufftCreate, (int*))                                                                                       \
  X(int, cufftDestroy, (int))                                                                                       \
  X(int, cufftSetAutoAllocation, (int, int))                                                                        \
  X(int, cufftSetStream, (int, void*))                                                                              \
  X(int, cufftSetWorkArea, (int, void*))                                                                            \
  X(int, cufftXtMakePlanMany,                                                                                       \
    (int, int, long long*, long long*, long long, long long, int, long long*, long long, long long, int, long long, \
     size_t*, int))                                                                                                 \
  X(int, cufftXtExec, (int, void*, void*, int))

// What cufft.h calls its statuses.
#define TAEDA_CUFFT_STATUSES(X) \
  X(1, INVALID_PLAN)            \
  X(2, ALLOC_FAILED)            \
  X(3, INVALID_TYPE)            \
  X(4, INVALID_VALUE)           \
  X(5, INTERNAL_ERROR)          \
  X(6, EXEC_FAILED)             \
  X(7, SETUP_FAILED)            \
  X(8, INVALID_SIZE)            \
  X(9, UNALIGNED_DATA)          \
  X(11, INVALID_DEVICE)         \
  X(13, NO_WORKSPACE)           \
  X(14, NOT_IMPLEMENTED)        \
  X(16, NOT_SUPPORTED)

namespace taeda::cuda {

// Constants of library_types.h and cufft.h.
inline constexpr int kCufftReal[] = {0, 1}, kCufftComplex[] = {4, 5};  // float32, float64
inline constexpr int kCufftForward = -1, kCufftBackward = 1;

}  // namespace taeda::cuda
