// What PyTorch has under this name: additions that threads make at one place.
#pragma once
#include "ATen/cuda/CUDAContext.h"

template <class T>
__device__ inline T gpuAtomicAdd(T* place, T value) {
  return atomicAdd(place, value);
}
template <class T>
__device__ inline void gpuAtomicAddNoReturn(T* place, T value) {
  atomicAdd(place, value);
}
