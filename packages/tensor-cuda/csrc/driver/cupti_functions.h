// The functions of CUPTI that are looked up in its library, as they are declared in NVIDIA's cupti.h (12 and 13), and
// the parts of its records that are read.
#pragma once
#include <cstddef>
#include <cstdint>

// Contexts and streams are pointers; statuses, kinds and flags are ints.
#define TAEDA_CUPTI_FUNCTIONS(X)                                           \
  X(int, cuptiGetResultString, (int, const char**))                        \
  X(int, cuptiGetTimestamp, (uint64_t*))                                   \
  X(int, cuptiGetStreamIdEx, (void*, void*, uint8_t, uint32_t*))           \
  X(int, cuptiActivityRegisterCallbacks, (CuptiRequested, CuptiCompleted)) \
  X(int, cuptiActivityEnable, (int))                                       \
  X(int, cuptiActivityDisable, (int))                                      \
  X(int, cuptiActivityFlushAll, (uint32_t))                                \
  X(int, cuptiActivityGetNextRecord, (uint8_t*, size_t, CuptiRecord**))    \
  X(int, cuptiActivityGetNumDroppedRecords, (void*, uint32_t, size_t*))    \
  X(int, cuptiActivityPushExternalCorrelationId, (int, uint64_t))          \
  X(int, cuptiActivityPopExternalCorrelationId, (int, uint64_t*))

namespace taeda::cuda {

using CuptiRequested = void (*)(uint8_t** buffer, size_t* size, size_t* most);
using CuptiCompleted = void (*)(void* context, uint32_t stream, uint8_t* buffer, size_t size, size_t valid);

/// CUpti_Activity. What comes behind depends on the kind; later versions of CUPTI append to it.
struct CuptiRecord {
  int kind;
};
/// The beginning of CUpti_ActivityKernel4 to 13.
struct CuptiKernel {
  int kind;
  uint8_t sizes[12];
  uint64_t start, end, completed;
  uint32_t device, context, stream;
  int32_t grid[3], block[3], shared[2];
  uint32_t local_per_thread, local_total, correlation;
  int64_t grid_id;
  const char* name;
};
/// Of CUpti_ActivityMemcpy to 7.
struct CuptiCopy {
  int kind;
  uint8_t copy_kind, from, to, flags;
  uint64_t bytes, start, end;
  uint32_t device, context, stream, correlation;
};
/// Of CUpti_ActivityMemcpyPtoP to 4.
struct CuptiPeerCopy {
  int kind;
  uint8_t copy_kind, from, to, flags;
  uint64_t bytes, start, end;
  uint32_t device, context, stream, from_device, from_context, to_device, to_context, correlation;
};
/// Of CUpti_ActivityMemset to 5.
struct CuptiFill {
  int kind;
  uint32_t value;
  uint64_t bytes, start, end;
  uint32_t device, context, stream, correlation;
};
/// CUpti_ActivityExternalCorrelation.
struct CuptiOrigin {
  int kind, external_kind;
  uint64_t external;
  uint32_t correlation, reserved;
};

// Constants of cupti_activity.h and cupti_result.h.
inline constexpr int kCuptiCopy = 1, kCuptiFill = 2, kCuptiKernel = 10, kCuptiPeerCopy = 22, kCuptiOrigin = 39;
inline constexpr int kCuptiOwnNumbers = 3;  // CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0
inline constexpr uint32_t kCuptiFlushAll = 1;
inline constexpr int kCuptiInsufficientPrivileges = 35, kCuptiOtherSubscriber = 39;

}  // namespace taeda::cuda
