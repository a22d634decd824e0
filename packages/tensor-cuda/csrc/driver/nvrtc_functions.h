// The functions of NVRTC that are looked up in its library, as they are declared in NVIDIA's nvrtc.h (12 and 13).
#pragma once
#include <cstddef>

// Statuses are ints, programs pointers.
#define TAEDA_NVRTC_FUNCTIONS(X)                                                                              \
  X(int, nvrtcVersion, (int*, int*))                                                                          \
  X(int, nvrtcGetNumSupportedArchs, (int*))                                                                   \
  X(int, nvrtcGetSupportedArchs, (int*))                                                                      \
  X(int, nvrtcCreateProgram, (void**, const char*, const char*, int, const char* const*, const char* const*)) \
  X(int, nvrtcDestroyProgram, (void**))                                                                       \
  X(int, nvrtcCompileProgram, (void*, int, const char* const*))                                               \
  X(int, nvrtcGetPTXSize, (void*, size_t*))                                                                   \
  X(int, nvrtcGetPTX, (void*, char*))                                                                         \
  X(int, nvrtcGetCUBINSize, (void*, size_t*))                                                                 \
  X(int, nvrtcGetCUBIN, (void*, char*))                                                                       \
  X(int, nvrtcGetProgramLogSize, (void*, size_t*))                                                            \
  X(int, nvrtcGetProgramLog, (void*, char*))                                                                  \
  X(const char*, nvrtcGetErrorString, (int))
