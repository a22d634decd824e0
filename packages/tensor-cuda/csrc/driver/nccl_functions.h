// The functions of NCCL that are looked up in its library, as they are declared in NVIDIA's nccl.h (2.14 and later).
#pragma once
#include <cstddef>

// Communicators and streams are pointers; statuses, types and reductions are ints.
#define TAEDA_NCCL_FUNCTIONS(X)                                                   \
  X(int, ncclGetVersion, (int*))                                                  \
  X(const char*, ncclGetErrorString, (int))                                       \
  X(const char*, ncclGetLastError, (void*))                                       \
  X(int, ncclGetUniqueId, (NcclId*))                                              \
  X(int, ncclCommInitRankConfig, (void**, int, NcclId, int, NcclConfig*))         \
  X(int, ncclCommFinalize, (void*))                                               \
  X(int, ncclCommDestroy, (void*))                                                \
  X(int, ncclCommAbort, (void*))                                                  \
  X(int, ncclCommGetAsyncError, (void*, int*))                                    \
  X(int, ncclGroupStart, ())                                                      \
  X(int, ncclGroupEnd, ())                                                        \
  X(int, ncclAllReduce, (const void*, void*, size_t, int, int, void*, void*))     \
  X(int, ncclReduce, (const void*, void*, size_t, int, int, int, void*, void*))   \
  X(int, ncclBroadcast, (const void*, void*, size_t, int, int, void*, void*))     \
  X(int, ncclAllGather, (const void*, void*, size_t, int, void*, void*))          \
  X(int, ncclReduceScatter, (const void*, void*, size_t, int, int, void*, void*)) \
  X(int, ncclSend, (const void*, size_t, int, int, void*, void*))                 \
  X(int, ncclRecv, (void*, size_t, int, int, void*, void*))

namespace taeda::cuda {

/// ncclUniqueId, which is passed by value.
struct NcclId {
  char bytes[128];
};
/// The beginning of ncclConfig_t, as version 2.14 has it: later ones take what lies beyond as not chosen.
struct NcclConfig {
  size_t size = sizeof(NcclConfig);
  unsigned magic = 0xcafebeef, version = 21400;
  int blocking = 0;
};

// Constants of nccl.h.
inline constexpr int kNcclInProgress = 7;
// By our element types, from TAEDA_BOOL on; -1: it has none. Numbers of bool are bytes.
inline constexpr int kNcclTypes[] = {1, 0, -1, 2, 4, 1, -1, 3, 5, 6, 9, 7, 8, -1, -1};

}  // namespace taeda::cuda
