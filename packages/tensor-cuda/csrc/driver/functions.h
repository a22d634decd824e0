// The functions of the CUDA driver that are looked up in its library, as they are declared in NVIDIA's cuda.h.
//
// By hand, so that host code needs no toolkit; tests compile them against a toolkit's header where there is one.
#pragma once
#include <cstddef>
#include <cstdint>

// Handles are pointers, CUdevice and CUresult ints, CUdeviceptr 64 bits.
#define TAEDA_CUDA_FUNCTIONS(X)                                                                       \
  X(cuInit, (unsigned))                                                                               \
  X(cuGetErrorName, (int, const char**))                                                              \
  X(cuGetErrorString, (int, const char**))                                                            \
  X(cuDeviceGetCount, (int*))                                                                         \
  X(cuDeviceGet, (int*, int))                                                                         \
  X(cuDeviceGetName, (char*, int, int))                                                               \
  X(cuDeviceTotalMem_v2, (size_t*, int))                                                              \
  X(cuDeviceGetAttribute, (int*, int, int))                                                           \
  X(cuDevicePrimaryCtxRetain, (void**, int))                                                          \
  X(cuCtxSetCurrent, (void*))                                                                         \
  X(cuCtxSynchronize, (void))                                                                         \
  X(cuMemGetInfo_v2, (size_t*, size_t*))                                                              \
  X(cuMemAlloc_v2, (uint64_t*, size_t))                                                               \
  X(cuMemFree_v2, (uint64_t))                                                                         \
  X(cuMemAddressReserve, (uint64_t*, size_t, size_t, uint64_t, unsigned long long))                   \
  X(cuMemAddressFree, (uint64_t, size_t))                                                             \
  X(cuMemCreate, (unsigned long long*, size_t, const void*, unsigned long long))                      \
  X(cuMemRelease, (unsigned long long))                                                               \
  X(cuMemMap, (uint64_t, size_t, size_t, unsigned long long, unsigned long long))                     \
  X(cuMemUnmap, (uint64_t, size_t))                                                                   \
  X(cuMemSetAccess, (uint64_t, size_t, const void*, size_t))                                          \
  X(cuMemGetAddressRange_v2, (uint64_t*, size_t*, uint64_t))                                          \
  X(cuPointerGetAttribute, (void*, int, uint64_t))                                                    \
  X(cuIpcGetMemHandle, (void*, uint64_t))                                                             \
  X(cuIpcOpenMemHandle_v2, (uint64_t*, CudaSharedHandle, unsigned))                                   \
  X(cuIpcCloseMemHandle, (uint64_t))                                                                  \
  X(cuMemHostAlloc, (void**, size_t, unsigned))                                                       \
  X(cuMemFreeHost, (void*))                                                                           \
  X(cuStreamCreateWithPriority, (void**, unsigned, int))                                              \
  X(cuStreamSynchronize, (void*))                                                                     \
  X(cuStreamQuery, (void*))                                                                           \
  X(cuStreamWaitEvent, (void*, void*, unsigned))                                                      \
  X(cuEventCreate, (void**, unsigned))                                                                \
  X(cuEventDestroy_v2, (void*))                                                                       \
  X(cuEventRecord, (void*, void*))                                                                    \
  X(cuEventSynchronize, (void*))                                                                      \
  X(cuEventQuery, (void*))                                                                            \
  X(cuEventElapsedTime, (float*, void*, void*))                                                       \
  X(cuMemcpyHtoDAsync_v2, (uint64_t, const void*, size_t, void*))                                     \
  X(cuMemcpyDtoHAsync_v2, (void*, uint64_t, size_t, void*))                                           \
  X(cuMemcpyPeerAsync, (uint64_t, void*, uint64_t, void*, size_t, void*))                             \
  X(cuStreamBeginCapture_v2, (void*, int))                                                            \
  X(cuStreamEndCapture, (void*, void**))                                                              \
  X(cuStreamGetCaptureInfo_v3, (void*, int*, uint64_t*, void**, const void**, const void**, size_t*)) \
  X(cuThreadExchangeStreamCaptureMode, (int*))                                                        \
  X(cuGraphInstantiateWithFlags, (void**, void*, unsigned long long))                                 \
  X(cuGraphLaunch, (void*, void*))                                                                    \
  X(cuGraphDestroy, (void*))                                                                          \
  X(cuGraphExecDestroy, (void*))                                                                      \
  X(cuGraphDebugDotPrint, (void*, const char*, unsigned))                                             \
  X(cuModuleLoadData, (void**, const void*))                                                          \
  X(cuModuleGetFunction, (void**, void*, const char*))                                                \
  X(cuFuncSetAttribute, (void*, int, int))                                                            \
  X(cuLaunchKernel,                                                                                   \
    (void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**, void**))

namespace taeda::cuda {

/// CUipcMemHandle, which is passed by value.
struct CudaSharedHandle {
  char bytes[64];
};
/// CUmemLocation, CUmemAllocationProp and CUmemAccessDesc.
struct CudaPlace {
  int kind = 1, id = 0;  // a device
};
struct CudaMemoryKind {
  int kind = 1, handles = 0;  // memory of a device, which no other process is given
  CudaPlace place;
  void* system = nullptr;
  unsigned char flags[8] = {};
};
struct CudaAccess {
  CudaPlace place;
  int flags = 3;  // to read and to write
};
struct Functions {
#define TAEDA_CUDA_POINTER(NAME, PARAMETERS) int(*NAME) PARAMETERS = nullptr;
  TAEDA_CUDA_FUNCTIONS(TAEDA_CUDA_POINTER)
#undef TAEDA_CUDA_POINTER
};

/// While it lives, what may be called in a recording is not restricted on the calling thread: memory may be taken and
/// images be loaded, which leaves nothing in the recording.
class Relaxed {
 public:
  explicit Relaxed(const Functions& functions) : f_(functions) { f_.cuThreadExchangeStreamCaptureMode(&mode_); }
  ~Relaxed() { f_.cuThreadExchangeStreamCaptureMode(&mode_); }
  Relaxed(const Relaxed&) = delete;
  Relaxed& operator=(const Relaxed&) = delete;

 private:
  const Functions& f_;
  int mode_ = 2;  // CU_STREAM_CAPTURE_MODE_RELAXED; then the one before
};

// Constants of cuda.h.
inline constexpr unsigned kStreamNonBlocking = 1, kEventNoTiming = 2, kHostPortable = 1, kPeerAccess = 1;
inline constexpr int kCaptureNone = 0;
inline constexpr unsigned kGraphVerbose = 1;
inline constexpr int kPointerKind = 2, kPointerDevice = 9, kDeviceMemory = 2;
inline constexpr int kNoImage = 200;  // CUDA_ERROR_INVALID_IMAGE
inline constexpr int kAttributeSharedPerBlock = 8, kAttributeWarpSize = 10, kAttributeL2Cache = 38,
                     kAttributeThreadsPerProcessor = 39, kAttributeIntegrated = 18, kAttributePciBus = 33,
                     kAttributePciDevice = 34, kAttributePciDomain = 50, kAttributeSharedPerProcessor = 81,
                     kAttributeRegistersPerProcessor = 82, kAttributeBoardOfSeveral = 84, kAttributeSharedMost = 97;
inline constexpr int kSharedOfFunction = 8;  // CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
inline constexpr int kAttributeProcessors = 16, kAttributeMajor = 75, kAttributeMinor = 76;

}  // namespace taeda::cuda
