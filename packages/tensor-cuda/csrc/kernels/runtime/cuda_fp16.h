// What is used of CUDA's cuda_fp16.h, which lies in none of NVRTC's wheels: conversions, each an instruction.
#pragma once
struct __half {
  unsigned short bits;
};
__device__ inline __half __ushort_as_half(unsigned short bits) { return {bits}; }
__device__ inline unsigned short __half_as_ushort(__half h) { return h.bits; }
__device__ inline float __half2float(__half h) {
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(h.bits));
  return value;
}
__device__ inline __half __float2half_rn(float value) {
  __half h;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h.bits) : "f"(value));
  return h;
}
